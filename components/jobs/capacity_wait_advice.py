"""What can be done about a job without machines: one that has failed for that, or waits long before it runs."""

from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.job import Job as CanonicalJob
from vertex_api.job import stored_job
from vertex_api.names import ResourceName, short_state

from ..runtime.target import CLOUD_PREFIX
from .progress_lines import count_minutes_since_creation, join_first_names_and_count_others

Job = Mapping[str, Any]
LONG_WAIT_MINUTES = 10
"""From when on a job waits long: Vertex AI fails a job without machines after some 20 minutes in PENDING."""
_REASONS = {"QUEUED": "quota or machines are short", "PENDING": "machines may be short"}


def iterate_capacity_alternative_lines_of_job(job: Job) -> Iterator[str]:
    """Yield the changes of a job, as the service shows it, that may get it machines. Each replaces the job."""
    # Imported here, as below, because most jobs need no advice.
    from vertex_api.estimates.availability import alternatives

    yield "  what may help (each of these replaces the job):"
    for line in alternatives(_get_canonical_spec(job).job_spec, ResourceName.parse(job["name"]).region):
        yield f"    - {line}"


class CapacityAdvice:
    """What has been said so far about jobs that wait long, for `parent`, the full name of the jobs' location.

    Nothing is said of jobs on this machine, where jobs wait for other jobs.
    """

    def __init__(self, parent: str) -> None:
        self._project = parent.removeprefix(CLOUD_PREFIX).split("/")[1] if parent.startswith(CLOUD_PREFIX) else None
        self._advised_names: set[tuple[str, str]] = set()
        self._advised: set[tuple[str, ...]] = set()

    def take_new_advice_lines(self, jobs_by_name: Mapping[str, Job], now: float) -> list[str]:
        """Return the lines on jobs that have waited long by `now` (seconds since 1970), each advice once."""
        lines = []
        for state, names in self._take_new_long_waiting_names_by_state(jobs_by_name, now).items():
            by_advice: dict[tuple[str, ...], list[str]] = {}
            for name in names:
                by_advice.setdefault(tuple(self._iterate_advice_lines(state, jobs_by_name[name])), []).append(name)
            for advice, alike in by_advice.items():
                if advice not in self._advised:
                    self._advised.add(advice)
                    minutes = max(count_minutes_since_creation(jobs_by_name[name], now) for name in alike)
                    lines += [
                        f"{join_first_names_and_count_others(alike)}: {state} for {minutes} min, as {_REASONS[state]}",
                        *advice,
                    ]
        return lines

    def _take_new_long_waiting_names_by_state(
        self, jobs_by_name: Mapping[str, Job], now: float
    ) -> dict[str, list[str]]:
        by_state: dict[str, list[str]] = {state: [] for state in _REASONS}
        for name, job in jobs_by_name.items() if self._project else ():
            state = short_state(job["state"])
            is_new = state in by_state and (state, name) not in self._advised_names
            if is_new and count_minutes_since_creation(job, now) >= LONG_WAIT_MINUTES:
                self._advised_names.add((state, name))
                by_state[state].append(name)
        return by_state

    def _iterate_advice_lines(self, state: str, job: Job) -> Iterator[str]:
        from vertex_api.estimates.quota import METRIC_PREFIX, needed_quota, quota_page

        if state == "QUEUED" and (needed := needed_quota(_get_canonical_spec(job))):
            amounts = ", ".join(f"{metric} {amount:,}" for metric, amount in needed.items())
            yield f"  it needs these quotas ({METRIC_PREFIX}NAME): {amounts}"
            yield f"  see and ask for more: {quota_page(str(self._project))}"
        yield from iterate_capacity_alternative_lines_of_job(job)


def _get_canonical_spec(job: Job) -> CanonicalJob:
    return stored_job(ResourceName.parse(job["name"]).kind, job)
