"""The tutorial, commit by commit: each run does what the page says that its preview shows, and leaves no change."""

import re
import subprocess

import pytest
import yaml

from tests.blocks import taken
from tests.engine.project import CHECKOUT, Project
from tests.vertex_emulator.running import until

PAGE = (CHECKOUT / "docs" / "tutorial.md").read_text()
PYTHON = taken("docs/tutorial.md", "python")
YAML = taken("docs/tutorial.md", "yaml")
CONSOLE = taken("docs/tutorial.md", "console")
COMMITS = re.split(r"^## \d\. ", PAGE, flags=re.MULTILINE)[1:]


def changes(printed: str) -> list[tuple[str, ...]]:
    """Mark, token, name and operation of what a preview or an update changes; of a replacement, the line that says so.

    What a preview calls `create` is `creating` and `created` in an update: the operation is its stem.
    """
    operation = r"(\w+?)(?:e|ed|ing)\b"
    found = re.findall(rf"^ *([-+~]{{1,2}}) +(\S*vertex-training:\S+) (\S+) {operation}", printed, re.MULTILINE)
    return sorted(each for each in {*found} if each[0] not in ("++", "--"))


class Tutorial:
    """The project of somebody who follows the page."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.script = project.root / "trainer" / "train.py"
        self.declared = project.root / "training" / "line.yaml"
        project.stack["vertex-training:include"] = ["training/*.yaml"]  # as the template has it
        project.declare()
        (removal,) = re.findall(r"^\$ (rm .*)$", PAGE, re.MULTILINE)
        subprocess.run(["sh", "-euc", removal], cwd=project.root, check=True)

    def commit(self, number: int) -> None:
        """Write the files of a commit."""
        text = COMMITS[number - 1]
        for python in (each for each in PYTHON if each in text):
            self.script.write_text(python if number < 4 else f"{self.script.read_text()}{python}")
        for declared in (each for each in YAML if each in text):
            if number < 5:
                self.declared.write_text(declared)
            else:
                known = yaml.safe_load(self.declared.read_text()) | yaml.safe_load(declared)
                if number == 6:
                    for kind, name in (("customJobs", "line"), ("hyperparameterTuningJobs", "search")):
                        known[kind][name]["lifecycle"] = {"run": "scheduled"}
                self.declared.write_text(yaml.safe_dump(known, sort_keys=False))


@pytest.fixture
def tutorial(project: Project) -> Tutorial:
    return Tutorial(project)


def test_each_commit_previews_as_the_page_says(tutorial: Tutorial) -> None:
    """What an `up` would leave to do would show among the changes of the next one."""
    project = tutorial.project
    results = []
    for number, text in enumerate(COMMITS, 1):
        tutorial.commit(number)
        (shown,) = (each for each in CONSOLE if each in text)
        if number == 1:
            assert changes(project.pulumi("preview", "--stack=local")) == changes(shown)
        assert changes(project.up()) == changes(shown) != [], number
        if number == 1:
            assert "vertex-emulator logs line" in text and " y = 2." in project.run_emulator("logs", "line").stdout
        results.append(project.outputs().get("results", {}))
    project.assert_no_changes()
    first, measured, longer, searched, best, scheduled = results
    assert "metrics" not in first["line"] and scheduled == {}
    assert longer["line"]["metrics"]["loss"] < measured["line"]["metrics"]["loss"]
    assert best["search"] == searched["search"]
    assert best["line"]["metrics"] == best["search"]["bestTrial"]["metrics"]
    assert project.run_emulator("schedules", "fire", "nightly").returncode == 0
    until(lambda: [job for job in project.list_jobs() if job["state"] == "JOB_STATE_SUCCEEDED"], "the scheduled job")
