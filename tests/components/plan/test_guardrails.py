"""Guardrails: what breaks one is a problem like any other, with its line, the rule and what is allowed."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from vertex_training.errors import ImageRefused
from vertex_training.plan.guardrails import expected_violation
from vertex_training.plan.limits import Limits, Source
from vertex_training.schema.shapes import Guardrails

from tests.components.projects import CLOUD_INCLUDING, INCLUDING, load, problems
from vertex_api.estimates.cost import Cost
from vertex_api.estimates.prices import Money

JOBS = """\
vars: {machine: n1-standard-4, hours: 7200s}
images:
  elsewhere: {uri: "registry.test/team-b/trainer:1"}
  promoted: {stack: organization/team/dev}
customJobs:
  train:
    labels: {team: vision}
    jobSpec:
      scheduling: {timeout: "${vars.hours}"}
      workerPoolSpecs:
        - machineSpec: {machineType: "${vars.machine}"}
          containerSpec: {imageUri: "registry.test/team/trainer:1"}
        - machineSpec: {machineType: n1-standard-8, acceleratorType: NVIDIA_TESLA_T4, acceleratorCount: 1}
          replicaCount: 3
          containerSpec: {imageUri: "${images.elsewhere}"}
hyperparameterTuningJobs:
  search:
    studySpec:
      metrics: [{metricId: score, goal: MAXIMIZE}]
      parameters: [{parameterId: lr, doubleValueSpec: {minValue: 0.0, maxValue: 1.0}}]
    maxTrialCount: 20
    parallelTrialCount: 5
    trialJobSpec:
      workerPoolSpecs:
        - machineSpec: {machineType: n1-standard-4}
          containerSpec: {imageUri: "${images.promoted}"}
"""
TRAIN, TRIAL = "customJobs.train.jobSpec", "hyperparameterTuningJobs.search.trialJobSpec"
N1 = "machineSpec.machineType: guardrails.machineTypes:"
REGISTRIES = "guardrails.registries:"


def stack(rules: dict[str, Any], base: str = INCLUDING) -> str:
    return f"{base}  vertex-training:guardrails: {json.dumps(rules)}\n"


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (
            {"machineTypes": ["n1-standard-4", "g2-*"]},
            [f'jobs.yaml:13: {TRAIN}.workerPoolSpecs[1].{N1} "n1-standard-8" is not allowed here; '
             "allowed: n1-standard-4 or g2-*"],
        ),
        (
            {"acceleratorTypes": ["NVIDIA_L4"]},
            [f"jobs.yaml:13: {TRAIN}.workerPoolSpecs[1].machineSpec.acceleratorType: guardrails.acceleratorTypes: "
             '"NVIDIA_TESLA_T4" is not allowed here; allowed: NVIDIA_L4'],
        ),
        (
            {"requiredLabels": ["team"]},
            ['jobs.yaml:17: hyperparameterTuningJobs.search.labels.team: guardrails.requiredLabels: has no label '
             '"team"; set it here, or for all jobs in the stack'],
        ),
        (
            {"requireTimeout": True},
            [f'jobs.yaml:23: {TRIAL}.scheduling.timeout: guardrails.requireTimeout: is required here, such as "3600s"'],
        ),
        (
            {"maxTimeout": "3600s"},
            [f'jobs.yaml:9: {TRAIN}.scheduling.timeout: guardrails.maxTimeout: "7200s" is longer than the "3600s" '
             "that is allowed here",
             f'jobs.yaml:23: {TRIAL}.scheduling.timeout: guardrails.maxTimeout: seven days ("604800s"), the default, '
             'is longer than the "3600s" that is allowed here'],
        ),
        (
            {"maxReplicas": 3},
            [f"jobs.yaml:10: {TRAIN}.workerPoolSpecs: guardrails.maxReplicas: 4 replicas in all pools; "
             "at most 3 are allowed here"],
        ),
        (
            {"maxTrials": 10, "maxParallelTrials": 4},
            ["jobs.yaml:21: hyperparameterTuningJobs.search.maxTrialCount: guardrails.maxTrials: 20 trials; "
             "at most 10 are allowed here",
             "jobs.yaml:22: hyperparameterTuningJobs.search.parallelTrialCount: guardrails.maxParallelTrials: "
             "5 trials at once; at most 4 are allowed here"],
        ),
        (
            {"registries": ["registry.test/team/"]},
            [f'jobs.yaml:15: {TRAIN}.workerPoolSpecs[1].containerSpec.imageUri: {REGISTRIES} '
             '"registry.test/team-b/trainer:1" is not in an allowed registry; allowed: registry.test/team/'],
        ),
    ],
)  # fmt: skip
def test_a_violation_names_line_rule_and_allowed_values(
    tmp_path: Path, rules: dict[str, Any], expected: list[str]
) -> None:
    assert problems(tmp_path, stack(rules), jobs=JOBS) == expected


PIPELINES = """\
images:
  elsewhere: {uri: "registry.test/team-b/serve:1"}
trainingPipelines:
  piped:
    trainingTaskInputs:
      workerPoolSpecs:
        - machineSpec: {machineType: n1-standard-8}
          containerSpec: {imageUri: "registry.test/team/trainer:1"}
    modelToUpload:
      containerSpec: {imageUri: "${images.elsewhere}"}
  tuned:
    labels: {team: vision}
    trainingTaskInputs:
      studySpec:
        metrics: [{metricId: score, goal: MAXIMIZE}]
        parameters: [{parameterId: lr, doubleValueSpec: {minValue: 0.0, maxValue: 1.0}}]
      maxTrialCount: 20
      parallelTrialCount: 5
      trialJobSpec:
        scheduling: {timeout: 7200s}
        workerPoolSpecs:
          - machineSpec: {machineType: n1-standard-4}
            containerSpec: {imageUri: "registry.test/team-b/trainer:1"}
"""
PIPED, TUNED = (f"trainingPipelines.{name}.trainingTaskInputs" for name in ("piped", "tuned"))


def test_guardrails_cover_a_pipeline_s_job_and_image(tmp_path: Path) -> None:
    rules = {
        "machineTypes": ["n1-standard-4"],
        "requiredLabels": ["team"],
        "maxTimeout": "3600s",
        "maxTrials": 10,
        "registries": ["registry.test/team/"],
    }
    found = problems(tmp_path, stack(rules), jobs=PIPELINES)
    assert [problem.split(": ")[:3] for problem in found] == [
        ["jobs.yaml:4", "trainingPipelines.piped.labels.team", "guardrails.requiredLabels"],
        ["jobs.yaml:5", f"{PIPED}.scheduling.timeout", "guardrails.maxTimeout"],
        ["jobs.yaml:7", f"{PIPED}.workerPoolSpecs[0].machineSpec.machineType", "guardrails.machineTypes"],
        ["jobs.yaml:10", "trainingPipelines.piped.modelToUpload.containerSpec.imageUri", "guardrails.registries"],
        ["jobs.yaml:17", f"{TUNED}.maxTrialCount", "guardrails.maxTrials"],
        ["jobs.yaml:20", f"{TUNED}.trialJobSpec.scheduling.timeout", "guardrails.maxTimeout"],
        ["jobs.yaml:23", f"{TUNED}.trialJobSpec.workerPoolSpecs[0].containerSpec.imageUri", "guardrails.registries"],
    ]


def test_jobs_within_the_guardrails_are_unchanged(tmp_path: Path) -> None:
    rules = {
        "machineTypes": ["n1-*"],
        "acceleratorTypes": ["NVIDIA_TESLA_*"],
        "maxTimeout": "604800s",
        "maxReplicas": 4,
        "maxTrials": 20,
        "maxParallelTrials": 5,
        "registries": ["registry.test"],
        "maxHourlyCost": 0.01,  # nothing is billed on this machine
    }
    assert load(tmp_path, stack(rules), jobs=JOBS).jobs == load(tmp_path, INCLUDING, jobs=JOBS).jobs


def test_guardrails_use_stack_vars_and_labels(tmp_path: Path) -> None:
    own = "  vertex-training:labels: {team: vision}\n  vertex-training:vars: {machine: e2-standard-4}\n"
    base = CLOUD_INCLUDING + own
    rules = {"machineTypes": ["n1-*"], "requiredLabels": ["team"]}
    assert problems(tmp_path, stack(rules, base), jobs=JOBS) == [
        f'jobs.yaml:11: {TRAIN}.workerPoolSpecs[0].{N1} "e2-standard-4" is not allowed here; allowed: n1-*'
    ]


def test_a_value_known_later_is_rejected(tmp_path: Path) -> None:
    later = "${jobs.search.bestTrial.parameters.lr}"
    jobs = JOBS.replace('"${vars.machine}"', f'"{later}"')
    (problem,) = problems(tmp_path, stack({"machineTypes": ["n1-*"]}), jobs=jobs)
    assert problem.startswith(f'jobs.yaml:11: {TRAIN}.workerPoolSpecs[0].{N1} "{later}" stands for a value')


def test_guardrails_are_reported_together_with_all_else(tmp_path: Path) -> None:
    jobs = JOBS.replace("maxTrialCount: 20", "maxTrialCount: 0")
    found = problems(tmp_path, stack({"maxReplicas": 1}), jobs=jobs)
    assert [line.partition(": ")[0] for line in found] == ["jobs.yaml:10", "jobs.yaml:21"]


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ({"maxReplica": 1}, "guardrails.maxReplica: unknown field; did you mean maxReplicas?"),
        ({"maxReplicas": 0}, "guardrails.maxReplicas: 0 is not above zero"),
        ({"acceleratorTypes": []}, "guardrails.acceleratorTypes: is empty; remove it, or write"),
    ],
)
def test_a_slip_in_the_guardrails_is_refused(tmp_path: Path, rules: dict[str, Any], problem: str) -> None:
    (found,) = problems(tmp_path, stack(rules), jobs=JOBS)
    assert found.startswith(f"stacks/Pulumi.dev.yaml:4: vertex-training:{problem}")


BROKEN: dict[str, Any] = {
    "machineTypes": ["e2-*"],
    "acceleratorTypes": ["NVIDIA_L4"],
    "requiredLabels": ["costs"],
    "requireTimeout": True,
    "maxTimeout": "3600s",
    "maxReplicas": 1,
    "maxTrials": 1,
    "maxParallelTrials": 1,
    "registries": ["registry.test/none"],
    "maxHourlyCost": 0.1,
    "maxTotalCost": 0.1,
}
"""Of each guardrail a value that `JOBS` break."""


# quotaCheck is for what Google answers, maxMonthlyCost for schedules, maxExpectedCost for jobs that have run, and
# warnCostFactor for reviews.
@pytest.mark.parametrize(
    "rule",
    sorted(Guardrails.__annotations__.keys() - {"quotaCheck", "maxMonthlyCost", "maxExpectedCost", "warnCostFactor"}),
)
def test_each_guardrail_blocks(tmp_path: Path, rule: str) -> None:
    found = problems(tmp_path, stack({rule: BROKEN[rule]}, CLOUD_INCLUDING), jobs=JOBS)
    assert found and all(f"guardrails.{rule}: " in line for line in found)


@pytest.mark.parametrize("rule", Guardrails.__annotations__)
@pytest.mark.parametrize("nothing", [None, []])
def test_an_empty_rule_is_rejected(tmp_path: Path, rule: str, nothing: object) -> None:
    (found,) = problems(tmp_path, stack({rule: nothing}), jobs=JOBS)
    place = f"stacks/Pulumi.dev.yaml:4: vertex-training:guardrails.{rule}"
    assert found.startswith(f"{place}: is empty; remove it, or ")


def test_none_allows_none(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, stack({"acceleratorTypes": ["none"]}), jobs=JOBS)
    assert found.endswith('"NVIDIA_TESLA_T4" is not allowed here; allowed: none')


# train: n1-standard-4 + 3 x (n1-standard-8 + T4) + 4 disks = 0.21849885 + 3 x 0.8394977 + 0.1071232876 = 2.8441152
# an hour, two hours at most: 5.6882304; search: 0.24527967 x 5 = 1.2263984 an hour, x 20 x 168 h = 824.1396976 at most
@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({"maxHourlyCost": 4.08, "maxTotalCost": 830.0}, []),
        (
            {"maxHourlyCost": 4.0},
            ["stacks/Pulumi.dev.yaml:7: vertex-training:guardrails.maxHourlyCost: 4.07 USD an hour by list price; "
             "allowed: 4.00 for all jobs; most expensive: train 2.84, search 1.23"],
        ),
        (
            {"maxTotalCost": 100},
            ["jobs.yaml:17: hyperparameterTuningJobs.search: guardrails.maxTotalCost: 824.14 USD at most by list "
             "price; allowed: 100.00 for all jobs"],
        ),
    ],
)  # fmt: skip
def test_cost_limits_apply_to_all_jobs_together(tmp_path: Path, rules: dict[str, Any], expected: list[str]) -> None:
    if expected:
        assert problems(tmp_path, stack(rules, CLOUD_INCLUDING), jobs=JOBS) == expected
    else:
        assert load(tmp_path, stack(rules, CLOUD_INCLUDING), jobs=JOBS).plan.costs["search"].total == pytest.approx(
            824.1396976
        )


def test_a_limit_of_expected_cost_names_prices_of_another_region() -> None:
    cost = Cost(Money(1), Money(2), nearest=(("NVIDIA_L4", "us-east1"),))
    said = expected_violation({"maxExpectedCost": 1.0}, {"train": Money(2)}, [cost])
    assert said and " of the last runs by list price (NVIDIA_L4 at the price of us-east1); allowed: 1.00 " in said


B200 = "a4-highgpu-8g, acceleratorType: NVIDIA_B200"
ON_B200 = JOBS.replace(
    "n1-standard-8, acceleratorType: NVIDIA_TESLA_T4, acceleratorCount: 1", f"{B200}, acceleratorCount: 8"
)
P4 = JOBS.replace("n1-standard-8, acceleratorType: NVIDIA_TESLA_T4", "n1-standard-8, acceleratorType: NVIDIA_TESLA_P4")
IN_BELGIUM = CLOUD_INCLUDING.replace("us-central1", "europe-west1")


def test_a_cost_limit_requires_prices(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, stack({"maxHourlyCost": 100}, IN_BELGIUM), jobs=ON_B200)
    assert found == (
        "jobs.yaml:6: customJobs.train: guardrails.maxHourlyCost: no price on file for "
        "hyperdisk-balanced, a4-highgpu-8g, NVIDIA_B200 in europe-west1; add it under vertex-training:prices"
    )
    parts = {"disk": "hyperdisk-balanced", "vcpu": "A4", "gb": "A4", "accelerator": "NVIDIA_B200"}
    own = {kind: {name: {"europe-west1": 0.01}} for kind, name in parts.items()}
    own |= {"asOf": "2026-11-01", "source": "our contract"}  # type: ignore[dict-item]
    priced = f"{IN_BELGIUM}  vertex-training:prices: {json.dumps(own)}\n"
    assert load(tmp_path, stack({"maxHourlyCost": 500}, priced), jobs=ON_B200).plan.costs["train"].unpriced == ()


def test_a_cost_limit_counts_the_nearest_price_and_says_so(tmp_path: Path) -> None:
    assert load(tmp_path, stack({"maxHourlyCost": 100}, IN_BELGIUM), jobs=P4).plan.costs["train"].unpriced == ()
    nearest = "by list price (NVIDIA_TESLA_P4 at the price of europe-west4); allowed: "
    train, search = problems(tmp_path, stack({"maxHourlyCost": 1}, IN_BELGIUM), jobs=P4)
    assert nearest in train and "at the price of" not in search
    (both,) = problems(tmp_path, stack({"maxHourlyCost": 5}, IN_BELGIUM), jobs=P4)
    assert nearest in both and "most expensive: train 3.96, " in both
    own = {"asOf": "2026-11-01", "source": "our contract", "accelerator": {"NVIDIA_TESLA_P4": {"europe-west1": 0.7}}}
    priced = f"{IN_BELGIUM}  vertex-training:prices: {json.dumps(own)}\n"
    said = problems(tmp_path, stack({"maxHourlyCost": 1}, priced), jobs=P4)
    assert said and not [each for each in said if "at the price of" in each]


@pytest.mark.parametrize(
    ("own", "problem"),
    [
        ({"asOf": "today"}, 'asOf: "today" is not a date, such as 2026-07-30'),
        ({"vcpu": {"n1": {"us-central1": 1}}}, "vcpu.n1: is not a name that has a price; did you mean N1?"),
        ({"vcpu": {"N1": {"us-central1": -1}}}, "vcpu.N1.us-central1: -1.0 is below zero"),
        ({"asOf": "2226-07-30"}, 'asOf: "2226-07-30" must not be in the future'),
        ({"source": ""}, "source: is empty; write where the prices come from"),
        (
            {"gb": {"N1": {"us-centrall": 1}}},
            "gb.N1.us-centrall: is not a known region; did you mean us-central1?",
        ),
        ({"vcpus": {}}, "vcpus: unknown field; did you mean vcpu?"),
    ],
)
def test_a_slip_in_the_prices_is_refused(tmp_path: Path, own: dict[str, Any], problem: str) -> None:
    given = {"asOf": "2026-11-01", "source": "our contract", **own}
    (found,) = problems(tmp_path, f"{CLOUD_INCLUDING}  vertex-training:prices: {json.dumps(given)}\n", jobs=JOBS)
    assert found == f"stacks/Pulumi.dev.yaml:7: vertex-training:prices.{problem}"


def test_a_stack_can_price_its_new_region(tmp_path: Path) -> None:
    given = {"asOf": "2026-11-01", "source": "our contract", "vcpu": {"N1": {"moon-north1": 1}}}
    said = problems(tmp_path, f"{CLOUD_INCLUDING}  vertex-training:prices: {json.dumps(given)}\n", jobs=JOBS)
    assert [each.partition(" is not a known region")[0].rpartition(".")[2] for each in said] == ["moon-north1:"]
    there = CLOUD_INCLUDING.replace("us-central1", "moon-north1")
    assert load(tmp_path, f"{there}  vertex-training:prices: {json.dumps(given)}\n", jobs=JOBS).region == "moon-north1"


def test_guardrails_check_another_stack_s_image_once_known() -> None:
    check = Limits((Source({"registries": ["registry.test/team"]}),)).image_check("trainer")
    assert check("registry.test/team/trainer@sha256:0") == "registry.test/team/trainer@sha256:0"
    with pytest.raises(ImageRefused, match=r'^images.trainer: guardrails.registries: "registry.test/team-b/trainer@'):
        check("registry.test/team-b/trainer@sha256:0")
    assert Limits().image_check("trainer")("anywhere/trainer") == "anywhere/trainer"


@pytest.mark.parametrize("limit", [0.29, 0.31])
def test_an_expected_cost_counts_jobs_that_have_run(tmp_path: Path, limit: float) -> None:
    # 0.24527967 an hour of one trial, as above: 0.3066 for a mean of 4,500 seconds. `train` has no run.
    record = "\n".join(
        f"2026-11-2{day}T09:00:00Z 900 s, {busy} s of 3 trials on 1 n1-standard-4"
        for day, busy in ((1, 3600), (2, 5400))
    )
    plan = load(tmp_path, stack({"maxExpectedCost": limit}, CLOUD_INCLUDING), jobs=JOBS).plan
    plan = replace(plan, records=lambda: {"search": record})
    broken = (
        "stacks/Pulumi.dev.yaml:7: vertex-training:guardrails.maxExpectedCost: 0.31 USD expected, the mean of the "
        "last runs by list price; allowed: 0.29 for all jobs; most expensive: search 0.31"
    )
    assert [str(each) for each in plan.sum_problems()] == ([broken] if limit < 0.3 else [])
    assert [each.text for each in plan.near] == [f"0.31 of {limit} USD expected"]
