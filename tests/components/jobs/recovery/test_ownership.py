"""Ownership: equal jobs have one token, and a later run finds the job that stands for it."""

import inspect
import re
from typing import Any

import pytest

from components.jobs.recovery.ownership import adoptable, filter_of, labels, run_id, token
from tests.vertex_api.jobs import custom_job, edited
from vertex_api.kinds import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB
from vertex_api.validation.canonical import CanonicalSpec

SPEC = custom_job()
ARGS = ("jobSpec", "workerPoolSpecs", 0, "containerSpec", "args")
PLAIN: dict[str, Any] = {
    "owner": "team/dev/digits",
    "spec": CanonicalSpec(CUSTOM_JOB, SPEC),
    "secrets": {"a": "1", "b": "2"},
    "rerun": 0,
}


def test_equal_jobs_have_equal_tokens_whatever_the_order_of_their_fields() -> None:
    turned = dict(reversed(SPEC.items())) | {"displayName": SPEC["displayName"]}
    assert list(turned) != list(SPEC)
    assert token(**PLAIN) == token(
        **PLAIN | {"spec": CanonicalSpec(CUSTOM_JOB, turned), "secrets": {"b": "2", "a": "1"}}
    )
    assert re.fullmatch("[0-9a-f]{32}", token(**PLAIN))


@pytest.mark.parametrize(
    "change",
    [
        {"spec": CanonicalSpec(HYPERPARAMETER_TUNING_JOB, SPEC)},
        {"owner": "team/dev/other"},
        {"owner": "team/prod/digits"},
        {"owner": "other/dev/digits"},
        {"spec": CanonicalSpec(CUSTOM_JOB, edited(SPEC, *ARGS, to=["--epochs=4"]))},
        {"spec": CanonicalSpec(CUSTOM_JOB, SPEC | {"labels": {"a": "b"}})},
        {"secrets": {"a": "1", "b": "3"}},
        {"secrets": {"a": "1"}},
        {"secrets": {"b": "1", "a": "2"}},
        {"rerun": 1},
    ],
    ids=str,
)
def test_a_token_is_another_when_anything_is_other(change: dict[str, Any]) -> None:
    assert token(**PLAIN | change) != token(**PLAIN)


def test_the_order_of_arguments_is_part_of_a_job() -> None:
    one, other = (CanonicalSpec(CUSTOM_JOB, edited(SPEC, *ARGS, to=args)) for args in (["a", "b"], ["b", "a"]))
    assert token(**PLAIN | {"spec": one}) != token(**PLAIN | {"spec": other})


def test_the_id_of_a_run_is_another_for_another_spec_kind_or_run() -> None:
    ids = {
        run_id(CanonicalSpec(CUSTOM_JOB, SPEC), 0),
        run_id(CanonicalSpec(CUSTOM_JOB, SPEC), 1),
        run_id(CanonicalSpec(HYPERPARAMETER_TUNING_JOB, SPEC), 0),
        run_id(CanonicalSpec(CUSTOM_JOB, SPEC | {"labels": {"a": "b"}}), 0),
    }
    assert len(ids) == 4
    assert all(re.fullmatch("[0-9a-f]{8}", one) for one in ids)


def test_the_id_of_a_run_is_made_of_no_secret_for_it_stands_in_previews() -> None:
    assert list(inspect.signature(run_id).parameters) == ["spec", "rerun", "above"]


def test_tokens_and_ids_are_those_of_earlier_versions() -> None:
    # Other ones would orphan running jobs after an upgrade, and show changes in everyone's next preview.
    assert token(**PLAIN) == "a6b6f4fb8033f77aba679a1000911c26"
    assert run_id(CanonicalSpec(CUSTOM_JOB, SPEC), 0) == "b67dcf48"


@pytest.mark.parametrize("owner", ["team/dev/digits", "My.Team/Dev_1/a.b-c_d", f"{'p' * 70}/{'s' * 70}/{'n' * 70}"])
def test_labels_keep_the_service_s_rules(owner: str) -> None:
    found = labels(owner, token(**PLAIN))
    assert list(found) == ["pulumi_project", "pulumi_stack", "pulumi_name", "pulumi_token"]
    # Lower-case letters, digits, underscores and dashes, at most 63 (Google's page on labels).
    assert all(re.fullmatch("[a-z0-9_-]{1,63}", text) for text in [*found, *found.values()])


def test_the_filter_of_a_stack_finds_the_labels_of_its_jobs() -> None:
    found = labels("My.Team/Dev/digits", "t")
    assert filter_of("My.Team/Dev") == (
        f'labels.pulumi_project="{found["pulumi_project"]}" AND labels.pulumi_stack="{found["pulumi_stack"]}"'
    )


def job(name: str, state: str, created: str) -> dict[str, str]:
    return {"name": name, "state": f"JOB_STATE_{state}", "createTime": created}


@pytest.mark.parametrize("state", ["QUEUED", "PENDING", "RUNNING", "PAUSED", "SUCCEEDED", "PARTIALLY_SUCCEEDED"])
def test_a_job_under_way_or_done_stands_for_its_token(state: str) -> None:
    one = job("a", state, "2026-01-31T12:00:00Z")
    assert adoptable([one]) == one


@pytest.mark.parametrize("state", ["FAILED", "CANCELLED", "CANCELLING", "EXPIRED"])
def test_a_job_that_came_to_nothing_does_not(state: str) -> None:
    assert adoptable([job("a", state, "2026-01-31T12:00:00Z")]) is None
    assert adoptable([]) is None


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("2026-01-31T12:00:00Z", "2026-02-01T00:00:00Z"),
        ("2026-01-31T12:00:00.100Z", "2026-01-31T12:00:00.900Z"),
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00.500Z"),
    ],
)
def test_the_newest_one_alive_is_taken_whatever_the_order(older: str, newer: str) -> None:
    old, new, failed = (
        job("a", "RUNNING", older),
        job("b", "SUCCEEDED", newer),
        job("c", "FAILED", "2027-01-01T00:00:00Z"),
    )
    assert adoptable([old, failed, new]) == new
    assert adoptable([new, failed, old]) == new
