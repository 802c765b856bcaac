"""The process whose forks stand for those of `pulumi`: it outlives all that happens to its clients."""

import json
import os
import selectors
import socket
import sys
from pathlib import Path

import pytest

from tests.engine.preloaded_python import _Fork, get_variables

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
    process = {"orig_argv": [sys.executable, str(script)], "environ": {}, "cwd": str(script.parent)}
    socket.send_fds(client, [json.dumps(process).encode()], [stdin, 2, 2])
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
