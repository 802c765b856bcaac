"""The emulator in the background: started once, found again, and its reason given where it does not start."""

import fcntl
import gc
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.vertex_emulator.running import command
from vertex_emulator.cli import emulator
from vertex_emulator.cli.emulator import Started
from vertex_emulator.errors import StartError

# It is detached, so nobody waits for it, which Python's own record of child processes would complain about.
pytestmark = pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")

# `serve` holds the lock of its data folder, and says in endpoint.json where it is.
SERVE = """
import fcntl, json, os, pathlib, signal, sys
data = pathlib.Path(sys.argv[sys.argv.index("--data") + 1])
lock = (data / "lock").open("a")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    sys.exit(3)
with (data / "starts").open("a") as starts:
    starts.write(f"{os.getpid()}\\n")
endpoint = {"pid": os.getpid(), "host": "127.0.0.1", "port": 1, "url": "http://127.0.0.1:1"}
endpoint["version"] = " ".join([str(os.getsid(0)), *sys.argv[1:]])
(data / "new.json").write_text(json.dumps(endpoint))
(data / "new.json").rename(data / "endpoint.json")
signal.pause()
"""


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    """A data folder; what serves it is ended."""
    yield tmp_path / "data"
    for pid in started(tmp_path / "data"):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    gc.collect()  # here is where the warning of the processes is expected


def started(data: Path) -> list[int]:
    file = data / "starts"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def start(data: Path, program: str = SERVE, options: Sequence[str] = ()) -> Started:
    return emulator.start(data, options, (sys.executable, "-c", program))


def test_it_has_a_session_and_its_options(data: Path) -> None:
    emulator = start(data, options=["--port", "5"])
    assert emulator.endpoint.version == f"{emulator.endpoint.pid} serve --data {data} --port 5"


def test_concurrent_callers_start_one_emulator(data: Path) -> None:
    found: list[Started] = []
    together = threading.Barrier(4)

    def ask() -> None:
        together.wait()
        found.append(start(data))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({emulator.endpoint for emulator in found}) == len(started(data)) == 1
    assert len([emulator for emulator in found if emulator.process]) == 1


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 1}', '{"url": "http://127.0.0.1:1"}'])
def test_leftovers_of_an_interrupted_emulator_are_ignored(data: Path, content: str) -> None:
    data.mkdir(mode=0o700)
    (data / "gcs").mkdir()
    (data / "endpoint.json").write_text(content)
    assert [start(data).endpoint.pid] == started(data)


def test_the_address_of_a_killed_emulator_is_not_found(data: Path) -> None:
    data.mkdir(mode=0o700)
    (data / "gcs").mkdir()
    killed = {"pid": 1, "host": "127.0.0.1", "port": 1, "url": "http://127.0.0.1:1", "version": "killed"}
    (data / "endpoint.json").write_text(json.dumps(killed))
    locks_and_waits = SERVE.replace("endpoint = {", "import time; time.sleep(0.5)\nendpoint = {", 1)
    assert [start(data, locks_and_waits).endpoint.pid] == started(data)


def test_an_emulator_that_is_ending_is_waited_for(data: Path) -> None:
    data.mkdir(mode=0o700)
    with (data / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found: list[Started] = []
        thread = threading.Thread(target=lambda: found.append(start(data)))
        thread.start()
        thread.join(0.2)
        assert started(data) == []
    thread.join()
    assert [emulator.endpoint.pid for emulator in found] == started(data)


def test_a_start_that_comes_second_finds_the_first(data: Path) -> None:
    loses_once = "import pathlib, sys; lost = pathlib.Path(sys.argv[3]) / 'lost'\n"
    loses_once += "if not lost.exists(): lost.touch(); sys.exit(3)"
    assert [start(data, f"{loses_once}{SERVE}").endpoint.pid] == started(data)


def test_a_failed_start_quotes_its_end(data: Path) -> None:
    data.mkdir(mode=0o700)
    (data / "gcs").mkdir()
    (data / "emulator.log").write_text("an error of last week\n")
    for program, message in (
        (r"import sys; sys.stderr.buffer.write(b'x\nvertex-emulator: caf\xe9 closed\n'); sys.exit(7)", "caf� closed"),
        ("raise SystemExit(7)", "the emulator ends without a word"),
    ):
        with pytest.raises(StartError) as failure:
            start(data, program)
        assert (str(failure.value), failure.value.exit_code) == (message, 7)


def test_an_emulator_without_answer_names_its_log(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulator, "_START_SECONDS", 0.5)
    with pytest.raises(StartError) as failure:
        start(data, "import time; time.sleep(60)")
    assert str(failure.value).endswith(f"its log is {data / 'emulator.log'}")


def test_start_prints_what_env_prints(tmp_path: Path) -> None:
    first = command("start", "--project=mine", "--pids-limit=100", data=tmp_path)
    try:
        again = command("start", "--json", data=tmp_path)
        env = command("env", "--project=mine", data=tmp_path)
    finally:
        stopped = command("stop", data=tmp_path)
    assert (first.returncode, first.stdout) == (0, env.stdout)
    url = json.loads(again.stdout)["STORAGE_EMULATOR_HOST"]
    assert first.stderr == f"vertex-emulator: the emulator is ready on {url}\n"
    assert again.stderr == f"vertex-emulator: the emulator runs already on {url}\n"
    assert stopped.stdout == "stopped\n"


def test_a_relative_path_of_a_variable_is_the_caller_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "keys/key.json")
    tells = "import os, sys; sys.exit(os.environ['GOOGLE_APPLICATION_CREDENTIALS'])"
    with pytest.raises(StartError) as failed:
        emulator.start(tmp_path / "data", program=(sys.executable, "-c", tells))
    assert str(failed.value) == str(tmp_path / "keys" / "key.json")
