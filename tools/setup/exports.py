"""The shell environment in which `pulumi` runs this project: what `eval "$(make -s env)"` sets."""

import json
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote, unquote

from tools.setup import CHECKOUT, LOCAL_STATE, VENV, engine

# The stack `local` downloads no plugins and does not check for newer engines.
DEFAULTS = {"PULUMI_SKIP_UPDATE_CHECK": "true", "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true"}
_OF_A_CHECKOUT = re.compile(r"file://(/.*)/\.pulumi-state\?metadata=skip")
"""A backend that `backend_variables` has made."""


def render() -> str:
    """Return shell code that sets the environment, after making the folder of the state if the user has none."""
    found, cached_folder = engine.find_engine(), engine.cached_bin()
    engine_folders = [cached_folder] if found and found.folder == cached_folder else []
    variables = {"PATH": prepend([VENV / "bin", *engine_folders], os.environ.get("PATH", ""))}
    variables |= local_backend()
    variables |= {name: value for name, value in DEFAULTS.items() if name not in os.environ}
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())


def prepend(folders: Sequence[Path], path: str) -> str:
    """Return a PATH that begins with `folders` and does not repeat them.

    Relative folders, as an empty one is, are left out: they are the current folder's, which may be any checkout.
    """
    first = [str(folder) for folder in folders]
    others = (folder for folder in path.split(os.pathsep) if folder not in first and folder.startswith("/"))
    return os.pathsep.join([*first, *others])


def local_backend() -> dict[str, str]:
    """Create the folder of the local backend and return its variables; none if the user has chosen a backend.

    What `make env` of another checkout has set in the same shell is no choice: with it, `make up` here would change,
    and delete, what the stack `local` of that checkout has made.
    """
    environ = dict(os.environ)
    match = _OF_A_CHECKOUT.fullmatch(environ.get("PULUMI_BACKEND_URL", ""))
    other = Path(unquote(match[1])) if match else CHECKOUT
    if other != CHECKOUT:
        print(f"PULUMI_BACKEND_URL is what `make env` has set in {other}; here it is changed", file=sys.stderr)
        environ["PULUMI_BACKEND_URL"] = ""
    if has_backend(environ, CHECKOUT / "Pulumi.yaml"):
        return {} if other == CHECKOUT else {"PULUMI_BACKEND_URL": ""}
    LOCAL_STATE.mkdir(exist_ok=True)
    return backend_variables(environ, LOCAL_STATE)


def has_backend(environ: Mapping[str, str], project_file: Path) -> bool:
    """Return whether the user has chosen a state backend: by a variable, in Pulumi.yaml, or with `pulumi login`."""
    if environ.get("PULUMI_BACKEND_URL") or environ.get("PULUMI_ACCESS_TOKEN"):
        return True
    if project_file.exists() and re.search(r"^backend\s*:", project_file.read_text(), re.MULTILINE):
        return True
    home = environ.get("PULUMI_HOME") or Path.home() / ".pulumi"
    folder = Path(environ.get("PULUMI_CREDENTIALS_PATH") or home)
    try:
        return bool(json.loads((folder / "credentials.json").read_text()).get("current"))
    except (OSError, ValueError, AttributeError):
        return False


def backend_variables(environ: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return variables for a state backend in `folder`, with an empty passphrase unless the user has set one.

    `metadata=skip` omits the `.attrs` file beside each state: if Pulumi 3.259 is killed while it writes one, it cannot
    read the state again ("failed to load checkpoint: EOF").
    """
    variables = {"PULUMI_BACKEND_URL": f"file://{quote(str(folder))}?metadata=skip"}
    if not {"PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"} & environ.keys():
        variables["PULUMI_CONFIG_PASSPHRASE"] = ""
    return variables
