"""The file of secrets that the emulator serves as Secret Manager: in its data folder, for its owner only."""

import fcntl
import json
import os
from collections.abc import Mapping

from . import emulator_process

FILE_NAME = "secrets.json"
"""As in vertex_emulator/data_folder.py: `{PROJECT: {SECRET: VALUE}}`."""
_LOCK_NAME = "secrets.lock"


def replace_project_secrets(project: str, values_by_name: Mapping[str, str]) -> None:
    """Write the secrets of a Google Cloud project in place of its present ones. The emulator need not run."""
    folder = emulator_process.get_data_folder()
    file = folder / FILE_NAME
    if not values_by_name and not file.exists():
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / _LOCK_NAME).open("w") as lock:  # of several stacks
        fcntl.flock(lock, fcntl.LOCK_EX)
        projects = json.loads(file.read_text()) if file.exists() else {}
        projects = {name: values for name, values in projects.items() if name != project}
        if values_by_name:
            projects[project] = dict(values_by_name)
        if not projects:
            file.unlink(missing_ok=True)
            return
        new_file = file.with_suffix(".new")
        new_file.unlink(missing_ok=True)
        with os.fdopen(os.open(new_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            json.dump(projects, stream)
        new_file.replace(file)
