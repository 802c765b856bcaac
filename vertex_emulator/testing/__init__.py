"""The emulator in tests: `run_emulator` for any of them, and a plugin of pytest with the fixture `vertex_emulator`.

pytest imports the plugin wherever this package is installed, so nothing is imported here before it is used.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vertex_emulator.testing.project import EmulatorProject, run_emulator

__all__ = ["EmulatorProject", "run_emulator"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from vertex_emulator.testing import project

    return getattr(project, name)
