"""The settings of a stack with the jobs that its program creates by hand, as if those had been declared."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from vertex_api.estimates.cost import estimate_cost
from vertex_api.job import Job

from ..runtime.program_job_validation import JobKey, format_kind_and_name
from ..schema.declared_job import DeclaredJob
from .price_overrides import merge_prices
from .settings import Settings


def copy_settings_with_program_jobs(settings: Settings, specs: Mapping[JobKey, Job]) -> Settings:
    """Return the settings as if the jobs of a program had been declared, with their costs.

    A job whose name another one has too is named with its type.
    """
    specs_by_name = dict(zip(list_unique_program_job_names(settings, specs), specs.values(), strict=True))
    jobs = (DeclaredJob(spec.kind, name, spec, {}) for name, spec in specs_by_name.items())
    costs = dict(settings.costs)
    if settings.cloud is not None:
        prices = merge_prices(settings.cloud.get("prices"))
        for name, spec in specs_by_name.items():
            costs[name] = estimate_cost(spec, settings.region, prices)
    return replace(settings, jobs=(*settings.jobs, *jobs), costs=costs)


def list_unique_program_job_names(settings: Settings, specs: Mapping[JobKey, Job]) -> list[str]:
    """Return the names of the jobs of a program in their order, with the type of those whose name is not unique."""
    counts = Counter([*(job.name for job in settings.jobs), *(name for _, name in specs)])
    return [key[1] if counts[key[1]] == 1 else format_kind_and_name(key) for key in specs]
