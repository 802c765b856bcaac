"""A project with a stack for each target."""

from pathlib import Path

import pytest

from .declared import CLOUD, LOCAL, PROJECT, Write


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes the jobs of a project in the current folder, with a stack for each target."""
    folder = tmp_path / "project"
    (folder / "stacks").mkdir(parents=True)
    (folder / "Pulumi.yaml").write_text(PROJECT)
    (folder / "stacks" / "Pulumi.local.yaml").write_text(LOCAL)
    (folder / "stacks" / "Pulumi.dev.yaml").write_text(CLOUD)
    monkeypatch.chdir(folder)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    return lambda jobs: (folder / "jobs.yaml").write_text(f"vars: {{code: 0}}\ncustomJobs:\n{jobs}") and None
