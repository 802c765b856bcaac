"""The guardrails that a stack nearly reaches after an update."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vertex_api.scalars import to_seconds

from ..settings import guardrail_checks
from .preview_document import PreviewDocument
from .stack_cost_and_quota import StackSide

NEAR_SHARE = 0.8
"""A guardrail is near from this share of its limit on."""


@dataclass(frozen=True)
class NearlyReachedGuardrail:
    """A guardrail that is nearly reached: by how many, and by whom the most."""

    rule: str
    value: float
    limit: float
    unit: str
    name: str


def find_nearly_reached_guardrails(preview: PreviewDocument, side: StackSide) -> list[NearlyReachedGuardrail]:
    """Find the guardrails of which a stack uses `NEAR_SHARE` or more; a preview with a broken one fails."""
    rules: Mapping[str, Any] = preview.valid_part_of_stack_config.get("guardrails", {})
    totals = side.totals
    measured = [
        NearlyReachedGuardrail("maxHourlyCost", totals.hourly, rules.get("maxHourlyCost", 0), "USD an hour", ""),
        NearlyReachedGuardrail("maxTotalCost", totals.ceiling, rules.get("maxTotalCost", 0), "USD at most", ""),
    ]
    largest: dict[str, NearlyReachedGuardrail] = {}
    for name, spec in side.specs.items():
        job = spec.backing
        values: dict[str, float] = dict(guardrail_checks.count_replicas_and_trials_by_rule(spec.job_spec, job.fields))
        values["maxTimeout"] = side.costs[name].max_seconds
        for rule, value in values.items():
            if rule in rules and (rule not in largest or value > largest[rule].value):
                limit = to_seconds(rules[rule]) if rule == "maxTimeout" else rules[rule]
                largest[rule] = NearlyReachedGuardrail(
                    rule, value, limit, "seconds" if rule == "maxTimeout" else "", name
                )
    return [each for each in [*measured, *largest.values()] if each.limit and each.value >= NEAR_SHARE * each.limit]
