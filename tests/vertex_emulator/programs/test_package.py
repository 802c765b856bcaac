"""The program that runs in an executor image, run here with a pip that only writes down how it is called."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.vertex_emulator.running import until
from vertex_emulator.programs import package

ANEW = ["install", "--upgrade", "--force-reinstall", "--no-deps"]
# Fails unless it is given the flag that PIP_NEEDS names.
PIP = """
import json, os, sys, time
with open(os.environ["CALLS"], "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
time.sleep(float(os.environ.get("PIP_SECONDS", "0")))
sys.exit(0 if os.environ.get("PIP_NEEDS", "") in " ".join(sys.argv) else 7)
"""


class Runner:
    """The program in a folder with that pip and a module `task` that prints its arguments."""

    def __init__(self, folder: Path) -> None:
        self._calls = folder / "calls"
        self._calls.touch()
        (folder / "pip").mkdir()
        (folder / "pip" / "__init__.py").touch()
        (folder / "pip" / "__main__.py").write_text(PIP)
        (folder / "task.py").write_text("import sys; print('ran', sys.argv[1:])")
        self._environment = {**os.environ, "PYTHONPATH": str(folder), "CALLS": str(self._calls)}

    def start(self, uris: list[str], *arguments: str, **environment: str) -> subprocess.Popen[str]:
        program = Path(package.__file__).read_text()
        return subprocess.Popen(
            [sys.executable, "-c", program, json.dumps(uris), "task", *arguments],
            env=self._environment | environment,
            stdout=subprocess.PIPE,
            text=True,
        )

    def calls(self) -> list[list[str]]:
        """What pip was called with, without `--user`: it is not used in a virtual environment."""
        calls = [json.loads(line) for line in self._calls.read_text().splitlines()]
        return [[word for word in call if word != "--user"] for call in calls]


def test_module_alone_is_debugged(runner: Runner, tmp_path: Path) -> None:
    show = "import os; print(os.environ.get('VERTEX_EMULATOR_DEBUGGER'))"
    (tmp_path / "task.py").write_text(show)
    (tmp_path / "pip" / "__main__.py").write_text(show)
    with runner.start(["gs://b/x-1.whl"], VERTEX_EMULATOR_DEBUGGER_OF_MODULE="25678,wait") as process:
        lines = process.communicate()[0].splitlines()
    assert [line for line in lines if line in ("None", "25678,wait")] == ["None", "None", "25678,wait"]


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


def test_each_package_is_reinstalled_then_its_requirements(runner: Runner) -> None:
    with runner.start(["gs://b/x-1.whl", "gs://b/d/y-1.tar.gz"], "--a=1", "b c") as process:
        lines = process.communicate()[0].splitlines()
    assert process.returncode == 0
    assert lines[-1] == "ran ['--a=1', 'b c']"
    assert runner.calls() == [
        [*ANEW, "/gcs/b/x-1.whl"],
        ["install", "/gcs/b/x-1.whl"],
        [*ANEW, "/gcs/b/d/y-1.tar.gz"],
        ["install", "/gcs/b/d/y-1.tar.gz"],
    ]


def test_source_distribution_retries_with_image_build_tools(runner: Runner) -> None:
    with runner.start(["gs://b/y-1.tar.gz"], PIP_NEEDS="--no-build-isolation") as process:
        lines = process.communicate()[0].splitlines()
    assert process.returncode == 0
    assert "Installing again without build isolation, with the build tools of the image." in lines
    assert [("--no-build-isolation" in call, "--no-deps" in call) for call in runner.calls()] == [
        (False, True),
        (True, True),
        (True, False),
    ]


def test_failed_installation_ends_with_pip_status(runner: Runner) -> None:
    with runner.start(["gs://b/x-1.whl", "gs://b/y-1.whl"], PIP_NEEDS="--nothing") as process:
        output = process.communicate()[0]
    assert process.returncode == 7
    assert runner.calls() == [[*ANEW, "/gcs/b/x-1.whl"]]
    assert "ran" not in output


def test_sigterm_ends_it_while_pip_runs(runner: Runner) -> None:
    with runner.start(["gs://b/x-1.whl"], PIP_SECONDS="60") as process:
        until(runner.calls, "pip's start")
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 128 + signal.SIGTERM
