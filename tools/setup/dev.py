"""What only tests, checks and generators need beside the Python environment: the packages of requirements-dev.lock."""

import hashlib

from tools.setup import CHECKOUT, VENV, python
from tools.setup.programs import Output

REQUIREMENTS = CHECKOUT / "requirements-dev.lock"
STAMP = VENV / "dev.sha256"
"""Goes with the environment when that is made anew."""


def find() -> str | None:
    """Describe the packages; return `None` if they are missing or out of date."""
    is_current = STAMP.exists() and STAMP.read_text() == _digest()
    return f"Packages for tests: those of {REQUIREMENTS.name}" if is_current else None


def make(output: Output) -> str:
    """Install the packages into the environment. Raises SetupError."""
    python.install(REQUIREMENTS, output)
    STAMP.write_text(_digest())
    return find() or ""


def _digest() -> str:
    return hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
