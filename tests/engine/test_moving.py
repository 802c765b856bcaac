"""Jobs whose URNs change: each goes on or is kept, nothing is submitted twice, and nothing of it has drifted."""

import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from tests.engine.cloud import CloudProject
from tests.engine.moving.project import KINDS, Moving, job, serve
from tests.standins import training

WAYS = ("in", "out", "alias", "rename", "adopt")
BUILDS = re.compile(r"trainer: (Step \d|#\d)")
SCHEDULE = "vertex-training_local_nightly"


@pytest.fixture(scope="class")
def moving(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moving]:
    """A project of the target `local`, or of another one that a class names."""
    folder = tmp_path_factory.mktemp("moving")
    with serve(folder, getattr(request, "param", "local")) as moving:
        yield moving


@pytest.fixture(scope="class")
def moved(moving: Moving) -> tuple[dict[str, str], dict[str, str], str, str]:
    """The ids of all jobs before and after all have got another URN, and what the preview and the `up` have printed."""
    every = [*product(*map(enumerate, (WAYS, KINDS, training.STATES)))]
    # Each kind in each way, and each of the two with each state. Where a job is makes no difference to that.
    chosen = [(way, kind, state) for (i, way), (j, kind), (k, state) in every if (i + j + k) % len(KINDS) == 1]
    if not moving.is_cloud:
        chosen += [(way, kind, "running") for way in WAYS for kind in KINDS]
    chosen += [(way, "custom", "running") for way in WAYS]
    rows = {"-".join((way, kind, state)): (way, kind, state) for way, kind, state in chosen}
    first = {name: job(name, kind, state) for name, (_, kind, state) in rows.items()}
    for name, row in first.items():
        row |= {"squad": "old"} if name.startswith("out") else {}
    moving.lay(*first.values(), schedules={"nightly": {}})
    moving.project.up()
    moving.changes()
    before = moving.ids()
    if not moving.is_cloud:
        moving.project.pulumi(
            *("state", "rename", "--yes", "--stack", moving.project.name),
            *(moving.urn("rename-custom-running"), "renamed-custom-running"),
        )
    moving.rename_urns("::rename-", "::renamed-")
    after = [
        second(name, way, row, before[name])
        for (name, row), (way, *_) in zip(first.items(), rows.values(), strict=True)
    ]
    aliased = {"alias": {"parent": None}} if moving.is_cloud else {}
    moving.lay(*after, schedules={"nightly": {"squad": "new", **aliased}})
    shown, printed = moving.project.preview_and_up()
    return before, moving.ids(), shown, printed


def second(name: str, way: str, row: dict[str, Any], id_: str) -> dict[str, Any]:
    """Return a job of the layout after its URN has changed in one way."""
    return {
        "in": {**row, "squad": "new"},
        "out": {**row, "squad": None},
        "alias": {**row, "squad": "new", "alias": {"parent": None}},
        "rename": row,
        "adopt": {**row, "name": f"adopted-{name}", "lifecycle": {"adopt": id_}},
    }[way]


@pytest.mark.parametrize("moving", ["local", "gcp"], indirect=True, scope="class")
class TestMovedJobs:
    """Tests of one stack, in order: each goes on from what the one before it has left."""

    def test_nothing_is_submitted_cancelled_or_deleted(
        self, moving: Moving, moved: tuple[dict[str, str], dict[str, str], str, str]
    ) -> None:
        before, after, _, printed = moved
        assert moving.changes() == []
        assert {name.removeprefix("adopted-"): id_ for name, id_ in after.items()} == before
        assert "in-custom-running: goes on as Squad$CustomJob::in-custom-running" in printed
        assert "rename-pipeline-succeeded: goes on as TrainingPipeline::rename-pipeline-succeeded" in printed

    def test_a_preview_says_what_goes_on(self, moved: Any) -> None:
        *_, shown, _ = moved
        for way, name in (
            ("in", "Squad$CustomJob"),
            ("out", "CustomJob"),
            ("rename", "CustomJob"),
            ("adopt", "CustomJob"),
        ):
            job_name = f"{'adopted-' if way == 'adopt' else ''}{way}-custom-running"
            assert f"{job_name}: goes on as {name}::{job_name}" in shown
        assert "alias-custom-running: goes on" not in shown

    def test_a_refresh_shows_nothing(self, moving: Moving, moved: Any) -> None:
        moving.project.assert_no_changes("--refresh")

    def test_a_moved_schedule_goes_on(self, moving: Moving, moved: Any) -> None:
        *_, shown, _ = moved
        if not moving.is_cloud:
            (path,) = moving.server.schedules
            assert path.endswith(SCHEDULE)
            assert f"{SCHEDULE}: goes on as Squad$Schedule$EmulatorSchedule::nightly" in shown
            return
        moving.lay(*moving.layout["jobs"], schedules={"nightly": {}})
        refused = moving.project.pulumi("preview", "--stack", moving.project.name, fails=True)
        assert "vertex-training_dev_nightly: is Squad$Schedule::nightly in the state, and Google Cloud" in refused
        assert isinstance(moving.project, CloudProject)
        made = [(call["operation"], call["name"]) for call in moving.project.read_provider_calls()]
        assert made.count(("create", "nightly-workflow")) == 1 and ("delete", "nightly-workflow") not in made

    def test_a_destroy_deletes_each_job_once(self, moving: Moving, moved: Any) -> None:
        before, *_ = moved
        moving.project.destroy()
        deleted = sorted(name for verb, name in moving.changes() if verb == "DELETE" and "/schedules/" not in name)
        assert deleted == sorted(id_ for name, id_ in before.items() if not name.startswith("adopt"))
        assert not moving.server.schedules


LATER = {"delete_before_replace": False}
"""Options with which a replacement is created first."""


@pytest.fixture(scope="class")
def rows() -> dict[str, dict[str, Any]]:
    """The jobs of a stack, by name; of `twin` there are two."""
    rows = {name: job(name) for name in ("target", "left", "failing", "plain", "twin", "rest")}
    rows |= {name: job(name, options=LATER) for name in ("forced", "edited")}
    # A folder by default has the stack's name, with which each would run anew.
    return rows | {name: job(name, folder=f"gs://models/{name}") for name in ("moved", "shared")}


class TestUpdates:
    """Tests of one stack, in order: updates of a part, that fail, or that create first; jobs that two states have."""

    def test_each_job_is_deleted_by_its_last_resource_alone(
        self, moving: Moving, rows: dict[str, dict[str, Any]]
    ) -> None:
        moving.lay(*rows.values(), job("twin", squad="other"))
        moving.project.up()
        ids = moving.ids()
        assert sorted(name for verb, name in moving.changes() if verb == "POST") == sorted(ids.values())
        (old,), (left,) = moving.holders("target"), moving.holders("left")
        rows |= {name: {**rows[name], "squad": "new"} for name in ("target", "left", "failing")}
        moving.lay(*rows.values(), job("twin", squad="other"))
        new = old.replace("::pulumi-python:", "::team:index:Squad$pulumi-python:")

        moving.project.up("--target", "**Squad::new", "--target", new)
        assert len(moving.holders("target")) == 2 and moving.changes() == []
        printed = moving.project.up("--target", old, "--target", left)
        assert "target: goes on as Squad$CustomJob::target" in printed
        # Nothing says that somebody is to have `left`: a target names what is deleted.
        assert moving.changes() == [("cancel", ids["left"]), ("DELETE", ids["left"])]
        assert old not in moving.holders("target")

        moving.server.listing = False
        printed = moving.project.up("--continue-on-error", fails=True)
        assert "failing: not deleted: Squad$CustomJob::failing goes on with it, once it is created" in printed
        assert moving.changes() == []
        moving.server.listing = True

    def test_forced_replacements_run_anew_and_the_others_go_on(
        self, moving: Moving, rows: dict[str, dict[str, Any]]
    ) -> None:
        before = moving.ids()
        rows["edited"]["argument"] = "b"
        rows["twin"]["squad"] = "other"
        moving.lay(*rows.values())
        printed = moving.project.up(*(f"--replace={moving.urn(name)}" for name in ("forced", "plain")))
        for name in ("failing", "twin"):  # of the twins, equal and of one name, the first has gone
            assert f"{name}: goes on as Squad$CustomJob::{name}" in printed
        after = moving.ids()
        replaced = ("forced", "edited", "plain")
        assert {name for name in rows if after[name] != before.get(name)} == {"left", *replaced}
        assert not {before[name] for name in replaced} & {*after.values()}
        changes = moving.changes()
        made = sorted(name for verb, name in changes if verb == "POST")
        assert made == sorted(after[name] for name in ("left", *replaced))
        assert sorted(name for verb, name in changes if verb == "DELETE") == sorted(before[name] for name in replaced)
        moving.project.assert_no_changes("--refresh")

    def test_a_job_in_two_states_stays(self, moving: Moving, rows: dict[str, dict[str, Any]]) -> None:
        project = moving.project
        ids = moving.ids()
        urns = [moving.urn(name) for name in ("moved", "shared")]
        project.create_stack("other")
        stack_file = project.root / "stacks" / "Pulumi.other.yaml"
        stack_file.write_text(f"{stack_file.read_text()}config: {{vertex-training:target: local}}\n")
        project.pulumi("state", "move", "--yes", "--source", project.name, "--dest", "other", *urns)
        moving.changes()

        def other(verb: str) -> str:
            return project.pulumi(verb, "--yes", "--skip-preview", "--stack", "other")

        moved, shared = rows.pop("moved"), rows.pop("shared")
        moving.lay(shared, *rows.values())
        project.up()
        moving.lay(moved, shared)
        other("up")
        assert moving.changes() == [] and moving.ids()["shared"] == ids["shared"]

        moving.lay(moved)
        ours = f"stack organization/vertex-training/{project.name}, which has submitted it, has it too"
        assert f"shared: {ids['shared']} stays: {ours}; if nobody needs it: curl" in other("up")
        del rows["twin"]
        moving.lay(*rows.values())
        assert f"shared: {ids['shared']} stays: no state of this stack has submitted it for certain" in project.up()
        assert moving.changes() == [("cancel", ids["twin"]), ("DELETE", ids["twin"])]
        other("destroy")
        left = {ids[name] for name in (*rows, "shared")}
        assert ("DELETE", ids["moved"]) in moving.changes() and {*moving.server.jobs} == left


class TestDeclaredJobs:
    """Jobs of a stack file, whose TrainingStack moves or is renamed, and which become the program's and come back."""

    def test_declared_jobs_go_on_wherever_they_are_declared(self, moving: Moving) -> None:
        project, server = moving.project, moving.server
        project.use_own_image(str(project.root))
        pool: dict[str, Any] = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 1}
        pool["containerSpec"] = {"imageUri": "python:3.11-slim-bookworm", "args": ["a"]}
        spec = {"displayName": "train-running", "jobSpec": {"workerPoolSpecs": [pool]}}
        own = {**spec, "displayName": "own-running"}
        later = {**spec, "lifecycle": {"run": "scheduled"}}
        built = {**pool, "containerSpec": {"imageUri": "${images.trainer}"}}
        imaged = {"displayName": "imaged-running", "jobSpec": {"workerPoolSpecs": [built]}}
        schedules = {"nightly": {"cron": "0 2 * * *", "job": "scheduled"}}
        project.stack |= {
            "vertex-training:include": ["training/jobs.yaml"],
            "vertex-training:emulator": {"secrets": {"a": "b"}},
        }
        declared: dict[str, Any] = {"images": {"trainer": {"context": "trainer"}}, "schedules": schedules}
        in_program = {**declared, "customJobs": {"train": spec, "imaged": imaged, "scheduled": later}}
        declared["customJobs"] = {**in_program["customJobs"], "own": own}

        def up(jobs: dict[str, Any], *rows: dict[str, Any], stack: str, **args: str) -> str:
            project.declarations = jobs
            project.declare()
            moving.lay(*rows, stack=stack, args=args)
            return project.up()

        assert BUILDS.search(up(declared, stack="root"))
        made = {name for verb, name in moving.changes() if verb == "POST"}
        printed = up(in_program, job("own"), stack="below")
        assert "train: goes on as Squad$TrainingStack$CustomJob::train" in printed
        assert "own: goes on as CustomJob::own" in printed
        assert "nightly: goes on as" in printed and not BUILDS.search(printed)
        printed = up(declared, stack="root")
        for name in ("train", "own"):
            assert f"{name}: goes on as TrainingStack$CustomJob::{name}" in printed
        assert not BUILDS.search(printed)
        assert moving.changes() == [] and {*server.jobs} == made and len(server.schedules) == 1
        assert "local" in (project.data / "secrets.json").read_text()
        project.assert_no_changes("--refresh")

        printed = up(declared, stack="root", prefix="west-", formerly="")
        assert "formerly" not in printed
        assert {name for _, name in moving.changes() if "/schedules/" not in name} == set()
        assert {*moving.ids().values()} == made and "west-train" in moving.ids()
        up(declared, stack="root", prefix="east-", formerly="west-")
        moving.lay(stack="root", args={"prefix": "east-"})
        project.assert_no_changes("--refresh")
        assert {*moving.ids().values()} == {*server.jobs} == made and len(server.schedules) == 1
        up(declared, stack="root", prefix="other-")
        assert not {*moving.ids().values()} & made and {*moving.ids().values()} == {*server.jobs}
