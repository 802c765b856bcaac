"""A project with a stack for each target."""

import os
import subprocess
from pathlib import Path
from unittest import mock

import pytest
from vertex_training.rehearsal import target
from vertex_training.runtime import emulator

from tests.vertex_emulator.preloaded import ForkedProcess
from tests.vertex_emulator.running import command, until
from vertex_emulator.data_folder import STARTED, DataFolder

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


@pytest.fixture(autouse=True)
def _forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """`vertex-emulator` is forked from a process that has imported it; commands that signals end start real ones."""

    def run(verb: str, *options: str) -> subprocess.CompletedProcess[str]:
        data = emulator.emulator_data()
        if verb != "start":
            return command(verb, data=data, after=options)
        log = DataFolder.open(data).emulator_log
        with mock.patch.dict(os.environ, {STARTED: "1"}):
            process = ForkedProcess(["serve", "--data", str(data), *options], log, log)
        until(lambda: process.poll() is not None or emulator.find(data), "the start of an emulator")
        return subprocess.CompletedProcess(process.args, process.poll() or 0, "", log.read_text())

    def refusal(verb: str, folder: Path, *options: str) -> str:
        done = command(verb, data=folder, after=options)
        return done.stderr if done.returncode else ""

    monkeypatch.setattr(emulator, "_run", run)
    monkeypatch.setattr(target, "_command", refusal)
