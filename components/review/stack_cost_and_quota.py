"""What a stack costs and needs before and after: from the inputs of its jobs, by the functions that previews use."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vertex_api.estimates.cost import Cost, estimate_cost, persistent_cost
from vertex_api.estimates.quota import needed_quota, persistent_quota
from vertex_api.job import Job, stored_job
from vertex_api.retry import SUBMISSIONS_PER_MINUTE

from ..runtime import pacing
from ..runtime.target import CLOUD_PREFIX
from ..settings import gcp_stack_rules
from ..settings.price_overrides import merge_prices
from .job_changes import KINDS_BY_TYPE
from .preview_document import PreviewDocument

_PERSISTENT_RESOURCE_TYPE = "gcp:vertex/aiPersistentResource:AiPersistentResource"
_NUMBERS = ("acceleratorCount", "bootDiskSizeGb", "maxReplicaCount", "minReplicaCount", "replicaCount")


@dataclass(frozen=True)
class Totals:
    """Sums over the jobs and machines of a stack that a preview lists.

    `hourly` and `ceiling` are USD by list price; `ceiling` is that of all jobs if each runs until its timeout.
    `unpriced` and `unknown` name jobs that the sums leave out: for lack of a price, or as their spec is not known yet.
    """

    hourly: float
    ceiling: float
    endless: tuple[str, ...]
    unpriced: tuple[str, ...]
    unknown: tuple[str, ...]
    quota: Mapping[str, int]


@dataclass(frozen=True)
class Submissions:
    """How many of Vertex AI's submissions an update takes, and how many a minute allows; None for no limit."""

    count: int
    per_minute: int | None


@dataclass(frozen=True)
class StackSide:
    """The jobs and machines of one side of a preview, before or after: their costs, quotas and specs by name."""

    costs: Mapping[str, Cost]
    quotas: Mapping[str, Mapping[str, int]]
    specs: Mapping[str, Job]
    unknown: tuple[str, ...]

    @classmethod
    def from_preview_with_cloud_jobs_or_none(cls, preview: PreviewDocument, is_after: bool) -> "StackSide | None":
        """Return one side of a preview, or None if it has no jobs for Google Cloud."""
        prices = merge_prices(preview.valid_part_of_stack_config.get("prices"))
        costs: dict[str, Cost] = {}
        quotas: dict[str, Mapping[str, int]] = {}
        specs: dict[str, Job] = {}
        unknown: list[str] = []
        for step in preview.steps:
            inputs = step.new_inputs if is_after else step.old_inputs
            if inputs is None:
                continue
            if step.type == _PERSISTENT_RESOURCE_TYPE:
                pools = [_restore_integers_and_drop_empty_values(pool) for pool in inputs.get("resourcePools") or []]
                name = gcp_stack_rules.PERSISTENT_RESOURCE
                costs[name] = persistent_cost(pools, str(inputs.get("location")), prices)
                quotas[name] = persistent_quota(pools)
            elif step.type in KINDS_BY_TYPE and str(inputs.get("parent")).startswith(CLOUD_PREFIX):
                try:
                    spec = stored_job(KINDS_BY_TYPE[step.type], inputs["spec"])
                    region = str(inputs["parent"]).rpartition("/")[2]
                    cost, quota = estimate_cost(spec, region, prices), needed_quota(spec)
                except (AttributeError, KeyError, TypeError, ValueError):
                    # A text stands in place of a part that a preview does not know, or that is secret.
                    unknown.append(step.name)
                    continue
                specs[step.name], costs[step.name], quotas[step.name] = spec, cost, quota
        return cls(costs, quotas, specs, tuple(unknown)) if costs or unknown else None

    @property
    def totals(self) -> Totals:
        """The sums of all."""
        priced = {name: cost for name, cost in self.costs.items() if not cost.unpriced}
        return Totals(
            hourly=sum(cost.hourly for cost in priced.values()),
            ceiling=sum(cost.total for cost in priced.values() if not cost.is_endless),
            endless=tuple(name for name, cost in self.costs.items() if cost.is_endless),
            unpriced=tuple(name for name, cost in self.costs.items() if cost.unpriced),
            unknown=self.unknown,
            quota=dict(sorted(sum(map(Counter, self.quotas.values()), Counter[str]()).items())),
        )


def get_max_submissions_per_minute_or_none(preview: PreviewDocument) -> int | None:
    """Return how many submissions a minute Vertex AI takes, or the stack sets; None for a target without a limit."""
    configured = preview.config.get(pacing.CONFIG_KEY)
    if configured and configured.isdigit():
        return int(configured)
    return SUBMISSIONS_PER_MINUTE if preview.valid_part_of_stack_config.get("target") == "gcp" else None


def _restore_integers_and_drop_empty_values(value: Any) -> Any:
    """Return a pool as stack files have it: the provider takes some numbers as texts."""
    if isinstance(value, Mapping):
        return {
            key: int(each) if key in _NUMBERS else _restore_integers_and_drop_empty_values(each)
            for key, each in value.items()
            if each
        }
    return value
