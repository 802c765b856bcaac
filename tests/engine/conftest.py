"""Projects in folders of their own, run by the real `pulumi` on a file backend, on an emulator or the target gcp."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.cloud import CloudProject, create_cloud_project
from tests.engine.project import Project, create_project
from tests.vertex_emulator.running import RunningEmulator


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A project that declares one tiny job, `train`; none of its processes and containers is left afterwards."""
    with create_project(tmp_path) as project:
        yield project


@pytest.fixture(scope="module")
def vertex(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEmulator]:
    """An emulator that takes the jobs in place of Vertex AI."""
    emulator = RunningEmulator(tmp_path_factory.mktemp("vertex") / "data")
    yield emulator
    emulator.close()


@pytest.fixture
def cloud(tmp_path: Path, vertex: RunningEmulator) -> CloudProject:
    """A stack `dev` of the target gcp with one job, whose image was built elsewhere."""
    return create_cloud_project(tmp_path, vertex)
