"""The process whose forks stand for those of `pulumi`: it outlives all that happens to its clients."""

import json
import os
import selectors
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.preloaded_python import _Fork, _hold, get_variables
from tests.engine.project import CHECKOUT
from tests.vertex_emulator.running import PATIENCE_SECONDS

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="all processes are started there")


def test_a_client_that_goes_does_no_harm() -> None:
    ours, client = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    with selectors.DefaultSelector() as selector:
        _Fork(pid, ours, selector)
        client.close()
        events = []
        while len(events) < 2:
            events = selector.select()
        for key, _ in sorted(events, key=lambda event: event[0].fileobj is ours):
            key.data()
        assert not selector.get_map()


def fork_for(script: Path, stdin: int) -> socket.socket:
    """Let the server fork a process that runs a script, as `startup/sitecustomize.py` does; return the connection."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client.connect(get_variables()["PRELOADED_PYTHON"])
    process = ([sys.executable, str(script)], {}, str(script.parent), os.getppid())
    socket.send_fds(client, [ascii(process).encode()], [stdin, 2, 2])
    return client


def test_a_fork_inherits_no_files_of_others(tmp_path: Path) -> None:
    waiting, listing = tmp_path / "waiting.py", tmp_path / "listing.py"
    waiting.write_text("import sys; sys.stdin.read()")
    listing.write_text(
        "import json, os, pathlib\n"
        "found = [os.readlink(entry.path) for entry in os.scandir('/proc/self/fd') if int(entry.name) > 2]\n"
        "pathlib.Path('files.json').write_text(json.dumps(found))\n"
    )
    stdin, our_end = os.pipe()
    with fork_for(waiting, stdin) as first, fork_for(listing, stdin) as second:
        os.close(stdin)
        assert second.recv(16) == b"0"
        os.close(our_end)
        assert first.recv(16) == b"0"
    found = json.loads((tmp_path / "files.json").read_text())
    assert [name for name in found if not name.startswith("/proc/")] == []


def test_forks_exit_as_python_does(tmp_path: Path) -> None:
    script = tmp_path / "ends.py"
    stdin, our_end = os.pipe()
    codes = {"": b"0", "sys.exit()": b"0", "sys.exit(7)": b"7", "sys.exit('a text')": b"1", "1 / 0": b"1"}
    for line, code in codes.items():
        script.write_text(
            f"import atexit, sys, threading, time\n"
            f"atexit.register(print, 'exits', file=open({str(tmp_path / 'exits')!r}, 'w'), flush=True)\n"
            f"threading.Thread(target=lambda: (time.sleep(0.1), open({str(tmp_path / 'thread')!r}, 'w'))).start()\n"
            f"{line}\n"
        )
        with fork_for(script, stdin) as client:
            assert client.recv(16) == code, line
        for name in ("exits", "thread"):
            (tmp_path / name).unlink()
    os.close(stdin)
    os.close(our_end)


def test_a_server_ends_with_the_last_process_that_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    serve = (
        "from tests.engine import preloaded_python as served; served._import_modules = lambda: None; served.serve({!r})"
    )
    server = subprocess.Popen([sys.executable, "-c", serve.format(str(path))], cwd=CHECKOUT, stdout=subprocess.PIPE)
    assert server.stdout is not None and server.stdout.readline() == b"ready\n"
    first, second = _hold(path), _hold(path)
    assert first and second
    first.close()
    third = _hold(path)
    assert third
    third.close()
    second.close()
    assert server.wait(PATIENCE_SECONDS) == 0 and not path.exists() and _hold(path) is None
    server.stdout.close()
