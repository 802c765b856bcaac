"""The emulator in tests: `run_emulator` for any of them, and a plugin of pytest with the fixture `vertex_emulator`.

pytest imports the plugin wherever this package is installed, so nothing is imported here before it is used.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vertex_emulator.testing.emulator_context_manager import run_emulator
    from vertex_emulator.testing.project_with_client_arguments import EmulatorProject

__all__ = ["EmulatorProject", "run_emulator"]


def __getattr__(name: str) -> Any:
    if name == "EmulatorProject":
        from vertex_emulator.testing.project_with_client_arguments import EmulatorProject

        return EmulatorProject
    if name == "run_emulator":
        from vertex_emulator.testing.emulator_context_manager import run_emulator

        return run_emulator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
