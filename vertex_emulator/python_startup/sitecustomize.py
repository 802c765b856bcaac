"""What Python does at its start below `vertex-emulator exec`: Google's SDK gets the emulator as its default.

The SDK reads no endpoint from the environment (google-cloud-aiplatform 2.x). In a container of a replica that is
debugged, Python starts debugpy instead. This file runs in whatever environment the command or the container has, in
Python 3.7 or later, so it imports only what Python has imported by then.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as `typing` has it, which takes 5 ms
if TYPE_CHECKING:
    from typing import Any

_FOLDER = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib takes 10 ms
_URL = os.environ.get("STORAGE_EMULATOR_HOST", "")  # the emulator serves both
_DEBUGGER = "VERTEX_EMULATOR_DEBUGGER"  # PORT,SOCKET,wait or PORT,SOCKET, as replicas/debugpy_injection.py sets it
_OLDEST_DEBUGGED = (3, 10)  # found by trying debugpy 1.8.22, whose metadata says 3.8
_TOKEN_FILE = os.environ.get("CLOUDSDK_AUTH_ACCESS_TOKEN_FILE")


def _set_sdk_defaults(aiplatform: Any) -> None:
    from google.auth.credentials import AnonymousCredentials

    aiplatform.init(api_endpoint=_URL, api_transport="rest", credentials=AnonymousCredentials())


def _let_anonymous_credentials_send_token(credentials: Any) -> None:
    """Let anonymous credentials, which libraries use for emulators, send the emulator its token."""
    with open(_TOKEN_FILE or "") as file:  # noqa: PTH123
        header = "Bearer " + file.read().strip()

    def before_request(_self: Any, _request: Any, _method: str, url: str, headers: Any) -> None:
        if url.startswith(_URL + "/"):
            headers["authorization"] = header

    credentials.AnonymousCredentials.before_request = before_request


_ACTIONS: dict[str, Any] = {"google.cloud.aiplatform": _set_sdk_defaults}
if _TOKEN_FILE:
    _ACTIONS["google.auth.credentials"] = _let_anonymous_credentials_send_token


class _ActionsAfterImport:
    """A finder of modules that lets the others find them, and adds an action to the end of their import."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in _ACTIONS:
            return None
        others = (finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec"))
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in others)), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_with_action(module: Any) -> None:
                execute(module)
                _ACTIONS[name](module)

            spec.loader.exec_module = execute_with_action  # type: ignore[method-assign]
        return spec


def _import_next_sitecustomize() -> None:
    """Import the sitecustomize that this one hides."""
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


def _start_debugger_unless_pip() -> None:
    """Start debugpy, and leave the environment to child processes as if it had not been started: debugpy finds them."""
    if _is_pip_command(getattr(sys, "orig_argv", sys.argv)):
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
        _bind_until_process_ends(ready_socket)
        if mode == "wait":
            debugpy.wait_for_client()
    except Exception as error:  # noqa: BLE001 - the program has to run, with or without it
        sys.stderr.write(f"vertex-emulator: this Python process is not debugged: {error}\n")
    finally:
        sys.path[:] = [folder for folder in sys.path if folder != libraries]


def _bind_until_process_ends(abstract_socket_name: str) -> None:
    """Tell the emulator that it may connect: a connection while debugpy's adapter starts ends its accepting thread."""
    import socket

    bound = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    bound.bind("\0" + abstract_socket_name)
    bound.set_inheritable(True)  # a program that replaces this one has the same adapter
    bound.detach()


def _is_pip_command(command: list[str]) -> bool:
    for word, following in zip(command[1:], [*command[2:], ""]):  # noqa: B905 - Python 3.10
        if word == "-m":
            return following == "pip"
        if not word.startswith("-"):
            return os.path.basename(word).rstrip("0123456789.") == "pip"  # noqa: PTH119
    return False


if _URL and "VERTEX_EMULATOR_DATA" in os.environ:  # not in a container
    sys.meta_path.insert(0, _ActionsAfterImport())
_import_next_sitecustomize()
if _DEBUGGER in os.environ:
    _start_debugger_unless_pip()
