"""Runs first in each Python process that `pulumi` starts in a test, or that a test starts with its variables.

The heap of a program or a provider of a few resources is not worth collecting: that is a sixth of its processor time.
An emulator, which they start too, collects its own. For the variables see tests/engine/preloaded_python.py.
"""

import gc
import os
import sys

_FORKED = ("pulumi.dynamic", "pulumi-language-python-exec", "vertex_training.cli", "/bin/vertex-training")
"""How the argument ends that names what is run: a provider, a program, or a command of ours."""


def _run_in_fork(path: str) -> None:
    """Let a process that has imported all do what this one was started for, and exit as it does.

    Its own imports would take longer than the rest: hence these modules, and a literal in place of JSON.
    """
    import _signal
    import _socket

    server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    server.connect(path)
    folder = os.getcwd()  # noqa: PTH109 - pathlib takes 10 ms
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
    message = ascii((sys.orig_argv, dict(os.environ), folder, os.getppid())).encode()
    server.sendmsg([message], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
    for number in (_signal.SIGINT, _signal.SIGTERM):
        _signal.signal(number, lambda number, _: server.send(str(number).encode()))
    os._exit(int(server.recv(16) or 1))


def _would_import_the_same(checkout: str) -> bool:
    """Return whether the project in this folder has the environment of the checkout, and no package of its own."""
    return os.path.realpath(".venv") == f"{checkout}/.venv" and not os.path.exists("vertex_api")  # noqa: PTH110


if "vertex_emulator" not in sys.orig_argv:
    gc.disable()
if any(argument.endswith(_FORKED) for argument in sys.orig_argv[1:4]):
    server_path = os.environ.get("PRELOADED_PYTHON")
    if server_path and _would_import_the_same(os.environ["PRELOADED_CHECKOUT"]):
        _run_in_fork(server_path)
