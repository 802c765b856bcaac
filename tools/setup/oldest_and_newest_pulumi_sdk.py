"""The oldest and the newest Pulumi SDK that the package is tried with: tests run with both, beside the lock's."""

import tempfile
from pathlib import Path

from tools.setup import python_environment
from tools.setup.checkout_folders import get_shared_cache_folder
from tools.setup.progress_output import ProgressOutput
from tools.setup.subprocess_runner import CommandFailed, SetupError, run_program

SHA256_BY_VERSION = {
    "3.254.0": "c54dbc5bea1bbb5b7f2ebc01a4858bd7225e9b7435833f69b2150d74228d92ac",
    "3.272.0": "e6184b2c213eaa13bbb76fe946e0cfc413d53c86ea16e1e7a14d60b8859b41ac",
}
"""The first version is the lower bound of pyproject.toml."""
INSTALL_LIMIT_SECONDS = 300


def describe_if_ready() -> str | None:
    """Describe the SDKs; return `None` if one is missing."""
    if not all(get_sdk_folder(version).is_dir() for version in SHA256_BY_VERSION):
        return None
    return f"Pulumi SDKs for tests: {', '.join(SHA256_BY_VERSION)}"


def set_up_and_describe(output: ProgressOutput) -> str:
    """Install the SDKs that are missing, without what they require. Raises SetupError."""
    for version, digest in SHA256_BY_VERSION.items():
        folder = get_sdk_folder(version)
        if folder.is_dir():
            continue
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as partial:
            requirement = Path(partial, "requirements.txt")
            requirement.write_text(f"pulumi=={version} --hash=sha256:{digest}\n")
            options = ("--disable-pip-version-check", "--no-input", "--no-deps", "--only-binary=:all:")
            command = (python_environment.PYTHON, "-m", "pip", "install", *options, "-r", requirement)
            progress = output.create_seconds_callback(f"installing Pulumi's SDK {version} for tests, once")
            try:
                run_program(*command, "--target", Path(partial, "sdk"), limit=INSTALL_LIMIT_SECONDS, progress=progress)
            except CommandFailed as error:
                raise SetupError(f"Pulumi SDKs for tests: {version} could not be installed. {error}") from error
            Path(partial, "sdk").rename(folder)
    return describe_if_ready() or ""


def get_sdk_folder(version: str) -> Path:
    """Return the folder in the cache that holds an SDK, for PYTHONPATH."""
    return get_shared_cache_folder() / f"pulumi-sdk-{version}"
