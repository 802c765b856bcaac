"""Warnings of a preview about accelerators that the stack's region does not offer, or about an unknown region."""

from collections.abc import Iterable, Mapping
from typing import Any

import pulumi

from vertex_api.estimates.availability import (
    AS_OF,
    PAGE,
    REGIONS,
    accelerator_regions,
    missing_accelerators,
)
from vertex_api.names import closest_name

from ..schema.declared_job import DeclaredJob
from ..settings import gcp_stack_rules
from ..settings.settings import Settings

MAX_NAMES = 3
"""How many of the jobs that use an accelerator a warning names."""


def warn_of_unavailable_accelerators(settings: Settings) -> None:
    """Warn in a preview of the target gcp about accelerators that the region may not have."""
    if settings.cloud is not None and pulumi.runtime.is_dry_run():
        machines = [pool for _, pool in gcp_stack_rules.iterate_resource_pools_with_paths(settings.cloud)]
        jobs = (*settings.jobs, *settings.scheduled_jobs)
        if lines := render_availability_warning_lines(settings.region, jobs, machines):
            pulumi.warn("\n".join(lines))


def render_availability_warning_lines(
    region: str, jobs: Iterable[DeclaredJob], resource_pools: Iterable[Mapping[str, Any]]
) -> list[str]:
    """Return a line for an unknown region, or for each accelerator that the region does not offer."""
    if region not in REGIONS:
        near = closest_name(region, REGIONS)
        guess = f"; did you mean {near}?" if near else "."
        return [f"{region} is not known as a region with training as of {AS_OF}{guess} See {PAGE}"]
    unavailable = {job.name: missing_accelerators(job.required_valid_spec.pools, region) for job in jobs}
    unavailable[gcp_stack_rules.PERSISTENT_RESOURCE] = missing_accelerators(resource_pools, region)
    lines = []
    for accelerator in sorted(set().union(*unavailable.values())):
        users = [name for name, accelerators in unavailable.items() if accelerator in accelerators]
        others = f" and {len(users) - MAX_NAMES} more" if len(users) > MAX_NAMES else ""
        places = ", ".join(accelerator_regions().get(accelerator, ())) or "no known region"
        absence = f"{accelerator} is not offered for training in {region} as of {AS_OF}"
        lines.append(f"{absence} ({', '.join(users[:MAX_NAMES])}{others}); offered in {places}")
    return [*lines, f"Tables change: see {PAGE}"] if lines else []
