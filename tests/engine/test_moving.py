"""Jobs whose URNs change: each goes on or is kept, nothing is submitted twice, and nothing of it has drifted."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engine.project import CHECKOUT, Project
from tests.standins import training

KINDS, WAYS = ("custom", "tuning", "pipeline"), ("in", "out", "alias", "rename", "adopt")
SCHEDULE = "vertex-training_local_nightly"


class Moving:
    """A project of jobs that run nowhere; `server` stands in for the emulator."""

    def __init__(self, folder: Path) -> None:
        self.project = Project(folder)
        shutil.copy(CHECKOUT / "tests" / "engine" / "moving" / "__main__.py", self.project.root)
        self.project.declarations = {}
        del self.project.stack["vertex-training:include"]
        self.project.declare()
        self.layout: dict[str, Any] = {"jobs": []}
        self.server: training.Training

    def lay(self, *rows: dict[str, Any], **layout: Any) -> None:
        """Write what the program creates."""
        self.layout = {"jobs": rows, **layout}
        (self.project.root / "layout.json").write_text(json.dumps(self.layout))

    def changes(self) -> list[tuple[str, str]]:
        """Return what was submitted, cancelled and deleted since the last look; a schedule is put where it is."""
        calls = [call for call in self.server.calls if call[0] != "PUT"]
        self.server.calls.clear()
        return calls

    def ids(self) -> dict[str, str]:
        """Return the resource names of the jobs that the state has, by name."""
        resources = self.project.resources().items()
        return {name: each["id"] for name, each in resources if "run" in each.get("outputs", {})}

    def urn(self, name: str) -> str:
        """Return the URN of a recorded resource."""
        return str(self.project.resources()[name]["urn"])

    def edit_state(self, old: str, new: str) -> None:
        """Replace a text in all URNs of the state, as `pulumi state rename` does in one."""
        file = self.project.root.parent / "exported.json"
        self.project.pulumi("stack", "export", "--stack", self.project.name, "--file", str(file))
        file.write_text(file.read_text().replace(old, new))
        self.project.pulumi("stack", "import", "--stack", self.project.name, "--file", str(file))


def job(name: str, kind: str = "custom", state: str = "running", **more: Any) -> dict[str, Any]:
    """Return a job of the program's layout, that stays in a state."""
    return {"name": name, "shown": f"{name}-{state}", "argument": "a", "kind": kind, **more}


@pytest.fixture(scope="class")
def moving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moving]:
    moving = Moving(tmp_path_factory.mktemp("moving"))
    with training.serve(moving.project.data) as server:
        moving.server = server
        yield moving


@pytest.fixture(scope="class")
def moved(moving: Moving) -> tuple[dict[str, str], dict[str, str], str]:
    """The ids of all jobs before and after all of them have got another URN, and what that `up` has printed."""
    rows = {f"{way}-{kind}-{state}": (way, kind, state) for way in WAYS for kind in KINDS for state in training.STATES}
    first = {name: job(name, kind, state) for name, (_, kind, state) in rows.items()}
    for name, row in first.items():
        row |= {"squad": "old"} if name.startswith("out") else {}
    moving.lay(*first.values(), schedules={"nightly": ""})
    moving.project.up()
    moving.changes()
    before = moving.ids()
    moving.edit_state("::rename-", "::renamed-")
    after = [
        second(name, way, row, before[name])
        for (name, row), (way, *_) in zip(first.items(), rows.values(), strict=True)
    ]
    moving.lay(*after, schedules={"nightly": "new"})
    printed = moving.project.up()
    return before, moving.ids(), printed


def second(name: str, way: str, row: dict[str, Any], id_: str) -> dict[str, Any]:
    """Return a job of the layout after its URN has changed in one way."""
    return {
        "in": {**row, "squad": "new"},
        "out": {**row, "squad": None},
        "alias": {**row, "squad": "new", "alias": {"parent": None}},
        "rename": row,
        "adopt": {**row, "name": f"adopted-{name}", "lifecycle": {"adopt": id_}},
    }[way]


class TestMovedJobs:
    """Tests of one stack, in order: each goes on from what the one before it has left."""

    def test_nothing_is_submitted_cancelled_or_deleted(
        self, moving: Moving, moved: tuple[dict[str, str], dict[str, str], str]
    ) -> None:
        before, after, printed = moved
        assert moving.changes() == []
        assert {name.removeprefix("adopted-"): id_ for name, id_ in after.items()} == before
        assert len(before) == len(WAYS) * len(KINDS) * len(training.STATES)
        assert "in-custom-running: goes on as Squad$CustomJob::in-custom-running" in printed
        assert "rename-pipeline-failed: goes on as TrainingPipeline::rename-pipeline-failed" in printed

    def test_a_refresh_shows_nothing(self, moving: Moving, moved: Any) -> None:
        moving.project.assert_no_changes("--refresh")

    def test_a_moved_schedule_goes_on(self, moving: Moving, moved: Any) -> None:
        (path,) = moving.server.schedules
        assert path.endswith(SCHEDULE)

    def test_a_destroy_deletes_each_job_once(self, moving: Moving, moved: Any) -> None:
        before, *_ = moved
        moving.project.destroy()
        deleted = sorted(name for verb, name in moving.changes() if verb == "DELETE" and "/schedules/" not in name)
        assert deleted == sorted(id_ for name, id_ in before.items() if not name.startswith("adopt"))
        assert not moving.server.schedules


@pytest.mark.usefixtures("moving")
class TestOtherOrders:
    """Replacements that are created first, and jobs that two resources have."""

    def test_a_forced_replacement_created_first_runs_anew(self, moving: Moving) -> None:
        created_first = {"delete_before_replace": False}
        moving.lay(job("forced", options=created_first), job("edited", options=created_first), job("plain"))
        moving.project.up()
        moving.changes()
        before = moving.ids()
        rows = [job("forced", options=created_first), job("edited", options=created_first, argument="b"), job("plain")]
        moving.lay(*rows)
        moving.project.up(*(f"--replace={moving.urn(name)}" for name in ("forced", "plain")))
        after = moving.ids()
        assert not {*before.values()} & {*after.values()}
        changes = moving.changes()
        assert sorted(name for verb, name in changes if verb == "POST") == sorted(after.values())
        assert sorted(name for verb, name in changes if verb == "DELETE") == sorted(before.values())
        moving.project.assert_no_changes("--refresh")

    def test_equal_jobs_of_one_name_are_one_job(self, moving: Moving) -> None:
        moving.lay(job("twin"), job("twin", squad="other"))
        moving.project.up()
        (made,) = [name for verb, name in moving.changes() if verb == "POST"]
        moving.lay(job("twin", squad="other"))
        assert "twin: goes on as Squad$CustomJob::twin" in moving.project.up()
        moving.project.assert_no_changes("--refresh")
        assert made in moving.server.jobs
        moving.project.destroy()
        assert made not in moving.server.jobs
