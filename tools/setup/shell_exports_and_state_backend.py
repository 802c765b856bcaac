"""The shell environment in which `pulumi` runs this project: what `eval "$(make -s env)"` sets."""

import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from tools.setup import pulumi_engine_search_and_installation
from tools.setup.checkout_folders import CHECKOUT, LOCAL_STATE, VENV

# The stack `local` downloads no plugins and does not check for newer engines.
DEFAULTS = {"PULUMI_SKIP_UPDATE_CHECK": "true", "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true"}


def create_backend_and_render_exports() -> str:
    """Return shell code that sets the environment, and create the folder of the default state backend."""
    engine, cached_folder = (
        pulumi_engine_search_and_installation.find_usable_engine_or_none(),
        pulumi_engine_search_and_installation.get_cached_engine_bin_folder(),
    )
    engine_folders = [cached_folder] if engine and engine.folder == cached_folder else []
    variables = {"PATH": prepend_to_path([VENV / "bin", *engine_folders], os.environ.get("PATH", ""))}
    if not has_state_backend(os.environ, CHECKOUT / "Pulumi.yaml"):
        LOCAL_STATE.mkdir(exist_ok=True)
        variables |= build_local_backend_and_default_passphrase_variables(os.environ, LOCAL_STATE)
    variables |= {name: value for name, value in DEFAULTS.items() if name not in os.environ}
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())


def prepend_to_path(folders: Sequence[Path], path: str) -> str:
    """Return a PATH that begins with `folders` and does not repeat them."""
    first = [str(folder) for folder in folders]
    return os.pathsep.join([*first, *(folder for folder in path.split(os.pathsep) if folder not in first)])


def has_state_backend(environ: Mapping[str, str], project_file: Path) -> bool:
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


def build_local_backend_and_default_passphrase_variables(environ: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return variables for a state backend in `folder`, with an empty passphrase unless the user has set one.

    `metadata=skip` omits the `.attrs` file beside each state: if Pulumi 3.259 is killed while it writes one, it cannot
    read the state again ("failed to load checkpoint: EOF").
    """
    variables = {"PULUMI_BACKEND_URL": f"file://{quote(str(folder))}?metadata=skip"}
    if not {"PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"} & environ.keys():
        variables["PULUMI_CONFIG_PASSPHRASE"] = ""
    return variables
