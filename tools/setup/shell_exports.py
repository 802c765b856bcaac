"""The shell environment in which `pulumi` runs this project: what `eval "$(make -s env)"` sets."""

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.setup import pulumi_engine
from tools.setup.checkout_folders import VENV

# The stack `local` downloads no plugins and does not check for newer engines.
DEFAULTS = {"PULUMI_SKIP_UPDATE_CHECK": "true", "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true"}


def render_shell_exports(backend_variables: Mapping[str, str]) -> str:
    """Return shell code that sets the environment; `backend_variables` are those of the state backend."""
    engine, cached_folder = pulumi_engine.find_usable_engine_or_none(), pulumi_engine.get_cached_engine_bin_folder()
    engine_folders = [cached_folder] if engine and engine.folder == cached_folder else []
    variables = {"PATH": prepend_to_path([VENV / "bin", *engine_folders], os.environ.get("PATH", ""))}
    variables |= backend_variables
    variables |= {name: value for name, value in DEFAULTS.items() if name not in os.environ}
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())


def prepend_to_path(folders: Sequence[Path], path: str) -> str:
    """Return a PATH that begins with `folders` and does not repeat them."""
    first = [str(folder) for folder in folders]
    return os.pathsep.join([*first, *(folder for folder in path.split(os.pathsep) if folder not in first)])
