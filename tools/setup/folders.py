"""Where a set-up puts things."""

import os
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
VENV = CHECKOUT / ".venv"
REQUIREMENTS = CHECKOUT / "requirements.lock"
LOCAL_STATE = CHECKOUT / ".pulumi-state"


def cache_folder() -> Path:
    """The folder shared by all checkouts of this user, as in the XDG base directory specification.

    A relative XDG_CACHE_HOME is ignored, which that specification asks for.
    """
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    base = configured if configured.is_absolute() else Path.home() / ".cache"
    return base / "vertex-training"
