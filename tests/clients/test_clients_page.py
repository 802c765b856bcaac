"""docs/clients.md: its snippets run as they stand, in the order of the page."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.blocks import taken
from tests.vertex_emulator.running import RunningEmulator

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "clients.md").read_text()


@pytest.fixture
def shell(emulator: RunningEmulator) -> Mapping[str, str]:
    """A shell beside a running emulator, where `python` is the project's."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "VERTEX_EMULATOR_DATA": str(emulator.data)}


def run(script: str, shell: Mapping[str, str], folder: Path) -> str:
    """What a shell prints that stops at the first error."""
    done = subprocess.run(["sh", "-euc", script], env=shell, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(shutil.which("gcloud") is None, reason="gcloud is not installed")
def test_the_shell_snippets_run_a_job(shell: Mapping[str, str], tmp_path: Path) -> None:
    printed = run("".join(taken("docs/clients.md", "sh")), shell, tmp_path)
    assert "workerpool0-0  written" in printed
    assert printed.endswith("JOB_STATE_SUCCEEDED\nhello")


def test_the_python_snippets_run_in_such_a_shell(shell: Mapping[str, str], tmp_path: Path) -> None:
    (tmp_path / "all.py").write_text("\n".join(taken("docs/clients.md", "python")))
    printed = run(taken("docs/clients.md", "sh")[0] + "python all.py", shell, tmp_path)
    assert "\nJOB_STATE_SUCCEEDED\n" in printed
    assert "\n0.25\n" in printed
    assert "data/train.csv" in printed
    assert "customJobs" in printed


def test_every_file_it_links_to_exists() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", PAGE)
    assert links
    assert [link for link in links if not (ROOT / "docs" / link).exists()] == []
