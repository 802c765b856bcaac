"""The jobs and machines of a preview before and after as Plans, and the submissions that its update takes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from vertex_api.job import stored_job
from vertex_api.retry import SUBMISSIONS_PER_MINUTE

from ..plan.plan import Plan
from ..plan.training import Training
from ..runtime import pacing
from ..runtime.target import CLOUD_PREFIX
from .job_changes import KINDS_BY_TYPE
from .preview_document import PreviewDocument

_PERSISTENT_RESOURCE_TYPE = "gcp:vertex/aiPersistentResource:AiPersistentResource"
_NUMBERS = ("acceleratorCount", "bootDiskSizeGb", "maxReplicaCount", "minReplicaCount", "replicaCount")


@dataclass(frozen=True)
class Submissions:
    """How many of Vertex AI's submissions an update takes, and how many a minute allows; None for no limit."""

    count: int
    per_minute: int | None


def plan_of(preview: PreviewDocument, *, is_after: bool) -> Plan | None:
    """Return the plan of one side of a preview, or None if it has no jobs for Google Cloud.

    A job whose cost or quota cannot be known yet is one of the plan's `unknown`.
    """
    trainings, unknown = list[Training](), list[str]()
    pools, region = list[Mapping[str, Any]](), None
    empty = Plan(preview.stack_values)
    for step in preview.steps:
        inputs = step.new_inputs if is_after else step.old_inputs
        if inputs is None:
            continue
        if step.type == _PERSISTENT_RESOURCE_TYPE:
            pools = [_restored(pool) for pool in inputs.get("resourcePools") or []]
            region = str(inputs.get("location"))
        elif step.type in KINDS_BY_TYPE and str(inputs.get("parent")).startswith(CLOUD_PREFIX):
            kind, place = KINDS_BY_TYPE[step.type], str(inputs["parent"]).rpartition("/")[2]
            try:
                training = Training(kind, step.name, stored_job(kind, inputs["spec"]), region=place)
                empty.estimate(training)
            except (AttributeError, KeyError, TypeError, ValueError):
                # A text stands in place of a part that a preview does not know, or that is secret.
                unknown.append(step.name)
            else:
                trainings.append(training)
    if not (trainings or unknown or region):
        return None
    return replace(empty, trainings=tuple(trainings), region=region, pools=pools, unknown=tuple(unknown))


def pace(preview: PreviewDocument) -> int | None:
    """Return how many submissions a minute Vertex AI takes, or the stack sets; None for a target without a limit."""
    configured = preview.config.get(pacing.CONFIG_KEY)
    if configured and configured.isdigit():
        return int(configured)
    return SUBMISSIONS_PER_MINUTE if preview.stack_values.get("target") == "gcp" else None


def _restored(value: Any) -> Any:
    """Return a pool as stack files have it: the provider takes some numbers as texts, and empty values."""
    if isinstance(value, Mapping):
        return {key: int(each) if key in _NUMBERS else _restored(each) for key, each in value.items() if each}
    return value
