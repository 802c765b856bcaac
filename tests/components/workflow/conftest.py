"""The emulator, as the training API of workflows."""

from tests.vertex_emulator.conftest import shared

__all__ = ["shared"]
