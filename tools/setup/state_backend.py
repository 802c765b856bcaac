"""Pulumi's state backend for this checkout: the user's own choice, or else a folder in the checkout."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from tools.setup.checkout_folders import CHECKOUT, LOCAL_STATE


def create_local_backend_unless_chosen() -> dict[str, str]:
    """Create the folder of the local backend and return its variables; none if the user has chosen a backend."""
    if has_state_backend(os.environ, CHECKOUT / "Pulumi.yaml"):
        return {}
    LOCAL_STATE.mkdir(exist_ok=True)
    return build_local_backend_and_default_passphrase_variables(os.environ, LOCAL_STATE)


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
