"""Completion: holds the results of the jobs that were waited for."""

from collections.abc import Callable
from typing import Any

import pytest
from vertex_training.errors import TrainingFailed
from vertex_training.jobs import completion_resource as completion_module
from vertex_training.jobs.completion_resource import CompletionProvider
from vertex_training.jobs.recovery.current_ledger_contents import LedgerContents, get_current_ledger
from vertex_training.jobs.recovery.job_digests import compute_mark_label_value

from tests.components.fakes import FakeClient
from vertex_api.errors import Unavailable

PARENT = "//local/projects/local/locations/us-central1"
TRAIN = f"{PARENT.removeprefix('//local/')}/customJobs/1"
INPUTS: dict[str, Any] = {"owner": "team/dev", "parent": PARENT, "jobs": {"digits": TRAIN}}
LABELS = {"pulumi_project": "team", "pulumi_stack": "dev"}
DONE = {"digits": {"state": "JOB_STATE_SUCCEEDED"}}

provider = CompletionProvider()
pytestmark = pytest.mark.usefixtures("clock")


def raising(error: Exception) -> Callable[..., Any]:
    def fail(*_: object) -> Any:
        raise error

    return fail


def add(api: FakeClient, state: str, *coming: str) -> None:
    api.add(TRAIN, labels=LABELS, jobSpec={}, state=state)
    api.coming[TRAIN] = list(coming)


def test_creating_and_updating_wait_and_keep_the_results(api: FakeClient) -> None:
    add(api, "JOB_STATE_PENDING", "JOB_STATE_RUNNING", "JOB_STATE_SUCCEEDED")
    created = provider.create(INPUTS)
    assert (created.id, created.outs) == ("completion", {**INPUTS, "results": DONE})
    assert provider.update("completion", {}, INPUTS).outs == {**INPUTS, "results": DONE}


@pytest.mark.parametrize("act", [lambda: provider.create(INPUTS), lambda: provider.update("completion", {}, INPUTS)])
def test_a_job_that_fails_fails_it(api: FakeClient, act: Any) -> None:
    add(api, "JOB_STATE_FAILED")
    with pytest.raises(TrainingFailed, match=r"^digits failed"):
        act()


def test_a_failure_names_running_undeclared_jobs(api: FakeClient) -> None:
    add(api, "JOB_STATE_FAILED")
    get_current_ledger().set_contents(
        LedgerContents("led", "acme/team/dev", frozenset({"digits"}), frozenset({"kept"}))
    )
    states = {"gone": "RUNNING", "ended": "SUCCEEDED", "digits": "RUNNING", "kept": "RUNNING"}
    for number, (name, state) in enumerate(states.items(), 2):
        marked = {**LABELS, "pulumi_name": name, "pulumi_mark": compute_mark_label_value("led", name)}
        api.add(TRAIN.replace("/1", f"/{number}"), labels=marked, state=f"JOB_STATE_{state}")
    theirs = {**LABELS, "pulumi_name": "theirs", "pulumi_mark": compute_mark_label_value("other", "theirs")}
    api.add(TRAIN.replace("/1", "/9"), labels=theirs, state="JOB_STATE_RUNNING")
    with pytest.raises(TrainingFailed) as failure:
        provider.create(INPUTS)
    assert str(failure.value).splitlines()[-1] == (
        "still running, though no longer declared: gone. Pulumi deletes such resources last, and not after a failure: "
        "`pulumi up --continue-on-error` deletes them all the same"
    )


def test_a_failure_survives_an_unreadable_job_list(api: FakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    add(api, "JOB_STATE_FAILED")
    monkeypatch.setattr(
        completion_module, "_find_pulumi_names_of_undeclared_active_jobs", raising(Unavailable("no answer"))
    )
    with pytest.raises(TrainingFailed, match=r"^digits failed"):
        provider.create(INPUTS)


def test_reading_looks_once_and_does_not_wait(api: FakeClient) -> None:
    add(api, "JOB_STATE_RUNNING")
    read = provider.read("completion", {**INPUTS, "results": DONE})
    assert (read.id, read.inputs) == ("completion", INPUTS)
    assert read.outs == {**INPUTS, "results": {"digits": {"state": "JOB_STATE_RUNNING"}}}
    assert api.calls == ["list"]


def test_reading_leaves_out_a_job_that_is_gone(api: FakeClient) -> None:
    read = provider.read("completion", {**INPUTS, "results": DONE})
    assert read.outs == {**INPUTS, "results": {}}


def test_deleting_touches_no_job(api: FakeClient) -> None:
    add(api, "JOB_STATE_RUNNING")
    provider.delete("completion", {**INPUTS, "results": DONE})
    assert api.calls == []


def test_deadlines_are_durations_and_inputs_of_their_own(api: FakeClient) -> None:
    add(api, "JOB_STATE_RUNNING")
    given = {**INPUTS, "deadlines": {"digits": "90.5s"}}
    with pytest.raises(TrainingFailed, match=r"after 90 s, its lifecycle\.deadline"):
        provider.create(given)
    assert provider.read("completion", {**given, "results": DONE}).inputs == given
