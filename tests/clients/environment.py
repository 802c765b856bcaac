"""The environment that `vertex-emulator env` makes, read back from a real shell."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.vertex_emulator.running import command

_OURS = (
    "CLOUDSDK_",
    "STORAGE_",
    "GOOGLE_",
    "GCSFS_",
    "GRPC_",
    "REQUESTS_",
    "VERTEX_EMULATOR_",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
)


def variables(data: Path, given: Mapping[str, str], *options: str) -> dict[str, str]:
    """All variables of a shell that was started with `given` and evaluated the output for a data folder."""
    start = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)} | dict(given)
    script = 'eval "$("$0" -m vertex_emulator env "$@")" && exec env -0'
    done = subprocess.run(
        ["sh", "-c", script, sys.executable, "--data", str(data), *options],
        env=start,
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(line.split("=", 1) for line in done.stdout.split("\0") if line)


def snippet(data: Path) -> str:
    """The Python lines that the output holds as comments."""
    done = command("env", data=data)
    assert done.returncode == 0, done.stderr
    return "\n".join(line.removeprefix("#   ") for line in done.stdout.splitlines() if line.startswith("#   "))
