"""The ledger: what no state records is removed, and nothing else."""

from collections.abc import Iterable
from typing import Any

import pytest

from components.jobs.provider import CustomJobProvider
from components.jobs.recovery import orphans
from components.jobs.recovery.labels import build_labels
from components.jobs.recovery.ledger import LedgerProvider
from components.jobs.recovery.tokens import compute_mark_label
from tests.components.fakes import Clock, FakeClient, start_new_process
from tests.vertex_api.jobs import custom_job, edited

PARENT = "projects/local/locations/us-central1"
FIRST, SECOND = (f"{PARENT}/customJobs/{number}" for number in (1, 2))
ARGS = ("jobSpec", "workerPoolSpecs", 0, "containerSpec", "args")
ledger, custom = LedgerProvider(), CustomJobProvider()


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The ids that the state records."""
    ids: set[str] = set()
    monkeypatch.setattr(orphans, "read_recorded_ids", lambda stack: ids)
    return ids


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
    """The create of a job; its resource name."""
    body = edited(custom_job(), *ARGS, to=[f"--{key}={value}" for key, value in spec.items()])
    return str(custom.create({"owner": f"team/dev/{name}", "parent": f"//local/{PARENT}", "spec": body}).id)


def ended(api: FakeClient) -> None:
    for name in api.jobs:
        api.jobs[name] = {**api.jobs[name], "state": "JOB_STATE_SUCCEEDED"}


def test_what_is_added_is_noted_and_not_shown_and_what_is_gone_is_shown(api: FakeClient) -> None:
    state = State()
    assert state.up("digits")
    assert not state.up("digits")
    assert not state.up("digits", "more")
    assert state.up("more")
    assert not state.up("more")
    assert state.up("more", kept=["more"])
    assert not state.up("more")


def test_a_name_that_is_gone_is_shown_each_time_it_goes_and_no_refresh_shows_it_again(api: FakeClient) -> None:
    state = State()
    state.up("digits", "more")
    for _ in range(2):
        assert state.up("digits")
        read = ledger.read(state.id, state.outputs)
        # A refresh compares what is read with the inputs that were recorded.
        assert not ledger.diff(state.id, dict(read.outs or {}), state.inputs).changes
        assert not state.up("digits", "more")


def test_a_state_of_an_earlier_version_with_a_name_that_is_gone_shows_it_no_longer(api: FakeClient) -> None:
    state = State()
    state.up("digits")
    state.inputs = state.outputs = {**state.inputs, "gone": {"more": "customJobs"}}
    assert not ledger.diff(state.id, state.outputs, state.inputs).changes
    assert not state.up("digits")
    assert state.up("more")


def test_the_job_of_a_pipeline_is_left_to_it_and_removed_where_the_pipeline_is_no_more(
    api: FakeClient, recorded: set[str]
) -> None:
    state = State()
    state.up("piped", "digits")
    mark = {"pulumi_mark": compute_mark_label(state.id, "piped"), **build_labels("team/dev/piped", "t")}
    piped, backing = f"{PARENT}/trainingPipelines/8", f"{PARENT}/customJobs/9"
    api.add(piped, labels=mark, state="PIPELINE_STATE_SUCCEEDED", trainingTaskMetadata={"backingCustomJob": backing})
    api.add(backing, labels=mark, state="JOB_STATE_SUCCEEDED")
    recorded.add(piped)
    state.up()
    assert [*api.jobs] == [piped, backing]
    recorded.clear()
    del api.jobs[piped]
    state.destroy()
    assert not api.jobs


def test_a_pipeline_that_no_state_records_takes_its_job_along(
    api: FakeClient, recorded: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    state = State()
    state.up("piped")
    mark = {"pulumi_mark": compute_mark_label(state.id, "piped"), **build_labels("team/dev/piped", "t")}
    piped, backing = f"{PARENT}/trainingPipelines/8", f"{PARENT}/customJobs/9"
    api.add(piped, labels=mark, state="PIPELINE_STATE_SUCCEEDED", trainingTaskMetadata={"backingCustomJob": backing})
    api.add(backing, labels=mark, state="JOB_STATE_SUCCEEDED")
    state.destroy()
    assert not api.jobs
    assert capsys.readouterr().out == f"piped: removing {piped}, which a killed run has left\n"


def test_a_job_that_was_submitted_under_another_declaration_is_removed_before_its_name_is_used_again(
    api: FakeClient, clock: Clock, recorded: set[str]
) -> None:
    state = State()
    state.up("digits")
    assert submit(epochs=1) == FIRST
    api.coming[FIRST] = ["JOB_STATE_RUNNING", "JOB_STATE_RUNNING", "JOB_STATE_CANCELLED"]
    state.up("digits")
    assert submit(epochs=2) == SECOND.replace("/2", "/1")
    assert [job["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"] for job in api.jobs.values()] == [
        ["--epochs=2"]
    ]
    assert "cancel" in api.calls


def test_one_that_failed_by_itself_before_it_was_recorded_is_not_left_beside_the_next(
    api: FakeClient, recorded: set[str]
) -> None:
    state = State()
    state.up("digits")
    submit()
    api.jobs[FIRST] = {**api.jobs[FIRST], "state": "JOB_STATE_FAILED"}
    state.up("digits")
    submit()
    assert [job["state"] for job in api.jobs.values()] == ["JOB_STATE_PENDING"]


def test_names_that_are_gone_and_a_stack_that_is_gone_take_along_what_the_state_does_not_record(
    api: FakeClient, recorded: set[str]
) -> None:
    state = State()
    state.up("digits", "other")
    names = {name: submit(name) for name in ("digits", "other")}
    ended(api)
    recorded.add(names["other"])
    state.up("third")
    assert [*api.jobs] == [names["other"]]
    recorded.clear()
    state.destroy()
    assert not api.jobs


@pytest.mark.parametrize("kept_now", [True, False])
def test_what_was_kept_once_stays_whatever_comes_later(api: FakeClient, recorded: set[str], kept_now: bool) -> None:
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
def test_a_job_that_is_kept_when_its_stack_goes_stays_though_the_ledger_was_not_told(
    api: FakeClient, recorded: set[str], on_delete: dict[str, Any]
) -> None:
    state = State()
    state.up("digits")
    assert submit() == FIRST
    ended(api)
    start_new_process()
    custom.delete(FIRST, {"owner": "team/dev/digits", "parent": f"//local/{PARENT}", "spec": custom_job(), **on_delete})
    ledger.delete(state.id, state.outputs)
    assert [*api.jobs] == [FIRST]


def test_a_job_of_another_program_that_the_ledger_does_not_know_is_none_of_its_business(
    api: FakeClient, recorded: set[str]
) -> None:
    state = State()
    state.up("digits")
    submit("mine", epochs=1)
    ended(api)
    state.up("digits")
    submit("mine", epochs=2)
    ended(api)
    state.destroy()
    assert len(api.jobs) == 2


def test_jobs_of_another_state_of_the_same_name_are_none_of_its_business(api: FakeClient, recorded: set[str]) -> None:
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


def test_nothing_is_removed_while_the_state_cannot_be_read(
    api: FakeClient, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    state = State()
    state.up("digits")
    submit()
    ended(api)
    state.up("other")
    assert [*api.jobs] == [FIRST]
    assert f"{FIRST}: may be left of a run that was killed; the state cannot be read" in capsys.readouterr().out
