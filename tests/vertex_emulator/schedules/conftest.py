"""An emulator with schedules, in memory."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.vertex_emulator.schedules.emulator import SchedulingEmulator, create_emulator


@pytest.fixture
def emulator(tmp_path: Path) -> Iterator[SchedulingEmulator]:
    created = create_emulator(tmp_path)
    created.move_clock("2026-11-22T00:00:00Z")
    yield created
    created.database.close()
