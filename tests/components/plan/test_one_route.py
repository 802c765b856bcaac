"""One route for a job: whoever makes it, the same rules hold, and it is counted and shown once."""

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, cast
from unittest import mock

import pytest
from vertex_training import CustomJob, JobTemplate, Schedule
from vertex_training.errors import DeclarationErrors
from vertex_training.plan.guardrails import FIGURES, LIMITS
from vertex_training.plan.plan import Plan
from vertex_training.plan.program import Program
from vertex_training.plan.training import LIFECYCLE, NOT_IN_PROGRAM, NOT_SCHEDULED, Training
from vertex_training.review.reports import cost_lines, schedule_lines
from vertex_training.schema import shapes
from vertex_training.settings.settings import Settings

from tests.components.fakes import Ground
from tests.components.projects import CLOUD, CLOUD_INCLUDING, load, problems
from tests.components.targets.gcp.graph import forget_loops, graph
from tests.vertex_api.jobs import custom_job, edited
from vertex_api.job import Job
from vertex_api.names import CUSTOM_JOB

# The threads of Pulumi's mocks leave an event loop each.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
GUARDED = "  vertex-training:guardrails: {maxReplicas: 1}\n"
FAULTS: dict[str, tuple[Any, ...]] = {
    "guardrail": ("jobSpec", "workerPoolSpecs", 0, "replicaCount", 2),
    "likely mistake": ("jobSpec", "workerPoolSpecs", 0, "containerSpec", "env", [{"name": "A", "value": "b"}] * 2),
    "label": ("labels", {"pulumi_name": "mine"}),
    "folder": ("jobSpec", "baseOutputDirectory", {"outputUriPrefix": "gs://acme-dev-team-dev"}),
    "region": ("jobSpec", "tensorboard", "projects/1/locations/europe-west4/tensorboards/2"),
}


@pytest.fixture(scope="module", autouse=True)
def _loops() -> Iterator[None]:
    yield
    forget_loops()


def faulty(fault: str) -> Any:
    *path, value = FAULTS[fault]
    return edited(custom_job(), *path, to=value)


def said(settings: Settings, spec: Any, *, scheduled: bool) -> list[str]:
    """What is said of a program's job, without its place."""

    def program() -> None:
        ground = Ground(program=Program(settings.plan))
        if scheduled:
            Schedule("daily", {"cron": "0 1 * * *", "jobs": {"a": JobTemplate(CustomJob, spec)}}, foundation=ground)
        else:
            CustomJob("a", spec, foundation=ground)

    with pytest.raises(DeclarationErrors) as refused:
        graph(program, preview=True)
    return [f"{each.path}: {each.message}" for each in refused.value.problems]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("scheduled", [False, True])
def test_a_rule_holds_for_every_job(tmp_path: Path, fault: str, scheduled: bool) -> None:
    spec, own = faulty(fault), {"lifecycle": {"run": "scheduled"}} if scheduled else {}
    schedule = {"schedules": {"daily": {"cron": "0 1 * * *", "job": "a"}}} if scheduled else {}
    declared = problems(
        tmp_path, CLOUD_INCLUDING + GUARDED, jobs=json.dumps({"customJobs": {"a": {**spec, **own}}, **schedule})
    )
    prefix = "customJobs.a."
    assert [line.partition(prefix)[2] for line in declared] == said(
        load(tmp_path, CLOUD + GUARDED), spec, scheduled=scheduled
    )


def test_a_program_s_schedule_costs_a_run_and_no_job(tmp_path: Path) -> None:
    shown: list[Plan] = []

    def program() -> None:
        ground = Ground(program=Program(load(tmp_path, CLOUD).plan))
        ground.program.on_valid = shown.append
        jobs = {"a": JobTemplate(CustomJob, custom_job())}
        Schedule("daily", {"cron": "0 1 * * *", "jobs": jobs}, foundation=ground)

    with mock.patch("pulumi.log.info"):
        graph(program, preview=True)
    (plan,) = shown
    assert cost_lines(plan, date(2026, 11, 21)) == []
    heading, line = schedule_lines(plan)
    assert heading.startswith("Schedules in us-central1") and line.startswith("  daily: ") and "USD a run" in line


def test_a_lifecycle_says_who_may_set_what() -> None:
    """A new key of `shapes.Lifecycle` is for all jobs, unless one of the two tables says otherwise."""
    assert {*NOT_IN_PROGRAM, *NOT_SCHEDULED} <= shapes.Lifecycle.__annotations__.keys()
    training, wrong = Training.parse(CUSTOM_JOB, "a", None, {"onDelet": "keep"}, lambda *_: cast(Any, None))
    assert training.lifecycle == {} and [each.path for each in wrong] == [(LIFECYCLE, "onDelet")]


def test_figures_and_limits_are_guardrails() -> None:
    assert {each.rule for each in (*FIGURES, *LIMITS) if each.rule} <= shapes.Guardrails.__annotations__.keys()
    plan = Plan({}, (Training(CUSTOM_JOB, "a", Job(CUSTOM_JOB, custom_job())),), region="us-central1")
    assert plan.totals.sums.keys() == {each.sum_name for each in FIGURES}
