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
