"""What Python does at its start in a container of a replica that is debugged: it starts debugpy before the program.

This file runs in whatever environment the container has, in Python 3.7 or later, so it imports only what Python has
imported by then.
"""

from __future__ import annotations

import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib takes 10 ms
_DEBUGGER = "VERTEX_EMULATOR_DEBUGGER"  # PORT,SOCKET,wait or PORT,SOCKET, as replicas/debugger.py sets it
_OLDEST_DEBUGGED = (3, 10)  # found by trying debugpy 1.8.22, whose metadata says 3.8


def _import_next() -> None:
    """Import the sitecustomize that this one hides."""
    # As in google_sdk/sitecustomize.py, which a container does not have.
    sys.path[:] = [folder for folder in sys.path if folder != _FOLDER]
    this = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        if this is not None:
            sys.modules.setdefault("sitecustomize", this)


def _start_debugger() -> None:
    """Start debugpy, and leave the environment to child processes as if it had not been started: debugpy finds them."""
    if _is_pip(getattr(sys, "orig_argv", sys.argv)):
        return  # an installation before the program, which needs the port
    port, ready_socket, mode = os.environ.pop(_DEBUGGER).split(",")
    folders = [folder for folder in os.environ.pop("PYTHONPATH", "").split(os.pathsep) if folder != _FOLDER]
    if folders:
        os.environ["PYTHONPATH"] = os.pathsep.join(folders)
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")  # which warns in each log
    libraries = os.path.join(os.path.dirname(_FOLDER), "libraries")  # noqa: PTH118, PTH120
    sys.path.insert(0, libraries)
    try:
        if sys.version_info < _OLDEST_DEBUGGED:
            raise RuntimeError("debugpy needs Python " + ".".join(map(str, _OLDEST_DEBUGGED)))
        import debugpy

        debugpy.listen(("127.0.0.1", int(port)))
        _announce(ready_socket)
        if mode == "wait":
            debugpy.wait_for_client()
    except Exception as error:  # noqa: BLE001 - the program has to run, with or without it
        sys.stderr.write(f"vertex-emulator: this Python process is not debugged: {error}\n")
    finally:
        sys.path[:] = [folder for folder in sys.path if folder != libraries]


def _announce(abstract_socket_name: str) -> None:
    """Tell the emulator that it may connect: a connection while debugpy's adapter starts ends its accepting thread."""
    import socket

    bound = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    bound.bind("\0" + abstract_socket_name)
    bound.set_inheritable(True)  # a program that replaces this one has the same adapter
    bound.detach()


def _is_pip(command: list[str]) -> bool:
    for word, following in zip(command[1:], [*command[2:], ""]):  # noqa: B905 - Python 3.10
        if word == "-m":
            return following == "pip"
        if not word.startswith("-"):
            return os.path.basename(word).rstrip("0123456789.") == "pip"  # noqa: PTH119
    return False


_import_next()
if _DEBUGGER in os.environ:
    _start_debugger()
