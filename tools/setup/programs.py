"""Running other programs: within a time limit, with progress on the terminal; and installing them with apt-get."""

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol, TextIO

MAX_QUOTED_LINES = 8
MAX_READ = 1 << 20
GRACE_SECONDS = 10
FIRST_PROGRESS_SECONDS = 3
PROGRESS_INTERVAL_SECONDS = 30
STALE_SECONDS = 2
UPDATE_LIMIT_SECONDS = 180
INSTALL_LIMIT_SECONDS = 600
MAX_FILE_BYTES = 2 << 30
"""Several times the largest file of a set-up. A download without an end would fill the disk before its time is over."""
PYTHON_MEMORY, COMPILER_MEMORY = 2 << 30, 8 << 30
"""Bytes of memory, for `run`: of pip and Pulumi's installer, and of Go, whose compiler reserves more than it uses."""
_interrupted = threading.Event()
_apt = threading.Lock()
"""apt-get and dpkg refuse to run twice at a time."""


class Progress(Protocol):
    """Shows how far some work is: after so many seconds, and so many lines of a program's standard error."""

    def __call__(self, seconds: float, lines: int = 0) -> None: ...


def no_progress(seconds: float, lines: int = 0) -> None:
    """Show nothing."""


class CommandFailed(Exception):
    """A program could not be started, failed, or took too long; the message ends with its last lines."""


class SetupError(Exception):
    """A step failed; the message says why and what the user can do about it."""


class Interrupted(Exception):
    """The program was ended because another step of the set-up has failed or was interrupted."""


@contextlib.contextmanager
def interruptible() -> Iterator[Callable[[], None]]:
    """Give a function that ends the programs that any thread runs, until this context ends."""
    _interrupted.clear()
    try:
        yield _interrupted.set
    finally:
        _interrupted.clear()


def check_interrupted() -> None:
    """Raise Interrupted if the set-up is to end. Whoever waits calls it again and again."""
    if _interrupted.is_set():
        raise Interrupted


def run(
    *command: str | Path,
    limit: float,
    progress: Progress = no_progress,
    env: Mapping[str, str] | None = None,
    folder: Path | None = None,
    undisturbed: bool = False,
    memory: int = 0,
) -> str:
    """Run `command` and return its standard output, stripped. Raises CommandFailed, and Interrupted.

    `limit` is in seconds; `progress` is called about twice a second. At the limit, and on Ctrl-C, the program and
    its children are ended; what is `undisturbed` goes on when another step fails or the user
    interrupts the set-up. On Linux, what downloads something gets so many bytes of `memory`, and writes no file beyond
    `MAX_FILE_BYTES`, whatever a server sends.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env, cwd=folder, start_new_session=True
            )
        except OSError as error:
            raise CommandFailed(f"{command[0]}: {error.strerror}") from error
        if memory and sys.platform == "linux":
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (MAX_FILE_BYTES, MAX_FILE_BYTES))
                resource.prlimit(process.pid, resource.RLIMIT_AS, (memory, memory))
        code = _await_exit(process, err.fileno(), limit, progress, undisturbed)
        for output in (out, err):
            output.seek(0)
        stdout, stderr = (output.read().decode(errors="replace") for output in (out, err))
    if code != 0:
        name = " ".join([Path(command[0]).name, *map(str, command[1:2])])
        outcome = f"was stopped after {limit:g} s" if code is None else f"ended with exit code {code}"
        raise CommandFailed(f"`{name}` {outcome}{last_lines(stdout + stderr)}")
    return stdout.strip()


def last_lines(program_output: str) -> str:
    """Return the last lines of a program's output, each on an indented line of its own, to append to a message."""
    lines = [line for line in program_output.splitlines() if line.strip()][-MAX_QUOTED_LINES:]
    return "".join(f"\n    {line}" for line in lines)


def _await_exit(
    process: subprocess.Popen[bytes], errors: int, timeout: float, progress: Progress, undisturbed: bool
) -> int | None:
    started = time.monotonic()
    lines = read = 0
    try:
        while (passed := time.monotonic() - started) < timeout:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(timeout=min(0.5, timeout - passed))
            # The program goes on writing where it is, so this reads from a place of its own.
            text = os.pread(errors, MAX_READ, read)
            lines, read = lines + text.count(b"\n"), read + len(text)
            progress(time.monotonic() - started, lines)
            if not undisturbed:
                check_interrupted()
        return None
    finally:
        if process.poll() is None:
            _terminate(process)


def _terminate(process: subprocess.Popen[bytes]) -> None:
    """Send SIGTERM first, so that a program can undo its mounts and temporary files."""
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(timeout=GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Output:
    """Writes lines to a stream; on a terminal, the progress of all that runs is one line that is overwritten."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._shown: dict[str, tuple[float, str]] = {}
        """By label: when it was shown last, and as what."""

    def say(self, text: str) -> None:
        """Write one line that stays, over the progress on a terminal."""
        print(("\r\033[K" if self._is_terminal else "") + text, file=self._stream, flush=True)

    def progress(self, label: str, counted: str = "") -> Progress:
        """Return a function to call again and again, with the seconds passed, while the work that `label` names runs.

        `counted` is shown too, with the number of lines of the program in place of its `{}`. On a terminal it shows
        every call. Elsewhere (a CI log) it writes a line after 3 s, then every 30 s.
        """
        next_seconds = float(FIRST_PROGRESS_SECONDS)

        def show_progress(seconds: float, lines: int = 0) -> None:
            nonlocal next_seconds
            text = f"{label} ... {seconds:.0f} s" + (", " + counted.format(lines) if counted else "")
            if self._is_terminal:
                self._show(label, text)
            elif seconds >= next_seconds:
                next_seconds = (seconds // PROGRESS_INTERVAL_SECONDS + 1) * PROGRESS_INTERVAL_SECONDS
                print(text, file=self._stream, flush=True)

        return show_progress

    def _show(self, label: str, text: str) -> None:
        """Show a step's progress beside that of the other one; what says nothing for two seconds has ended."""
        now = time.monotonic()
        self._shown[label] = now, text
        self._shown = {name: each for name, each in self._shown.items() if now - each[0] < STALE_SECONDS}
        width = shutil.get_terminal_size().columns - 1
        line = " | ".join(text for _, text in self._shown.values())
        print(f"\r\033[K{line[:width]}", end="", file=self._stream, flush=True)


def can_install() -> bool:
    """Return whether `apt-get` exists and this user may install with it."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install_packages(output: Output, *packages: str) -> None:
    """Install Debian's packages with `apt-get`. Raises CommandFailed."""
    with _apt:
        _update(output)
        _install(output, *packages)


def install_first(output: Output, *packages: str) -> str:
    """Install the first of some packages that `apt-get` has for this machine, and return it. Raises CommandFailed.

    No other package is removed for it.
    """
    reasons = []
    with _apt:
        _update(output)
        for package in packages:
            try:
                _install(output, "--no-remove", package)
                return package
            except CommandFailed as error:
                reasons.append(str(error))
    raise CommandFailed("; ".join(reasons))


def _update(output: Output) -> None:
    progress = output.progress("reading apt-get's lists")
    run("apt-get", "update", "-q", limit=UPDATE_LIMIT_SECONDS, env=_apt_environment(), progress=progress)


def _install(output: Output, *arguments: str) -> None:
    packages = [each for each in arguments if not each.startswith("-")]
    # A package that is half installed would have to be mended by hand.
    run(
        *("apt-get", "install", "-q", "-y", *arguments),
        limit=INSTALL_LIMIT_SECONDS,
        env=_apt_environment(),
        progress=output.progress(f"installing {', '.join(packages)} with apt-get"),
        undisturbed=True,
    )


def _apt_environment() -> dict[str, str]:
    return {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
