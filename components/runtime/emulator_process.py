"""The emulator as a process: found, started where none runs, and stopped.

It is detached: in a session of its own with all three streams redirected, or the engine would kill it together with the
provider, or wait for its pipes to close.
"""

import contextlib
import fcntl
import http.client
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from ..errors import EmulatorFailed

START_SECONDS = 15.0
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Past the proxies that are set for the internet."""
_PROJECT = Path(__file__).parents[2]


def data_folder() -> Path:
    """Where the emulator keeps its jobs, logs and buckets: `.emulator` in the project, or `VERTEX_EMULATOR_DATA`."""
    return Path(os.environ.get("VERTEX_EMULATOR_DATA") or ".emulator").absolute()


def url(port: int | None = None) -> str:
    """The URL of the running emulator, which is started when it does not run. Raises EmulatorFailed."""
    return _running() or _start(port)


def stop(*, only_if_idle: bool = False) -> None:
    """Stops the emulator; with `only_if_idle` it goes on while jobs are active in it, and says so."""
    command = [*_command("stop"), *(["--if-idle"] if only_if_idle else [])]
    done = subprocess.run(command, cwd=_PROJECT, env=_environment(), capture_output=True, text=True, check=False)
    if done.stdout.strip():
        print(done.stdout.strip(), flush=True)  # noqa: T201
    if done.returncode:
        raise EmulatorFailed(f"the emulator does not stop: {_last_line(done.stderr)}")


def _running() -> str | None:
    try:
        found = str(json.loads((data_folder() / "endpoint.json").read_text())["url"])
        with _DIRECT.open(f"{found}/healthz", timeout=5):
            return found
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
        return None


def _start(port: int | None) -> str:
    data = data_folder()
    try:
        data.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EmulatorFailed(f"the emulator's folder {data} cannot be made: {error.strerror}") from error
    with _one_at_a_time(data):
        if found := _running():
            return found
        log = data / "emulator.log"
        with log.open("ab") as stream:
            written = stream.tell()
            process = subprocess.Popen(
                [*_command("serve"), *([f"--port={port}"] if port else [])],
                cwd=_PROJECT,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if found := _running():
                return found
            if process.poll() is not None:
                raise EmulatorFailed(
                    f"the emulator does not start: {_last_line(log.read_bytes()[written:].decode(errors='replace'))}"
                )
            time.sleep(0.05)
        process.kill()
        raise EmulatorFailed(f"the emulator does not answer after {START_SECONDS:.0f} s; its log is {log}")


def _command(verb: str) -> list[str]:
    return [sys.executable, "-m", "vertex_emulator", verb, f"--data={data_folder()}"]


def _environment() -> dict[str, str]:
    """Without what Pulumi tells its plugins, which holds the stack's secrets."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PULUMI_")}


@contextlib.contextmanager
def _one_at_a_time(data: Path) -> Iterator[None]:
    with (data / "start.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "it says nothing")
