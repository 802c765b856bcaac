"""Emulators for tests: real ones, and one on a machine in memory."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ports import reserve_port
from tests.vertex_emulator.fakes import Clock, Emulator, Machine, use_clock
from tests.vertex_emulator.running import RunningEmulator


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEmulator]:
    """One emulator for all tests that leave it as they found it, but for their jobs."""
    emulator = RunningEmulator(tmp_path_factory.mktemp("shared") / "data")
    yield emulator
    emulator.close()


@pytest.fixture
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEmulator]:
    """An emulator that a test may stop, kill and start again."""
    emulator = RunningEmulator(tmp_path_factory.mktemp("own") / "data")
    yield emulator
    emulator.close()


@pytest.fixture
def own_on_reserved_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEmulator]:
    """One like `own`, whose port nobody else gets while it is down."""
    with reserve_port() as port:
        emulator = RunningEmulator(tmp_path_factory.mktemp("own") / "data", f"--port={port}")
        yield emulator
        emulator.close()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    clock = Clock()
    use_clock(clock, monkeypatch)
    return Machine(clock)


@pytest.fixture
def emulator(tmp_path: Path, machine: Machine) -> Emulator:
    """An emulator on a machine in memory."""
    return Emulator(tmp_path, machine)
