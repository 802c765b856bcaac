"""What a review says of money and of guardrails: what an update costs, what grows, and which limits it loosens."""

import json
from typing import Any

import pytest
from vertex_training.review import guardrails
from vertex_training.review.guardrails import RuleChange
from vertex_training.review.markdown import render_markdown
from vertex_training.review.review import Review, build_review
from vertex_training.review.sides import plan_of
from vertex_training.schema.shapes import Guardrails

from tests.blocks import taken
from tests.components.review.recorded_previews import find_step, parse, read_recorded

RULES = "vertex-training:guardrails"


def edited(machine: str = "n1-standard-8", **rules: Any) -> dict[str, Any]:
    """Return a preview in which `train` gets a machine, and its stack other guardrails."""
    fields = read_recorded("machine-change")
    spec = find_step(fields, "train")["newState"]["inputs"]["spec"]["jobSpec"]
    spec["workerPoolSpecs"][0]["machineSpec"]["machineType"] = machine
    fields["config"][RULES] = json.dumps(rules)
    return fields


def keep(fields: dict[str, Any], name: str) -> None:
    """Let a job stay as it is."""
    step = find_step(fields, name)
    step |= {"op": "same", "newState": step["oldState"], "diffReasons": [], "replaceReasons": []}


def reviewed(fields: dict[str, Any], base: dict[str, Any] | None = None) -> tuple[Review, list[str]]:
    """Return a review, and what its section on guardrails says."""
    review = build_review(parse(fields), parse(base) if base else None)
    section = render_markdown(review).partition("**Guardrails**\n\n")[2].partition("\n\n")[0]
    return review, section.splitlines()


def cost_line(fields: dict[str, Any]) -> str:
    return render_markdown(build_review(parse(fields))).splitlines()[1]


def test_the_first_line_is_what_an_update_costs() -> None:
    fields = edited()
    ceilings = "131.13 USD at most"
    assert (
        cost_line(fields) == f"- **Cost**: this update runs 2 of 2 jobs: {ceilings}, expected unknown: no earlier runs"
    )
    stack = next(step for step in fields["steps"] if "::pulumi:pulumi:Stack::" in step["urn"])
    run = "2026-11-21T09:00:00Z 7200 s on 1 n1-standard-4"
    stack["oldState"]["outputs"] = {"runs": {"train": run}}
    assert cost_line(fields).endswith(f"{ceilings}, 1.02 USD expected for 1 of them by earlier runs")
    stack["oldState"]["outputs"] = {"runs": {"train": run, "evaluate": run}}
    assert cost_line(fields).endswith(f"{ceilings}, 1.56 USD expected by earlier runs")


def test_unchanged_jobs_are_not_paid_again() -> None:
    fields = edited()
    keep(fields, "evaluate")
    assert cost_line(fields).startswith("- **Cost**: this update runs 1 of 2 jobs: 85.77 USD at most, ")
    keep(fields, "train")
    assert cost_line(fields) == "- **Cost**: this update runs no job"


def test_machines_that_stay_are_part_of_the_cost() -> None:
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": "2"}
    inputs = {"location": "europe-west4", "resourcePools": [pool]}
    urn = "urn:pulumi:dev::vertex-training::gcp:vertex/aiPersistentResource:AiPersistentResource::pool"
    fields = edited()
    fields["steps"].append({"op": "create", "urn": urn, "newState": {"custom": True, "inputs": inputs}})
    assert "; `persistentResource` 0.00 → 0.54 USD an hour, without an end" in cost_line(fields)


@pytest.mark.parametrize(
    ("factor", "machine", "warning"),
    [
        (None, "n1-standard-64", "⚠️ 14 times the cost of `train`: 0.27 → 3.88 USD an hour, 45.36 → 651.53 USD at most"),
        (None, "n1-standard-32", ""),
        (7, "n1-standard-32", "⚠️ 7 times the cost of `train`: 0.27 → 1.95 USD an hour, 45.36 → 328.24 USD at most"),
        (20, "n1-standard-64", ""),
    ],
)
def test_a_cost_that_grows_too_much_is_shown(factor: float | None, machine: str, warning: str) -> None:
    _, section = reviewed(edited(machine, **({"warnCostFactor": factor} if factor else {})))
    assert [line.removeprefix("- ") for line in section if "times" in line] == ([warning] if warning else [])


def test_an_update_does_not_lift_its_own_warning() -> None:
    base, lifted = edited("n1-standard-4"), edited("n1-standard-64", warnCostFactor=100)
    _, section = reviewed(lifted, base)
    assert "- tightened" not in section and any("times the cost of `train`" in line for line in section)


def test_new_jobs_raise_the_sum_of_all() -> None:
    fields, base = edited(), edited("n1-standard-4")
    new = json.loads(json.dumps(find_step(fields, "train")))
    new |= {"op": "create", "urn": f"{new['urn']}-2"}
    del new["oldState"]
    container = new["newState"]["inputs"]["spec"]["jobSpec"]["workerPoolSpecs"][0]
    container["machineSpec"]["machineType"] = "n1-standard-96"
    fields["steps"].append(new)
    _, section = reviewed(fields, base)
    assert any("⚠️ 12 times the cost of all jobs: " in line for line in section)


def test_jobs_without_a_timeout_are_named() -> None:
    fields = edited()
    keep(fields, "evaluate")
    assert reviewed(fields)[1] == ["- ⚠️ without a timeout, so up to seven days: `train`"]
    spec = find_step(fields, "train")["newState"]["inputs"]["spec"]["jobSpec"]
    spec["scheduling"] = {"timeout": "3600s"}
    assert reviewed(fields)[1] == []


def test_guardrails_that_change_are_shown() -> None:
    rules = {"maxHourlyCost": 0.6, "machineTypes": ["n1-standard-4"], "maxReplicas": 2, "maxTimeout": "604800s"}
    new = {"machineTypes": ["n1-*"], "maxReplicas": 1, "maxTimeout": "604800s", "requireTimeout": False}
    review, section = reviewed(edited(**new), edited("n1-standard-4", **rules))
    assert section[:6] == [
        "- ⚠️ removed: `maxHourlyCost` `0.6` → (none)",
        '- ⚠️ loosened: `machineTypes` `["n1-standard-4"]` → `["n1-*"]`',
        "- tightened: `maxReplicas` `2` → `1`",
        "- added: `requireTimeout` (none) → `false`",
        '- ⚠️ breaks what held before: `train: jobSpec.workerPoolSpecs[0].machineSpec.machineType: guardrails.machineTypes: "n1-standard-8" is not allowed here; allowed: n1-standard-4`',  # noqa: E501
        "- ⚠️ breaks what held before: `dev: guardrails.maxHourlyCost: 0.78 USD an hour by list price; allowed: 0.60 for all jobs; most expensive: train 0.51, evaluate 0.27`",  # noqa: E501
    ]
    assert review.broken_rules and reviewed(edited(**rules), edited(**rules))[0].rule_changes == ()


def test_a_lifted_refusal_is_shown_as_a_loosened_limit() -> None:
    fields, place = edited("z9-giga-96"), "jobSpec.workerPoolSpecs[0].machineSpec.machineType"
    find_step(fields, "train")["newState"]["inputs"]["lifecycle"] = {"allow": [place]}
    _, section = reviewed(fields)
    assert f"- ⚠️ refused by the rules on file, and allowed by `train`: `{place}` `z9-giga-96`" in section
    find_step(fields, "train")["oldState"]["inputs"]["lifecycle"] = {"allow": [place]}
    assert not any("allowed by" in line for line in reviewed(fields)[1])


def test_images_of_the_stack_break_no_registries() -> None:
    fields, base = edited(registries=["docker.pkg.dev/x", "docker.io"]), edited(registries=["docker.pkg.dev/x"])
    (broken,) = build_review(parse(fields), parse(base)).broken_rules
    assert broken.startswith("evaluate: jobSpec.workerPoolSpecs[0].containerSpec.imageUri: guardrails.registries: ")


def test_the_page_shows_an_actual_section() -> None:
    _, section = reviewed(edited("n1-standard-64", maxHourlyCost=50.0), edited("n1-standard-4", maxHourlyCost=2.0))
    assert taken("docs/ci.md", "output", "- ⚠️ loosened") == ["\n".join(section) + "\n"]


LOOSER: dict[str, tuple[Any, Any]] = {
    "machineTypes": (["n1-*"], ["n1-*", "a2-*"]),
    "acceleratorTypes": (["NVIDIA_L4"], ["*"]),
    "requiredLabels": (["team", "costs"], ["team"]),
    "requireTimeout": (True, False),
    "maxTimeout": ("86400s", "100000s"),
    "maxReplicas": (2, 10),
    "maxTrials": (2, 10),
    "maxParallelTrials": (2, 10),
    "registries": (["docker.pkg.dev/x/y"], ["docker.pkg.dev/x"]),
    "maxHourlyCost": (2.0, 10.0),
    "maxTotalCost": (2.0, 10.0),
    "maxMonthlyCost": (2.0, 10.0),
    "maxExpectedCost": (2.0, 10.0),
    "warnCostFactor": (2.0, 10.0),
    "quotaCheck": ("block", "off"),
}


@pytest.mark.parametrize("rule", Guardrails.__annotations__)
def test_each_guardrail_has_a_looser_way(rule: str) -> None:
    old, new = LOOSER[rule]
    assert [each.change for each in guardrails.changes({rule: old}, {rule: new})] == ["loosened"]
    assert [each.change for each in guardrails.changes({rule: new}, {rule: old})] == ["tightened"]


def test_a_list_can_allow_more_and_less() -> None:
    (change,) = guardrails.changes({"machineTypes": ["n1-*"]}, {"machineTypes": ["n1-standard-4", "a2-*"]})
    assert change == RuleChange("machineTypes", "changed", '["n1-*"]', '["n1-standard-4", "a2-*"]') and change.is_loose


def ledger(settings: dict[str, Any], name: str = "job-names") -> dict[str, Any]:
    urn = f"urn:pulumi:dev::vertex-training::pulumi-python:dynamic/vertex-training:Ledger::{name}"
    return {"op": "same", "urn": urn, "newState": {"custom": True, "inputs": {"settings": settings}}}


def test_a_review_goes_by_the_settings_of_its_ledgers() -> None:
    """What a `TrainingStack` is given, and limits of other files, are in no config."""
    own = {"source": "", "rules": {"maxReplicas": 9}}
    given = {"source": 'TrainingStack "west"', "rules": {"maxReplicas": 1}, "own": True}
    fields = edited(maxReplicas=9)
    settings = {"guardrails": [own, given], "submissionsPerMinute": 1}
    fields["steps"] = [each for each in fields["steps"] if "Ledger" not in each["urn"]] + [ledger(settings)]
    review = build_review(parse(fields))
    assert [each.rule for each in review.near_limits] == ["maxReplicas"]
    assert review.submissions and review.submissions.per_minute == 1
    fields["steps"].append(ledger({"guardrails": [own]}, "east-job-names"))
    # Each limits its own jobs.
    assert build_review(parse(fields)).near_limits == ()


def test_a_review_prices_the_regions_of_all_ledgers() -> None:
    prices = {
        region: {"asOf": "2026-11-01", "source": region, "vcpu": {"N1": {region: 1.0}}}
        for region in ("us-west1", "us-west2")
    }
    fields = edited()
    fields["steps"] += [ledger({"prices": each}, f"{name}-job-names") for name, each in prices.items()]
    plan = plan_of(parse(fields), is_after=True)
    assert plan and plan.stack["prices"]["vcpu"] == {"N1": {"us-west1": 1.0, "us-west2": 1.0}}


def test_guardrails_are_compared_with_the_last_update() -> None:
    review, section = reviewed(read_recorded("limit-removed"))
    assert section[0] == "- ⚠️ removed: `maxHourlyCost` `2.0` → (none)" and len(review.broken_rules) == 1
    assert [each.change for each in review.rule_changes] == ["removed"] and len(review.rules_digest) == 16
    unchanged, section = reviewed(read_recorded("gpu-again"))
    assert (unchanged.rule_changes, unchanged.broken_rules, section) == ((), (), [])
