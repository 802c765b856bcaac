"""A project in a folder of its own, run by the real `pulumi` on a file backend, with an emulator of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A project that declares one tiny job, `train`; no process or container of it is left afterwards."""
    made = Project(tmp_path)
    yield made
    made.emulator("stop")
    made.emulator("reset", "--yes")
