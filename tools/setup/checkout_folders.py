"""The folders of a checkout and of its user's cache."""

import os
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
VENV = CHECKOUT / ".venv"
REQUIREMENTS = CHECKOUT / "requirements.lock"
LOCAL_STATE = CHECKOUT / ".pulumi-state"


def get_shared_cache_folder() -> Path:
    """Return the folder shared by all checkouts of this user, as in the XDG base directory specification."""
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The specification says that relative paths are ignored.
    return (configured if configured.is_absolute() else Path.home() / ".cache") / "vertex-training"
