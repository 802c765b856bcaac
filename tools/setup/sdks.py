"""The oldest and the newest Pulumi SDK that the package is tried with: tests run with both, beside the lock's."""

import tempfile
from pathlib import Path

from tools.setup import cache_folder, programs, python
from tools.setup.programs import CommandFailed, Output, SetupError, run

SHA256 = {
    "3.254.0": "c54dbc5bea1bbb5b7f2ebc01a4858bd7225e9b7435833f69b2150d74228d92ac",
    "3.272.0": "e6184b2c213eaa13bbb76fe946e0cfc413d53c86ea16e1e7a14d60b8859b41ac",
}
"""The first version is the lower bound of pyproject.toml."""
INSTALL_LIMIT_SECONDS = 300


def find() -> str | None:
    """Describe the SDKs; return `None` if one is missing."""
    if not all(folder_of(version).is_dir() for version in SHA256):
        return None
    return f"Pulumi SDKs for tests: {', '.join(SHA256)}"


def make(output: Output) -> str:
    """Install the SDKs that are missing, without what they require. Raises SetupError."""
    for version, digest in SHA256.items():
        folder = folder_of(version)
        if folder.is_dir():
            continue
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as partial:
            requirement = Path(partial, "requirements.txt")
            requirement.write_text(f"pulumi=={version} --hash=sha256:{digest}\n")
            options = ("--disable-pip-version-check", "--no-input", "--no-deps", "--only-binary=:all:")
            command = (python.PYTHON, "-m", "pip", "install", *options, "-r", requirement)
            progress = output.progress(f"installing Pulumi's SDK {version} for tests, once")
            try:
                target = ("--target", Path(partial, "sdk"))
                limit, memory = INSTALL_LIMIT_SECONDS, programs.PYTHON_MEMORY
                run(*command, *target, limit=limit, progress=progress, memory=memory)
            except CommandFailed as error:
                raise SetupError(f"Pulumi SDKs for tests: {version} could not be installed. {error}") from error
            Path(partial, "sdk").rename(folder)
    return find() or ""


def folder_of(version: str) -> Path:
    """Return the folder in the cache that holds an SDK, for PYTHONPATH."""
    return cache_folder() / f"pulumi-sdk-{version}"
