"""What Pulumi reports of a provider's error: its text, without a traceback."""

import sys

from ..errors import ComponentError


class _TextOfCurrentError:
    """Takes the place of the module `traceback` in Pulumi's host of dynamic providers."""

    @staticmethod
    def format_exc() -> str:
        error = sys.exception()
        return str(error) if isinstance(error, ComponentError) else f"{type(error).__name__}: {error}"


def report_errors_without_traceback() -> None:
    """Let the host report an error's own text, as it does up to SDK 3.259.

    From 3.260 on, it reports `traceback.format_exc()`, and has no setting for that (`pulumi/dynamic/__main__.py`).
    """
    host = sys.modules["__main__"]
    if hasattr(host, "_abort_with_traceback"):
        host.traceback = _TextOfCurrentError  # type: ignore[attr-defined]
