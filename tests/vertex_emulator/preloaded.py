"""`vertex-emulator` in processes that are forked from one which has imported it already.

Such a process is another one in nothing else, and a start costs a tenth of the processor's time.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import forkserver, get_context
from pathlib import Path
from unittest import mock

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
        given = (list(arguments), dict(os.environ), output, errors, prepare)
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


def _run(
    arguments: list[str],
    environment: Mapping[str, str],
    output: Path,
    errors: Path,
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

    if prepare is not None:
        prepare()
    sys.exit(main())
