"""docs/emulator.md and testing.md in an environment that has the wheel, its extra and pytest, and nothing of Pulumi."""

import os
import re
import shutil
from collections.abc import Iterator

import pytest

from tests.blocks import taken
from tests.packaging.building import wheel
from tests.packaging.installed import InstalledProject
from tests.packaging.test_wheel import requirement_closure

PYTEST = {"pytest", "iniconfig", "packaging", "pluggy", "pygments"}
PYTEST |= {"pytest-xdist", "execnet"}  # pytest finds its plugin here, wherever it is allowed


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InstalledProject]:
    """A folder with the pages' programs; the environment has no Pulumi, neither the engine nor the SDK."""
    folder = tmp_path_factory.mktemp("alone")
    (folder / "project").mkdir()
    project = InstalledProject(folder, folder / "project")
    without_pulumi = {name for name in requirement_closure("emulator") if not name.startswith("pulumi")}
    project.install(str(wheel()), requirements=without_pulumi | PYTEST)
    project.environment["PATH"] = os.pathsep.join([str(project.root / ".venv" / "bin"), "/usr/bin", "/bin"])
    project.environment.pop("VERTEX_EMULATOR_DATA", None)
    assert shutil.which("pulumi", path=project.environment["PATH"]) is None
    absent = "try: import pulumi\nexcept ModuleNotFoundError: print('absent')"
    assert project.run("python", "-c", absent) == "absent\n"
    for program in taken("docs/emulator.md", "python") + taken("docs/testing.md", "python", "# "):
        name, _, lines = program.removeprefix("# ").partition("\n")
        (project.root / name).write_text(lines)
    yield project
    project.run("vertex-emulator", "reset", "--yes")


def test_the_tests_of_the_page_pass(alone: InstalledProject) -> None:
    files = ["test_training.py", "test_failures.py", "test_search.py", "test_spot.py"]
    assert sorted(each.name for each in alone.root.glob("test_*.py")) == sorted(files)
    assert "6 passed" in alone.run("python", "-m", "pytest", "-q", *files)


def test_an_unmodified_script_trains_and_reads_its_model(alone: InstalledProject) -> None:
    script = (alone.root / "train.py").read_text()
    assert not re.search("api_|endpoint|credentials|emulator", script.lower())
    (command,) = taken("docs/emulator.md", "sh", "vertex-emulator exec ")
    printed = alone.run(*command.split())
    assert printed.splitlines()[-1] == "42"
    assert (alone.root / ".emulator" / "gcs" / "my-bucket" / "run" / "model" / "model.txt").read_text() == "42"
    assert "no emulator is running" in alone.run("vertex-emulator", "stop")


def test_the_context_manager_needs_no_pytest(alone: InstalledProject) -> None:
    assert alone.run("python", "-W", "error", "with_block.py") == "hello\n"
