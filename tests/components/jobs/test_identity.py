"""What tells jobs apart: labels within the service's rules, and digests that are equal for equal jobs."""

import inspect
import re
from typing import Any

import pytest
from vertex_training.jobs.identity import declarations_digest, job_token, mark, own_labels, run_digest, stack_filter
from vertex_training.plan.training import Training
from vertex_training.schema import shapes

from tests.vertex_api.jobs import custom_job, edited
from vertex_api.job import Job
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB

SPEC = custom_job()
ARGS = ("jobSpec", "workerPoolSpecs", 0, "containerSpec", "args")
PLAIN: dict[str, Any] = {
    "owner": "team/dev/digits",
    "spec": Job(CUSTOM_JOB, SPEC),
    "secrets": {"a": "1", "b": "2"},
    "rerun": "",
    "referenced": {},
}


def test_field_order_does_not_change_a_token() -> None:
    turned = dict(reversed(SPEC.items())) | {"displayName": SPEC["displayName"]}
    assert list(turned) != list(SPEC)
    assert job_token(**PLAIN) == job_token(**PLAIN | {"spec": Job(CUSTOM_JOB, turned), "secrets": {"b": "2", "a": "1"}})
    assert re.fullmatch("[0-9a-f]{32}", job_token(**PLAIN))


@pytest.mark.parametrize(
    "change",
    [
        {"spec": Job(HYPERPARAMETER_TUNING_JOB, SPEC)},
        {"owner": "team/dev/other"},
        {"owner": "team/prod/digits"},
        {"owner": "other/dev/digits"},
        {"spec": Job(CUSTOM_JOB, edited(SPEC, *ARGS, to=["--epochs=4"]))},
        {"spec": Job(CUSTOM_JOB, SPEC | {"labels": {"a": "b"}})},
        {"secrets": {"a": "1", "b": "3"}},
        {"secrets": {"a": "1"}},
        {"secrets": {"b": "1", "a": "2"}},
        {"rerun": "1"},
        {"data": ["train 00"]},
    ],
    ids=str,
)
def test_a_token_is_another_when_anything_is_other(change: dict[str, Any]) -> None:
    assert job_token(**PLAIN | change) != job_token(**PLAIN)


def test_argument_order_changes_a_token() -> None:
    one, other = (Job(CUSTOM_JOB, edited(SPEC, *ARGS, to=args)) for args in (["a", "b"], ["b", "a"]))
    assert job_token(**PLAIN | {"spec": one}) != job_token(**PLAIN | {"spec": other})


def test_spec_kind_and_rerun_change_the_run_id() -> None:
    ids = {
        run_digest(Job(CUSTOM_JOB, SPEC), ""),
        run_digest(Job(CUSTOM_JOB, SPEC), "1"),
        run_digest(Job(HYPERPARAMETER_TUNING_JOB, SPEC), ""),
        run_digest(Job(CUSTOM_JOB, SPEC | {"labels": {"a": "b"}}), ""),
    }
    assert len(ids) == 4
    assert all(re.fullmatch("[0-9a-f]{8}", one) for one in ids)


def test_a_run_id_depends_on_no_secret() -> None:
    assert list(inspect.signature(run_digest).parameters) == ["spec", "rerun", "upstream"]


def test_tokens_and_ids_are_those_of_earlier_versions() -> None:
    # Other ones would orphan running jobs after an upgrade, and show changes in everyone's next preview.
    assert job_token(**PLAIN) == "a6b6f4fb8033f77aba679a1000911c26"
    assert run_digest(Job(CUSTOM_JOB, SPEC), "") == "b67dcf48"


def test_marks_are_valid_labels_per_name_and_ledger() -> None:
    marks = {mark(ledger, name) for ledger in ("0123456789ab", "ba9876543210") for name in ("a", "A", "a b")}
    assert len(marks) == 6
    assert all(len(mark) <= 63 and mark == mark.lower() for mark in marks)


def test_any_edit_changes_the_whole_digest() -> None:
    spec = Job(CUSTOM_JOB, SPEC)
    digests = [
        declarations_digest([Training(CUSTOM_JOB, name, edited_spec, lifecycle)])
        for name, edited_spec, lifecycle in (
            ("digits", spec, {}),
            ("other", spec, {}),
            ("digits", Job(CUSTOM_JOB, edited(SPEC, *ARGS, to=["--edited"])), {}),
            ("digits", spec, shapes.Lifecycle(wait=True)),
        )
    ]
    assert len(set(digests)) == 4 and all(re.fullmatch("[0-9a-f]{16}", digest) for digest in digests)
    both = [Training(CUSTOM_JOB, name, spec, {}) for name in ("a", "b")]
    assert declarations_digest(both) == declarations_digest(reversed(both))


@pytest.mark.parametrize("owner", ["team/dev/digits", "My.Team/Dev_1/a.b-c_d", f"{'p' * 70}/{'s' * 70}/{'n' * 70}"])
def test_labels_keep_the_service_s_rules(owner: str) -> None:
    labels = own_labels(owner, "0" * 32)
    assert list(labels) == ["pulumi_project", "pulumi_stack", "pulumi_name", "pulumi_token"]
    # Lower-case letters, digits, underscores and dashes, at most 63 (Google's page on labels).
    assert all(re.fullmatch("[a-z0-9_-]{1,63}", text) for text in [*labels, *labels.values()])


def test_a_stack_filter_matches_its_jobs_labels() -> None:
    labels = own_labels("My.Team/Dev/digits", "t")
    assert stack_filter("My.Team/Dev") == (
        f'labels.pulumi_project="{labels["pulumi_project"]}" AND labels.pulumi_stack="{labels["pulumi_stack"]}"'
    )
