"""Programs that only tests run: Chromium, a registry, and what they need beside them."""

import shutil

from tools.setup import programs
from tools.setup.programs import CommandFailed, Output

# Debian's package of each program.
PACKAGES = {
    "chromium-headless-shell": "chromium-headless-shell",
    "docker-registry": "docker-registry",
    "git": "git",
    "htpasswd": "apache2-utils",
    "openssl": "openssl",
}
# What to do about programs that Debian has no package of, or none that is new enough.
INSTALL_HINTS = {
    "gcloud": "install it from cloud.google.com/sdk",
    "go": "install it from go.dev/dl; it builds Docker's buildx",
}
PROGRAMS = (*PACKAGES, *INSTALL_HINTS)


def find() -> str | None:
    """Describe the programs; return `None` if one is missing."""
    return None if _missing() else f"Programs for tests: {', '.join(PROGRAMS)}"


def make(output: Output) -> str:
    """Install Debian's packages if this user may, and return a line that names what is still missing.

    It does not raise: tests whose programs are missing are skipped, and pytest names them.
    """
    reason = ""
    if packages := [PACKAGES[program] for program in _missing() if program in PACKAGES]:
        if programs.can_install():
            try:
                programs.install_packages(output, *packages)
            except CommandFailed as error:
                reason = f"\n  {error}"
        else:
            reason = f"\n  on Debian and Ubuntu: `sudo apt-get install {' '.join(packages)}`"
    missing = _missing()
    reason += "".join(f"\n  {program}: {hint}" for program, hint in INSTALL_HINTS.items() if program in missing)
    line = f"Programs for tests: {', '.join(missing)} missing; tests that need them are skipped{reason}"
    return find() or line


def _missing() -> list[str]:
    return [program for program in PROGRAMS if shutil.which(program) is None]
