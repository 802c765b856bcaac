"""Shortages of quota: what jobs need of Vertex AI's quotas beyond what their project is granted."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class QuotaShortage:
    """A metric of which less is granted than needed.

    If `is_by_job`, each job in `needed_by_job` alone needs more than is granted, so it can never run. Otherwise only
    all jobs together do (`needed`), so some wait until others have ended. The job that needs the most comes first.
    """

    metric: str
    granted: float
    needed: int
    needed_by_job: Mapping[str, int]
    is_by_job: bool


def find_quota_shortages(
    needed_by_job: Mapping[str, Mapping[str, int]], granted: Mapping[str, float]
) -> list[QuotaShortage]:
    """Return the shortages by metric: `needed_by_job` by job and metric, `granted` by the same names of metrics."""
    needed = sum(map(Counter, needed_by_job.values()), Counter[str]())
    shortages = []
    for metric in sorted(needed.keys() & granted.keys()):
        amounts = {job: metrics[metric] for job, metrics in needed_by_job.items() if metrics.get(metric)}
        amounts = dict(sorted(amounts.items(), key=lambda item: (-item[1], item[0])))
        limit = granted[metric]
        above = {job: amount for job, amount in amounts.items() if amount > limit}
        if needed[metric] > limit:
            shortages.append(QuotaShortage(metric, limit, needed[metric], above or amounts, bool(above)))
    return shortages
