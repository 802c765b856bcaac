"""Jobs to which the same happens for the same reasons, so that a review can name them in one line."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from .job_changes import Cause, JobFinding


@dataclass(frozen=True)
class JobGroup:
    """Jobs of one action and one policy of deletion."""

    jobs: tuple[JobFinding, ...]

    @property
    def shared_causes(self) -> tuple[Cause, ...]:
        """The causes that all of the jobs have, in the first one's order."""
        shared = set.intersection(*(set(job.causes) for job in self.jobs))
        return tuple(cause for cause in self.jobs[0].causes if cause in shared)

    @property
    def count_of_jobs_with_unshared_causes(self) -> int:
        """How many of the jobs have causes that not all of them share."""
        shared_count = len(self.shared_causes)
        return sum(len(job.causes) > shared_count for job in self.jobs)


def group_jobs_by_all_causes_or_commonest(jobs: Sequence[JobFinding], max_groups: int) -> list[JobGroup]:
    """Return the jobs in groups, the largest first: of equal causes, if that makes at most `max_groups`.

    Else each job is in the group of that cause of its own which most jobs have.
    """
    groups = _group_by_action_policy_and_key(jobs, lambda job: job.causes)
    if len(groups) > max_groups:
        counts = Counter((job.action, cause) for job in jobs for cause in job.causes)
        groups = _group_by_action_policy_and_key(
            jobs, lambda job: max(job.causes, key=lambda cause: counts[job.action, cause], default=None)
        )
    return groups


def _group_by_action_policy_and_key(
    jobs: Sequence[JobFinding], get_key: Callable[[JobFinding], Hashable]
) -> list[JobGroup]:
    groups: dict[Hashable, list[JobFinding]] = {}
    for job in jobs:
        groups.setdefault((job.action, job.on_delete, get_key(job)), []).append(job)
    return [JobGroup(tuple(group)) for group in sorted(groups.values(), key=len, reverse=True)]
