"""An emulator for the examples of a file."""

from collections.abc import Iterator

import pytest

from tests.examples.running import ROOT
from tests.vertex_emulator.running import RunningEmulator


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEmulator]:
    """The emulator that VERTEX_EMULATOR_DATA leads to, for declarations of the checkout."""
    emulator = RunningEmulator(tmp_path_factory.mktemp("examples") / "data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VERTEX_EMULATOR_DATA", str(emulator.data))
        patch.chdir(ROOT)
        yield emulator
    emulator.close()
