"""`vertex-emulator` in processes that are forked from one which has imported it already.

Such a process is another one in nothing else, and a start costs a tenth of the processor's time. The certificates that
a data folder gets are those that were made for the first one here; tests of `inside/authority.py` make their own.
"""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from multiprocessing import forkserver, get_context
from pathlib import Path
from unittest import mock

from vertex_emulator.inside import authority

_CONTEXT = get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        "docker",
        "uvicorn.lifespan.off",
        "uvicorn.loops.auto",
        "vertex_emulator.server",
        "vertex_emulator.cli.main",
        "vertex_emulator.cli.environment",
        "vertex_emulator.cli.emulator",
        "vertex_emulator.cli.logs",
        "vertex_emulator.inside.authority",
        "vertex_emulator.pruning",
        __name__,
    ]
)


class ForkedProcess:
    """A process that runs `vertex-emulator` with arguments, in a session of its own; has the methods of Popen."""

    def __init__(
        self, arguments: Sequence[str], output: Path, errors: Path, prepare: Callable[[], object] | None = None
    ) -> None:
        """Start it; what it prints is appended to the files `output` and `errors`. `prepare` is called in it first."""
        given = (list(arguments), dict(os.environ), output, errors, _certificates(), prepare)
        with mock.patch("tempfile.tempdir", None):  # a folder of a test has too long a name for the server's socket
            forkserver.ensure_running()
        self._process = _CONTEXT.Process(target=_run, args=given, daemon=True)
        self._process.start()
        assert self._process.pid is not None
        self.args, self.pid = list(arguments), self._process.pid

    def poll(self) -> int | None:
        """Return the exit code, and None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code once it has ended; raises TimeoutExpired."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()


@cache
def _certificates() -> Path:
    """Return the file with what the program of certificates prints, which takes a fifth of a second each time."""
    folder = Path(tempfile.mkdtemp(prefix="vertex-certificates-"))
    atexit.register(shutil.rmtree, folder)
    folder.chmod(0o755)  # some processes become another user's
    path = folder / "certificates"
    path.write_bytes(subprocess.run(authority.MAKE, stdout=subprocess.PIPE, check=True).stdout)
    return path


def _run(
    arguments: list[str],
    environment: Mapping[str, str],
    output: Path,
    errors: Path,
    certificates: Path,
    prepare: Callable[[], object] | None,
) -> None:
    os.setsid()
    for path, number in ((output, 1), (errors, 2)):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["vertex-emulator", *arguments]
    from vertex_emulator.cli.main import main

    authority.MAKE = ["cat", str(certificates)]
    if prepare is not None:
        prepare()
    sys.exit(main())
