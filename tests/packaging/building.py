"""The wheel of this checkout, built once in a run of the tests."""

import functools
import sys
from pathlib import Path

from tests.once import once
from tools.template import build_wheel

ROOMS = {"components": "vertex_training", "vertex_api": "vertex_api", "vertex_emulator": "vertex_emulator"}
"""The folders that the wheel holds, and the names that they are installed under."""
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input")
OFFLINE = ("--quiet", "--no-index", "--no-deps", "--no-build-isolation")


@functools.cache
def wheel() -> Path:
    """Return the wheel."""
    (built,) = once("wheel", build_wheel).glob("*.whl")
    return built
