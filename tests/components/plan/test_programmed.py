"""One route for a job: the jobs of a program are judged by the rules of the stack, as declared ones, and shown once."""

import json
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import date
from math import inf
from pathlib import Path
from typing import Any, cast
from unittest import mock

import pulumi
import pytest
from vertex_training import CustomJob, HyperparameterTuningJob, JobTemplate, Schedule, TrainingImage
from vertex_training.data.lock import LockedData
from vertex_training.errors import KNOWN_HERE, DeclarationErrors
from vertex_training.plan.guardrails import FIGURES, LIMITS
from vertex_training.plan.plan import Plan, Totals
from vertex_training.plan.programmed import Program
from vertex_training.plan.training import LIFECYCLE, NOT_KNOWN, Training
from vertex_training.review.diagnostics import cost_lines, schedule_lines
from vertex_training.schema import shapes
from vertex_training.settings.settings import Settings

from tests.blocks import taken
from tests.components.fakes import Ground
from tests.components.projects import CLOUD, CLOUD_INCLUDING, LOCAL, load, problems, write
from tests.components.targets.gcp.graph import Graph, graph
from tests.vertex_api.jobs import custom_job, edited, tuning_job
from vertex_api.estimates.cost import Cost
from vertex_api.estimates.prices import Money
from vertex_api.job import Job
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB

# The threads of Pulumi's mocks leave an event loop each.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
MACHINE = ("jobSpec", "workerPoolSpecs", 0, "machineSpec", "machineType")
IMAGE_URI = ("jobSpec", "workerPoolSpecs", 0, "containerSpec", "imageUri")
GUARDED = """\
  vertex-training:guardrails: {machineTypes: [n1-*], requireTimeout: true, maxTimeout: 7200s, requiredLabels: [team]}
"""
ALLOWED = edited(custom_job(), "jobSpec", "scheduling", to={"timeout": "3600s"}) | {"labels": {"team": "vision"}}
# n1-standard-4 in us-central1 as docs/cost.md calculates it: 0.25 USD an hour, 0.25 for the hour of its timeout.
LIMITED = CLOUD + "  vertex-training:guardrails: {maxHourlyCost: 0.6}\n"


def ground_of(settings: Settings) -> Ground:
    return Ground(program=Program(settings.plan))


def run(settings: Settings, program: Callable[[Ground], Any], *, preview: bool) -> Graph | list[str]:
    """What a program registers, or the lines of what is wrong with it."""
    try:
        return graph(lambda: program(ground_of(settings)) and None, preview=preview)
    except DeclarationErrors as errors:
        return [line.removeprefix("  ") for line in str(errors).splitlines()[1:] if KNOWN_HERE not in line]


def on(machine: Any, **fields: Any) -> Any:
    return edited(ALLOWED, *MACHINE, to=machine) | fields


@pytest.mark.parametrize("preview", [True, False])
def test_all_jobs_are_reported_together(tmp_path: Path, preview: bool) -> None:
    def program(ground: Ground) -> None:
        CustomJob("right", ALLOWED, foundation=ground)
        CustomJob("large", on("e2-standard-4"), foundation=ground)
        CustomJob("wrong", cast(Any, {**ALLOWED, "jobSpecs": {}}), foundation=ground)
        HyperparameterTuningJob("search", tuning_job(), foundation=ground)
        CustomJob("late", on(pulumi.Output.from_input("e2-standard-8")), foundation=ground)

    lines = run(load(tmp_path, LOCAL + GUARDED), program, preview=preview)
    assert isinstance(lines, list)
    known = [
        f'CustomJob "large": {".".join(map(str, MACHINE)).replace(".0", "[0]")}: '
        'guardrails.machineTypes: "e2-standard-4" is not allowed here; allowed: n1-*',
        'CustomJob "wrong": jobSpecs: unknown field; did you mean jobSpec?',
        'HyperparameterTuningJob "search": trialJobSpec.scheduling.timeout: guardrails.requireTimeout: is required '
        'here, such as "7200s"',
        'HyperparameterTuningJob "search": labels.team: guardrails.requiredLabels: has no label "team"; set it here, '
        "or for all jobs in the stack",
    ]
    assert lines[:4] == known
    assert not preview or [line.partition(": ")[0] for line in lines[4:]] == ['CustomJob "late"']


def test_the_page_shows_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {"target": "gcp", "project": "acme-dev", "projectNumber": "123456789012", "region": "us-central1"}
    guarded = {"requireTimeout": True, "maxHourlyCost": 1.0}
    lines = [f"  vertex-training:{key}: {json.dumps(value)}\n" for key, value in keys.items()]
    stack = f"config:\n{''.join(lines)}  vertex-training:guardrails:\n    requireTimeout: true\n"
    write(
        tmp_path,
        {"stacks/Pulumi.stack.yaml": f"{stack}    maxHourlyCost: 1.0\n", "trainer/Dockerfile": "FROM scratch\n"},
    )
    config = {f"vertex-training:{key}": value for key, value in keys.items()}
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps({**config, "vertex-training:guardrails": json.dumps(guarded)}))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DeclarationErrors) as refused:
        graph(lambda: exec(taken("docs/python.md", "python")[0], {}), preview=True)
    told = str(refused.value).replace("stacks/Pulumi.stack.yaml", "stacks/Pulumi.dev.yaml")
    assert taken("docs/python.md", "output") == [f"{told}\n"]


def test_a_valid_program_registers_its_specs_unchanged(tmp_path: Path) -> None:
    def program(ground: Ground) -> None:
        CustomJob("right", ALLOWED, foundation=ground)
        CustomJob("late", on(pulumi.Output.from_input("n1-standard-8")), foundation=ground)

    settings = load(tmp_path, LOCAL + GUARDED)
    update, preview = (run(settings, program, preview=preview) for preview in (False, True))
    assert isinstance(update, Graph) and isinstance(preview, Graph)
    assert update.inputs == preview.inputs
    spec = update.inputs["CustomJob/late"]["spec"]
    assert spec["jobSpec"]["workerPoolSpecs"][0]["machineSpec"] == {"machineType": "n1-standard-8"}


def test_locked_data_is_an_input_of_a_program_s_job(tmp_path: Path) -> None:
    summary = {"uri": "gs://acme/train/", "objects": 1, "bytes": 3, "digest": "00"}

    def program(ground: Ground) -> None:
        CustomJob(
            "reader", ALLOWED, foundation=ground, data={"train": LockedData("gs://acme/train/", summary, "error")}
        )

    found = run(load(tmp_path, CLOUD), program, preview=False)
    assert isinstance(found, Graph) and found.inputs["CustomJob/reader"]["data"] == {"train": summary}


def test_unlocked_data_of_a_program_s_job_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warnings: list[str] = []
    monkeypatch.setattr(pulumi, "warn", warnings.append)

    def program(ground: Ground, verify: str = "error") -> None:
        CustomJob("reader", ALLOWED, foundation=ground, data={"train": LockedData("gs://acme/x/", None, verify)})

    line = 'CustomJob "reader": data.train: is not locked, so no change of gs://acme/x/ runs a job again; run '
    line += f"`vertex-training data lock --stack {pulumi.get_stack()} train`"
    assert run(load(tmp_path, CLOUD), program, preview=True) == [line]
    assert warnings == []
    for stack, verify in ((LOCAL, "error"), (CLOUD, "warn"), (CLOUD, "off")):
        assert isinstance(run(load(tmp_path, stack), lambda ground: program(ground, verify), preview=True), Graph)  # noqa: B023
    assert warnings == [line] * 2


@pytest.mark.parametrize("problem", ["guardrail", "cost"])
def test_an_output_beyond_a_guardrail_stops_its_job(tmp_path: Path, problem: str) -> None:
    stack, machine = (LOCAL + GUARDED, "e2-standard-4") if problem == "guardrail" else (LIMITED, "n1-standard-96")
    registered: list[str] = []

    def program(ground: Ground) -> None:
        first = CustomJob("first", ALLOWED, foundation=ground)
        first.id.apply(registered.append)
        CustomJob("second", on(first.id.apply(lambda _: machine)), foundation=ground)

    lines = run(load(tmp_path, stack), program, preview=False)
    assert isinstance(lines, list) and len(lines) == 1
    assert lines[0].startswith('CustomJob "second": ')
    assert registered == ["first-id"]


def test_a_preview_names_specs_that_are_not_known(tmp_path: Path) -> None:
    def program(ground: Ground) -> None:
        for name in "abcdefg":
            CustomJob(name, on(pulumi.Output.from_input(pulumi.UNKNOWN)), foundation=ground)
        CustomJob("wrong", on("e2-standard-4"), foundation=ground)

    stack = LOCAL + GUARDED
    (line,) = cast(list[str], run(load(tmp_path, stack), program, preview=True))
    assert line.startswith('CustomJob "wrong": ')
    with mock.patch("pulumi.log.info") as logged:
        assert isinstance(run(load(tmp_path, stack.replace("n1-*", "e2-*")), program, preview=True), Graph)
    ((text,), _) = logged.call_args
    assert text.startswith('not known in this preview: the specs of CustomJob "a", CustomJob "b", ')
    assert 'CustomJob "e" and 2 more. They are validated during the update' in text


def test_the_cost_of_all_jobs_has_a_limit(tmp_path: Path) -> None:
    declared = """
    customJobs:
      declared:
        jobSpec:
          workerPoolSpecs:
            - machineSpec: {machineType: n1-standard-4}
              containerSpec: {imageUri: us-docker.pkg.dev/p/r/i}
    """

    def program(ground: Ground, names: str) -> None:
        for name in names:
            CustomJob(name, ALLOWED, foundation=ground)

    stack = LIMITED.replace(CLOUD, CLOUD_INCLUDING)
    settings = load(tmp_path, stack, jobs=declared)
    assert isinstance(run(settings, lambda ground: program(ground, "a"), preview=True), Graph)
    (line,) = cast(list[str], run(settings, lambda ground: program(ground, "ab"), preview=False))
    assert line.startswith(
        "stacks/Pulumi.dev.yaml:7: vertex-training:guardrails.maxHourlyCost: 0.74 USD an hour by list price; "
    )
    assert line.endswith("; most expensive: declared 0.25, a 0.25, b 0.25")


def test_jobs_of_one_name_count_each(tmp_path: Path) -> None:
    job = Job(CUSTOM_JOB, ALLOWED)
    jobs = [Training(kind, "a", job) for kind in (CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB)]
    whole = load(tmp_path, LIMITED).plan.with_program(jobs, [], [])
    assert [*whole.costs] == ['CustomJob "a"', 'HyperparameterTuningJob "a"']
    assert [each.name for each in whole.trainings] == [*whole.costs]


def test_images_that_the_program_builds_are_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = load(
        tmp_path,
        LOCAL + "  vertex-training:guardrails: {registries: [us-docker.pkg.dev/acme/approved]}\n",
        **{"trainer/Dockerfile": "FROM scratch\n"},
    )

    def program(ground: Ground) -> None:
        image = TrainingImage("trainer", {"context": "trainer"}, foundation=ground)
        pinned = pulumi.Output.concat(image.reference.rpartition(":")[0], "@sha256:", "0" * 64)
        uris = {"built": image.reference, "pinned": pinned, "other": f"{ground.image_uri_prefix}/a:1"}
        for name, uri in uris.items():
            CustomJob(name, edited(ALLOWED, *IMAGE_URI, to=uri), foundation=ground)

    (line,) = cast(list[str], run(settings, program, preview=True))
    assert line.startswith('CustomJob "other": jobSpec.workerPoolSpecs[0].containerSpec.imageUri: guardrails.regis')


def test_resources_of_a_job_are_in_its_region(tmp_path: Path) -> None:
    key = "projects/p/locations/europe-west4/keyRings/r/cryptoKeys/k"

    def program(ground: Ground) -> None:
        CustomJob("a", ALLOWED | {"encryptionSpec": {"kmsKeyName": key}}, foundation=ground)

    (line,) = cast(list[str], run(load(tmp_path, CLOUD), program, preview=True))
    assert line.startswith('CustomJob "a": encryptionSpec.kmsKeyName: ') and "us-central1" in line


SINGLE = "  vertex-training:guardrails: {maxReplicas: 1}\n"
FAULTS: dict[str, tuple[Any, ...]] = {
    "guardrail": ("jobSpec", "workerPoolSpecs", 0, "replicaCount", 2),
    "label": ("labels", {"pulumi_name": "mine"}),
    "folder": ("jobSpec", "baseOutputDirectory", {"outputUriPrefix": "gs://acme-dev-team-dev"}),
    "region": ("jobSpec", "tensorboard", "projects/1/locations/europe-west4/tensorboards/2"),
}


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
        tmp_path, CLOUD_INCLUDING + SINGLE, jobs=json.dumps({"customJobs": {"a": {**spec, **own}}, **schedule})
    )
    prefix = "customJobs.a."
    assert [line.partition(prefix)[2] for line in declared] == said(
        load(tmp_path, CLOUD + SINGLE), spec, scheduled=scheduled
    )


@pytest.mark.parametrize("known", [True, False])
def test_a_program_s_schedule_costs_a_run(tmp_path: Path, known: bool) -> None:
    shown: list[Plan] = []

    def program() -> None:
        ground = Ground(program=Program(load(tmp_path, CLOUD).plan))
        ground.program.on_valid = shown.append
        late = ALLOWED if known else on(pulumi.Output.from_input(pulumi.UNKNOWN))
        jobs = {"a": JobTemplate(CustomJob, ALLOWED), "b": JobTemplate(CustomJob, late)}
        Schedule("daily", {"cron": "0 1 * * *", "jobs": jobs}, foundation=ground)

    with mock.patch("pulumi.log.info"):
        graph(program, preview=True)
    (plan,) = shown
    assert cost_lines(plan, date(2026, 11, 21)) == []
    assert [line.partition(": ")[0] for line in schedule_lines(plan)[1:]] == (
        ["  daily", "  all that are not paused"] if known else []
    )


def test_a_spec_that_is_none_is_refused(tmp_path: Path) -> None:
    settings = load(tmp_path, CLOUD)
    lines = run(settings, lambda ground: CustomJob("a", cast(Any, None), foundation=ground), preview=True)
    assert lines == ['CustomJob "a": must be an object with named fields']


def test_a_lifecycle_says_who_may_set_what() -> None:
    assert shapes.LIFECYCLE.keys() == shapes.Lifecycle.__annotations__.keys()
    training, wrong = Training.parse(CUSTOM_JOB, "a", NOT_KNOWN, {"onDelet": "keep"}, lambda *_: cast(Any, None))
    assert training.lifecycle == {} and [each.path for each in wrong] == [(LIFECYCLE, "onDelet")]


def test_figures_and_limits_are_guardrails() -> None:
    assert {each.rule for each in (*FIGURES, *LIMITS) if each.rule} <= shapes.Guardrails.__annotations__.keys()
    plan = Plan({}, (Training(CUSTOM_JOB, "a", Job(CUSTOM_JOB, custom_job())),), region="us-central1")
    assert plan.totals.sums.keys() == {each.sum_name for each in FIGURES}
    # Reviews in JSON have both side by side.
    assert not plan.totals.sums.keys() & {each.name for each in fields(Totals)}


def test_a_figure_counts_what_it_knows() -> None:
    costs = [Cost(Money(1), Money(2)), Cost(Money(4), Money(inf)), Cost(Money(8), Money(16), unpriced=("n9",))]
    assert [each.sum(costs) for each in FIGURES] == [5.0, 2.0]
    assert replace(FIGURES[0], missing=lambda _: ()).sum(costs) == 13.0
