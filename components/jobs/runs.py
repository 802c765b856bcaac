"""What jobs took that have ended: the line that the stack keeps of each, and what a run of `pulumi up` says of cost."""

from collections.abc import Mapping

from vertex_api.estimates import runs
from vertex_api.estimates.prices import ZERO
from vertex_api.estimates.runs import Run
from vertex_api.names import SUCCEEDED_STATES, JobJson, ResourceName
from vertex_api.schedules import NAME_LABEL

from ..runtime.target import CLOUD_PREFIX
from . import enforcement
from .failures import MAX_NAMES

TOOK = "took"
"""The key of the line of a run, among the results of a job that was waited for, and in the `run` of any other."""


def took(parent: str, job: JobJson, metrics: Mapping[str, float] | None = None) -> str:
    """Return the line of a job that has succeeded; "" for any other. `parent` is its location."""
    run = _run(parent, job, metrics or {}) if job["state"] in SUCCEEDED_STATES else None
    return str(run) if run else ""


def cost_lines(parent: str, jobs: Mapping[str, JobJson]) -> list[str]:
    """Return what to print of the cost of jobs that have ended, well or not, by name; nothing on this machine."""
    if not parent.startswith(CLOUD_PREFIX):
        return []
    ended = {name: _run(parent, job, {}) for name, job in jobs.items()}
    costs = {name: (run.cost, run) for name, run in ended.items() if run and run.cost is not None}
    # Many jobs that end at once would flood the screen.
    if len(costs) > MAX_NAMES:
        return [f"{len(costs)} jobs: took {sum((cost for cost, _ in costs.values() if cost), ZERO)} by list price"]
    return [f"{name}: took {runs.span([run.seconds])}, {cost} by list price" for name, (cost, run) in costs.items()]


def _run(parent: str, job: JobJson, metrics: Mapping[str, float]) -> Run | None:
    is_billed = parent.startswith(CLOUD_PREFIX)
    region, kind = parent.rpartition("/")[2], ResourceName.parse(job["name"]).kind
    prices = enforcement.prices(parent, job.get("labels", {}).get(NAME_LABEL, "")) if is_billed else None
    return Run.of(kind, job, region, prices, metrics)
