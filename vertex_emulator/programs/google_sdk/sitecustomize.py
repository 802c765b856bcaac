"""What Python does at its start below `vertex-emulator exec`: Google's clients get the emulator as their default.

The SDK and Secret Manager's client read no endpoint from the environment (google-cloud-aiplatform 2.x,
google-cloud-secret-manager 2.x). This file runs in whatever environment the command has, in Python 3.7 or later, so it
imports only what Python has imported by then.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as `typing` has it, which takes 5 ms
if TYPE_CHECKING:
    from typing import Any

_FOLDER = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib takes 10 ms
_URL = os.environ.get("STORAGE_EMULATOR_HOST", "")  # the emulator serves both
_ADDRESS = os.environ.get("VERTEX_EMULATOR_ADDRESS")  # "" where the emulator has no certificate for it
_TOKEN_FILE = os.environ.get("CLOUDSDK_AUTH_ACCESS_TOKEN_FILE")


def _set_defaults(aiplatform: Any) -> None:
    from google.auth.credentials import AnonymousCredentials

    aiplatform.init(
        # Left to itself, it takes the variable for a number, and asks Google which project has it.
        project=os.environ.get("GOOGLE_CLOUD_PROJECT"),
        credentials=AnonymousCredentials(),
        **({"api_endpoint": _ADDRESS} if _ADDRESS else {"api_endpoint": _URL, "api_transport": "rest"}),
    )


def _lead_home(module: Any) -> None:
    """Let Secret Manager's client, made without a word about whom to call or as whom, call the emulator."""
    initialise = module.SecretManagerServiceClient.__init__

    def initialise_led_home(
        self: Any, *, credentials: Any = None, transport: Any = None, client_options: Any = None, **others: Any
    ) -> None:
        given = client_options if isinstance(client_options, dict) else vars(client_options) if client_options else {}
        if credentials is None and not any(map(given.get, ("api_endpoint", "api_key", "credentials_file"))):
            from google.auth.credentials import AnonymousCredentials

            credentials, client_options = AnonymousCredentials(), {**given, "api_endpoint": _ADDRESS or _URL}
            transport = transport or (None if _ADDRESS else "rest")
        initialise(self, credentials=credentials, transport=transport, client_options=client_options, **others)

    module.SecretManagerServiceClient.__init__ = initialise_led_home


def _send_token(credentials: Any) -> None:
    """Let anonymous credentials, which libraries use for emulators, send the emulator its token."""
    with open(_TOKEN_FILE or "") as file:  # noqa: PTH123
        header = "Bearer " + file.read().strip()
    to = (_URL + "/", _URL.replace("http://", "https://") + "/")

    def before_request(_self: Any, _request: Any, _method: str, url: str, headers: Any) -> None:
        if url.startswith(to):
            headers["authorization"] = header

    credentials.AnonymousCredentials.before_request = before_request


_ACTIONS: dict[str, Any] = {
    "google.cloud.aiplatform": _set_defaults,
    "google.cloud.secretmanager_v1.services.secret_manager_service.client": _lead_home,
}
if _TOKEN_FILE:
    _ACTIONS["google.auth.credentials"] = _send_token


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


def _import_next() -> None:
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


if _URL and "VERTEX_EMULATOR_DATA" in os.environ:
    sys.meta_path.insert(0, _ActionsAfterImport())
_import_next()
