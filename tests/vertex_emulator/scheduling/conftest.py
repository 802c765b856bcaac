"""An emulator on a machine in memory."""

from pathlib import Path

import pytest

from tests.vertex_emulator.fakes import Clock, Emulator, Machine, use_clock


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    clock = Clock()
    use_clock(clock, monkeypatch)
    return Machine(clock)


@pytest.fixture
def emulator(tmp_path: Path, machine: Machine) -> Emulator:
    return Emulator(tmp_path, machine)
