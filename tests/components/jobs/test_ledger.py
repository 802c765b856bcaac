"""The ledger: what no state records is removed, and nothing else."""

from collections.abc import Iterable
from typing import Any

import pytest
from vertex_training.jobs import removal
from vertex_training.jobs.covering import settings_of
from vertex_training.jobs.identity import mark, own_labels
from vertex_training.jobs.inputs import Inputs
from vertex_training.jobs.ledger import LedgerProvider
from vertex_training.jobs.provider import CustomJobProvider
from vertex_training.runtime import engine, holders, pacing, target

from tests.components.fakes import Clock, FakeClient, start_new_process
from tests.vertex_api.jobs import custom_job, edited, pipeline
from vertex_api.names import CUSTOM_JOB, TRAINING_PIPELINE
from vertex_api.retry import Pace

PARENT = "projects/local/locations/us-central1"
FIRST, SECOND = (f"{PARENT}/customJobs/{number}" for number in (1, 2))
ARGS = ("jobSpec", "workerPoolSpecs", 0, "containerSpec", "args")
ledger, custom = LedgerProvider(), CustomJobProvider()


def inputs(jobs: Iterable[str] = ("digits",), kept: Iterable[str] = (), **changes: Any) -> dict[str, Any]:
    """What the program gives the engine."""
    return {
        "stack": "acme/team/dev",
        "parent": f"//local/{PARENT}",
        "jobs": dict.fromkeys(jobs, "customJobs"),
        "kept": [*kept],
        **changes,
    }


class State:
    """The ledger of a stack, driven as the engine does it: `up` with what is declared, `destroy`."""

    def __init__(self) -> None:
        self.inputs: dict[str, Any] = {}
        self.outputs: dict[str, Any] = {}
        self.id = ""

    def up(self, *jobs: str, kept: Iterable[str] = ()) -> bool:
        """One `pulumi up` in a process of its own, up to the jobs; whether a preview would show the ledger."""
        start_new_process()
        checked = ledger.check(self.inputs, inputs(jobs, kept)).inputs
        if not self.id:
            created = ledger.create(checked)
            self.id, self.outputs, shown = str(created.id), dict(created.outs or {}), True
        elif shown := bool(ledger.diff(self.id, self.outputs, checked).changes):
            self.outputs = dict(ledger.update(self.id, self.outputs, checked).outs or {})
        self.inputs = checked
        return shown

    def destroy(self) -> None:
        start_new_process()
        ledger.delete(self.id, self.outputs)


def submit(name: str = "digits", **spec: Any) -> str:
    """The create of a job by a run that is killed before it is recorded; its resource name."""
    body = edited(custom_job(), *ARGS, to=[f"--{key}={value}" for key, value in spec.items()])
    given = {"owner": f"team/dev/{name}", "parent": f"//local/{PARENT}", "spec": body}
    made = str(custom.create(given).id)
    if state := holders.current().state("acme/team/dev"):
        state.creating.append(("CustomJob", given))
    return made


def killed_pipeline(recorded: holders.State) -> str:
    """Record the create of a pipeline by a run that is killed; its token."""
    given = {"owner": "team/dev/piped", "parent": f"//local/{PARENT}", "spec": pipeline()}
    recorded.creating.append(("TrainingPipeline", given))
    return Inputs.parse(TRAINING_PIPELINE, given).token


def ended(api: FakeClient) -> None:
    for name in api.jobs:
        api.jobs[name] = {**api.jobs[name], "state": "JOB_STATE_SUCCEEDED"}


def test_a_preview_shows_no_new_declarations_and_settings() -> None:
    before = ledger.check({}, inputs(declarations="1", packageVersion="0.1.0")).inputs
    changed: Any = {"declarations": "2", "packageVersion": "0.2.0", "settings": {"region": "us-west1"}}
    after = ledger.check(before, inputs(**changed)).inputs
    assert {key: after[key] for key in changed} == changed
    assert not ledger.diff("ledger", before, after).changes


def test_a_preview_shows_removed_but_not_added_names(api: FakeClient) -> None:
    state = State()
    assert state.up("digits")
    assert not state.up("digits")
    assert not state.up("digits", "more")
    assert state.up("more")
    assert not state.up("more")
    assert state.up("more", kept=["more"])
    assert not state.up("more")


def test_a_removed_name_is_shown_once_per_removal(api: FakeClient) -> None:
    state = State()
    state.up("digits", "more")
    for _ in range(2):
        assert state.up("digits")
        read = ledger.read(state.id, state.outputs)
        # A refresh compares what is read with the inputs that were recorded.
        assert not ledger.diff(state.id, dict(read.outs or {}), state.inputs).changes
        assert not state.up("digits", "more")


def test_an_earlier_version_s_state_shows_no_change(api: FakeClient) -> None:
    state = State()
    state.up("digits")
    state.inputs = state.outputs = {**state.inputs, "gone": {"more": "customJobs"}}
    assert not ledger.diff(state.id, state.outputs, state.inputs).changes
    assert not state.up("digits")
    assert state.up("more")


def test_a_backing_job_is_removed_after_its_pipeline(api: FakeClient, recorded: holders.State) -> None:
    state = State()
    state.up("piped", "digits")
    labels = {"pulumi_mark": mark(state.id, "piped"), **own_labels("team/dev/piped", killed_pipeline(recorded))}
    piped, backing = f"{PARENT}/trainingPipelines/8", f"{PARENT}/customJobs/9"
    api.add(piped, labels=labels, state="PIPELINE_STATE_SUCCEEDED", trainingTaskMetadata={"backingCustomJob": backing})
    api.add(backing, labels=labels, state="JOB_STATE_SUCCEEDED")
    recorded.ids[piped] = ["urn"]
    state.up()
    assert [*api.jobs] == [piped, backing]
    recorded.ids.clear()
    del api.jobs[piped]
    state.destroy()
    assert not api.jobs


def test_an_unrecorded_pipeline_is_removed_with_its_job(
    api: FakeClient, recorded: holders.State, capsys: pytest.CaptureFixture[str]
) -> None:
    state = State()
    state.up("piped")
    labels = {"pulumi_mark": mark(state.id, "piped"), **own_labels("team/dev/piped", killed_pipeline(recorded))}
    piped, backing = f"{PARENT}/trainingPipelines/8", f"{PARENT}/customJobs/9"
    api.add(piped, labels=labels, state="PIPELINE_STATE_SUCCEEDED", trainingTaskMetadata={"backingCustomJob": backing})
    api.add(backing, labels=labels, state="JOB_STATE_SUCCEEDED")
    state.destroy()
    assert not api.jobs
    assert capsys.readouterr().out == f"piped: removing {piped}, which a killed run has left\n"


def test_an_unrecorded_job_is_removed_before_its_successor(
    api: FakeClient, clock: Clock, recorded: holders.State
) -> None:
    state = State()
    state.up("digits")
    assert submit(epochs=1) == FIRST
    api.coming[FIRST] = ["JOB_STATE_RUNNING"] * 3 + ["JOB_STATE_CANCELLED"]
    state.up("digits")
    assert submit(epochs=2) == SECOND.replace("/2", "/1")
    assert [job["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"] for job in api.jobs.values()] == [
        ["--epochs=2"]
    ]
    assert "cancel" in api.calls


def test_a_job_without_proof_stays_and_is_named(
    api: FakeClient, recorded: holders.State, capsys: pytest.CaptureFixture[str]
) -> None:
    state = State()
    state.up("digits")
    submit(epochs=1)
    ended(api)
    recorded.creating.clear()
    state.up("digits")
    submit(epochs=2)
    recorded.creating.clear()
    state.up("other")
    state.destroy()
    assert len(api.jobs) == 2
    reason = (
        "stays: no state of this stack has submitted it for certain, and another stack may have it; if nobody needs it"
    )
    assert f"digits: {FIRST} {reason}: curl -X POST http://127.0.0.1:1/v1/{FIRST}:cancel" in capsys.readouterr().out


@pytest.mark.parametrize("secret", [None, "hidden"])
def test_an_interrupted_create_proves_an_orphan(recorded: holders.State, secret: str | None) -> None:
    given = {"owner": "team/dev/digits", "parent": f"//local/{PARENT}", "spec": custom_job()}
    given |= {"secrets": {"key": secret}} if secret else {}
    token = Inputs.parse(CUSTOM_JOB, given).token
    orphan = {"name": FIRST, "labels": own_labels(given["owner"], token), **custom_job()}
    if secret:
        given["secrets"] = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "x"}
    recorded.creating.append(("CustomJob", given))
    assert removal.was_being_created(recorded, orphan)
    assert not removal.was_being_created(recorded, {**orphan, "labels": own_labels("team/dev/more", token)})
    other = edited(orphan, *ARGS, to=["--other"]) | {"labels": own_labels(given["owner"], "another")}
    assert not removal.was_being_created(recorded, other)


def test_an_unrecorded_failed_job_is_removed(api: FakeClient, recorded: holders.State) -> None:
    state = State()
    state.up("digits")
    submit()
    api.jobs[FIRST] = {**api.jobs[FIRST], "state": "JOB_STATE_FAILED"}
    state.up("digits")
    submit()
    assert [job["state"] for job in api.jobs.values()] == ["JOB_STATE_PENDING"]


def test_removed_names_and_stacks_take_unrecorded_jobs_along(api: FakeClient, recorded: holders.State) -> None:
    state = State()
    state.up("digits", "other")
    names = {name: submit(name) for name in ("digits", "other")}
    ended(api)
    recorded.ids[names["other"]] = ["urn"]
    state.up("third")
    assert [*api.jobs] == [names["other"]]
    recorded.ids.clear()
    state.destroy()
    assert not api.jobs


@pytest.mark.parametrize("kept_now", [True, False])
def test_what_was_kept_once_stays_whatever_comes_later(
    api: FakeClient, recorded: holders.State, kept_now: bool
) -> None:
    state = State()
    state.up("digits")
    submit(epochs=1)
    ended(api)
    state.up("digits", kept=["digits"])
    submit(epochs=2)
    ended(api)
    state.up("digits", kept=["digits"] * kept_now)
    submit(epochs=3)
    ended(api)
    state.up("other")
    state.destroy()
    assert len(api.jobs) == 3


@pytest.mark.parametrize("on_delete", [{"lifecycle": {"onDelete": "keep"}}, {"adopt": FIRST}])
def test_destroy_leaves_a_kept_job_unknown_to_ledger(
    api: FakeClient, recorded: holders.State, on_delete: dict[str, Any]
) -> None:
    state = State()
    state.up("digits")
    assert submit() == FIRST
    ended(api)
    start_new_process()
    custom.delete(FIRST, {"owner": "team/dev/digits", "parent": f"//local/{PARENT}", "spec": custom_job(), **on_delete})
    ledger.delete(state.id, state.outputs)
    assert [*api.jobs] == [FIRST]


def test_a_job_the_ledger_never_listed_stays(api: FakeClient, recorded: holders.State) -> None:
    state = State()
    state.up("digits")
    submit("mine", epochs=1)
    ended(api)
    state.up("digits")
    submit("mine", epochs=2)
    ended(api)
    state.destroy()
    assert len(api.jobs) == 2


def test_jobs_of_a_namesake_stack_stay(api: FakeClient, recorded: holders.State) -> None:
    mine, theirs = State(), State()
    theirs.up("digits")
    submit(epochs=1)
    ended(api)
    mine.up("digits")
    submit(epochs=2)
    ended(api)
    mine.up("other")
    mine.destroy()
    assert [*api.jobs] == [FIRST]


def test_an_unreadable_state_removes_nothing(
    api: FakeClient, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(holders.Holders, "state", lambda *_: None)
    state = State()
    state.up("digits")
    submit()
    ended(api)
    state.up("other")
    assert [*api.jobs] == [FIRST]
    assert f"{FIRST}: may be left of a run that was killed; the state cannot be read" in capsys.readouterr().out


def test_settings_of_two_stacks_reach_their_own_jobs() -> None:
    """Those that one location has in common are the stricter ones."""
    start_new_process()
    pacing.current().override("600")
    places = {"": f"//local/{PARENT}", "west-": "//local/projects/p/locations/us-west1"}
    paces = {"west-": 10.0}
    for prefix, parent in places.items():
        settings = {"prefix": prefix} | ({"submissionsPerMinute": paces[prefix]} if prefix in paces else {})
        ledger.create(inputs([f"{prefix}digits"], parent=parent, settings=settings))
    per_minute = {prefix: (target.pace(parent) or Pace(1)).per_minute for prefix, parent in places.items()}
    assert per_minute == {"": 600, "west-": 10}
    ledger.create(inputs(["Slow.one"], parent=places["west-"], settings={"submissionsPerMinute": 5.0}))
    assert (target.pace(places["west-"]) or Pace(1)).per_minute == 5
    assert settings_of(places["west-"], "west-digits")["prefix"] == "west-"
    assert settings_of(places["west-"], "slow-one") == {"submissionsPerMinute": 5.0}  # as its label has it
    # Two stacks are there now, and neither has this job.
    assert settings_of(places["west-"], "program-s") == {}
    assert settings_of(places[""], "program-s") == {"prefix": ""}


BELOW = "urn:pulumi:dev::team::{}vertex-training:index:GcpFoundation$pulumi-python:dynamic/vertex-training:Ledger::{}"
STACK = "vertex-training:index:TrainingStack$"
HERE, THERE = (BELOW.format(types, "job-names") for types in (STACK, f"a:b:Squad${STACK}"))
CLOUD = {"parent": f"{target.CLOUD_PREFIX}{PARENT}"}


@pytest.mark.parametrize(
    ("recorded_as", "given", "moved"),
    [
        (HERE, CLOUD, True),
        (BELOW.format("", "job-names"), CLOUD, True),
        (THERE, CLOUD, False),
        (BELOW.format("", "west-job-names"), CLOUD, False),
        (HERE, {"parent": f"//local/{PARENT}"}, False),
    ],
)
@pytest.mark.parametrize("now", [CLOUD, {}], ids=["gcp", "local"])
def test_a_stack_of_google_cloud_moves_by_an_alias(
    recorded: holders.State,
    monkeypatch: pytest.MonkeyPatch,
    recorded_as: str,
    given: dict[str, Any],
    moved: bool,
    now: dict[str, Any],
) -> None:
    recorded.inputs[recorded_as] = ("Ledger", given)
    monkeypatch.setattr(engine, "requested_urn", lambda: THERE)
    found = [failure.reason for failure in ledger.check({}, inputs(**now)).failures]
    where = "TrainingStack$GcpFoundation" if recorded_as == HERE else "GcpFoundation"
    assert [reason.partition(" in the state")[0] for reason in found] == ([f"is {where}"] if moved and now else [])
    assert ledger.check(inputs(), inputs(**now)).failures == []
