"""Programs that only tests run: Chromium, a registry, and what they need beside them."""

import shutil

from tools.setup import debian
from tools.setup.commands import CommandFailed
from tools.setup.console import Console

PACKAGES = {
    "chromium": "chromium",
    "docker-registry": "docker-registry",
    "git": "git",
    "htpasswd": "apache2-utils",
    "openssl": "openssl",
}
"""Debian's package of each program."""
OTHERS = {
    "gcloud": "install it from cloud.google.com/sdk",
    "go": "install it from go.dev/dl; it builds Docker's buildx",
}
"""Programs that Debian has no package of, or none that is new enough: what to do about each."""


def find() -> str | None:
    """Return a line that says that all programs are installed; `None` if one is missing."""
    return None if _missing(PACKAGES) or _missing(OTHERS) else f"Programs for tests: {', '.join((*PACKAGES, *OTHERS))}"


def make(console: Console) -> str:
    """Install Debian's packages if this user may, and return a line that names what is still missing.

    It does not raise: tests whose programs are missing are skipped, and pytest names them.
    """
    reason = ""
    if packages := [PACKAGES[program] for program in _missing(PACKAGES)]:
        if debian.can_install():
            try:
                debian.install(console, *packages)
            except CommandFailed as error:
                reason = f"\n  {error}"
        else:
            reason = f"\n  on Debian and Ubuntu: `sudo apt-get install {' '.join(packages)}`"
    reason += "".join(f"\n  {program}: {OTHERS[program]}" for program in _missing(OTHERS))
    missing = [*_missing(PACKAGES), *_missing(OTHERS)]
    return find() or f"Programs for tests: {', '.join(missing)} missing; tests that need them are skipped{reason}"


def _missing(programs: dict[str, str]) -> list[str]:
    return [program for program in programs if shutil.which(program) is None]
