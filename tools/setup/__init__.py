"""Find or install what the project needs: Python packages, the Pulumi engine, Docker and the base image.

It runs before anything is installed, so it uses the standard library alone.
"""

import os
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
VENV = CHECKOUT / ".venv"
REQUIREMENTS = CHECKOUT / "requirements.lock"
LOCAL_STATE = CHECKOUT / ".pulumi-state"


def cache_folder() -> Path:
    """Return the folder shared by all checkouts of this user, as in the XDG base directory specification."""
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The specification says that relative paths are ignored.
    return (configured if configured.is_absolute() else Path.home() / ".cache") / "vertex-training"


def is_own(folder: Path) -> bool:
    """Whether no other user writes to a folder, which need not be there: programs in it are started.

    Root takes folders of others, as of a user who calls `sudo`, or of the machine whose cache a container mounts.
    """
    try:
        status = folder.stat()
    except FileNotFoundError:
        return True
    if os.getuid() in (0, status.st_uid):
        return not status.st_mode & 0o002
    return status.st_uid == 0 and not status.st_mode & 0o022
