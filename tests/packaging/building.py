"""The wheel of this checkout, built once in each test process."""

import atexit
import functools
import shutil
import sys
import tempfile
from pathlib import Path

from tools.template import build_wheel

ROOMS = {"components": "vertex_training", "vertex_api": "vertex_api", "vertex_emulator": "vertex_emulator"}
"""The folders that the wheel holds, and the names that they are installed under."""
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input")
OFFLINE = ("--quiet", "--no-index", "--no-deps", "--no-build-isolation")


@functools.cache
def wheel() -> Path:
    """Return the wheel, in a folder that goes when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="vertex-training-wheel-"))
    atexit.register(shutil.rmtree, folder)
    return build_wheel(folder)
