"""Chromium, which the tests of the emulator's page drive; without it they are skipped."""

import shutil

from tools.setup import debian
from tools.setup.commands import CommandFailed
from tools.setup.console import Console

PACKAGE = "chromium"


def find() -> str | None:
    """Where it is; None when there is none."""
    program = shutil.which(PACKAGE)
    return None if program is None else f"Chromium: {program}"


def make(console: Console) -> str:
    """Install Debian's package where that is possible; where it is not, say what goes without."""
    without = "Chromium: none, so tests of the page are skipped"
    if not debian.can_install():
        return without
    try:
        debian.install(console, PACKAGE)
    except CommandFailed as error:
        return f"{without}. {error}"
    return find() or without
