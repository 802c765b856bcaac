"""The shell environment in which `pulumi` runs this project: what `eval "$(make -s env)"` sets."""

import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from tools.setup import pulumi_engine
from tools.setup.folders import CHECKOUT, LOCAL_STATE, VENV

# Set for the stack `local`, which needs no plugin to be fetched, and no news about newer engines.
DEFAULTS = {"PULUMI_SKIP_UPDATE_CHECK": "true", "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true"}


def exports() -> str:
    """Shell code for the environment of this machine and user. Makes the folder of the default state backend."""
    variables = {"PATH": path(os.environ.get("PATH", ""), [VENV / "bin", *_cached_engine()])}
    if not has_backend(os.environ, CHECKOUT / "Pulumi.yaml"):
        LOCAL_STATE.mkdir(exist_ok=True)
        variables |= local_backend(os.environ, LOCAL_STATE)
    variables |= {name: value for name, value in DEFAULTS.items() if name not in os.environ}
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())


def path(current: str, first: Sequence[Path]) -> str:
    """A PATH that begins with the folders `first`, without repeating them."""
    front = [str(folder) for folder in first]
    return os.pathsep.join([*front, *(folder for folder in current.split(os.pathsep) if folder not in front)])


def has_backend(environ: Mapping[str, str], project_file: Path) -> bool:
    """Whether the user has chosen a state backend: by a variable, in Pulumi.yaml, or with `pulumi login`."""
    if environ.get("PULUMI_BACKEND_URL") or environ.get("PULUMI_ACCESS_TOKEN"):
        return True
    if project_file.exists() and re.search(r"^backend\s*:", project_file.read_text(), re.MULTILINE):
        return True
    home = environ.get("PULUMI_HOME") or Path.home() / ".pulumi"
    folder = environ.get("PULUMI_CREDENTIALS_PATH") or home
    try:
        return bool(json.loads((Path(folder) / "credentials.json").read_text()).get("current"))
    except (OSError, ValueError, AttributeError):
        return False


def local_backend(environ: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Variables for a state backend in `folder`; its secrets get an empty passphrase if the user has set none.

    Without the `.attrs` file that Pulumi writes beside each state: killed while it does, it cannot read the state again
    ("failed to load checkpoint: EOF", 3.259).
    """
    variables = {"PULUMI_BACKEND_URL": f"file://{quote(str(folder))}?metadata=skip"}
    if not {"PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"} & environ.keys():
        variables["PULUMI_CONFIG_PASSPHRASE"] = ""
    return variables


def _cached_engine() -> list[Path]:
    engine = pulumi_engine.find_engine()
    cached = pulumi_engine.cached_folder()
    return [cached] if engine and engine.folder == cached else []
