"""Commands of docs/emulator.md, testing.md and submissions.md, as a reader copies them."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

from tests.blocks import taken
from tests.vertex_emulator.running import RunningEmulator, command


def test_faults_are_injected(shared: RunningEmulator) -> None:
    lines = taken("docs/submissions.md", "sh", "vertex-emulator inject rate")[0].splitlines()
    lines += taken("docs/testing.md", "sh", "vertex-emulator inject second-start")[0].splitlines()
    try:
        for line in lines:
            done = command(*shlex.split(line)[1:], data=shared.data)
            assert done.returncode == 0, done.stderr
        listed = command("inject", "--list", data=shared.data).stdout.splitlines()
        assert [line.split()[0] for line in listed] == [line.split()[2] for line in lines]
    finally:
        command("inject", "--clear", data=shared.data)


def test_a_state_is_pruned_kept_and_started(tmp_path: Path) -> None:
    (prune,) = taken("docs/emulator.md", "sh", "vertex-emulator prune")
    (keep,) = taken("docs/testing.md", "sh", "vertex-emulator stop\nvertex-emulator export")
    (tmp_path / "tests").mkdir()
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {name: value for name, value in os.environ.items() if name != "VERTEX_EMULATOR_DATA"} | {"PATH": path}
    script = f"vertex-emulator start >/dev/null\n{prune}{keep}"
    try:
        done = subprocess.run(["sh", "-euc", script], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "tests" / "fixture.tar.gz").is_file()
        assert command("status", data=tmp_path / ".emulator-tests").stdout.startswith("running ")
    finally:
        for folder in (".emulator", ".emulator-tests"):
            command("stop", data=tmp_path / folder)
