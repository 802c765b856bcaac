"""What a preview says of regions: which accelerators the stack asks for where they are not known to be."""

from collections.abc import Iterable, Mapping
from typing import Any

import pulumi

from vertex_api.estimates.availability import (
    AS_OF,
    PAGE,
    REGIONS,
    find_unavailable_accelerators,
    find_unavailable_in_pools,
    regions_by_accelerator,
)
from vertex_api.spelling import find_closest_name

from ..schema.job_declaration import JobDeclaration
from ..settings import google_cloud
from ..settings.settings import Settings

MAX_NAMES = 3
"""Of more jobs that ask for one accelerator, only so many are named."""


def show_availability(settings: Settings) -> None:
    """Warns in a preview of the target gcp, once, of what the region may not have. No resource knows of it."""
    if settings.cloud is not None and pulumi.runtime.is_dry_run():
        machines = [pool for _, pool in google_cloud.iterate_pools(settings.cloud)]
        found = render_availability_lines(settings.region, settings.jobs, machines)
        if found:
            pulumi.warn("\n".join(found))


def render_availability_lines(
    region: str, jobs: Iterable[JobDeclaration], machines: Iterable[Mapping[str, Any]]
) -> list[str]:
    """The lines: a region that is not known, or each accelerator that is not known to be there; none if all is well.

    `machines` are the pools of the stack's own persistent resource.
    """
    if region not in REGIONS:
        near = find_closest_name(region, REGIONS)
        guess = f"; did you mean {near}?" if near else "."
        return [f"{region} is not known as a region with training as of {AS_OF}{guess} See {PAGE}"]
    asking: dict[str, list[str]] = {}
    for job in jobs:
        for name in find_unavailable_accelerators(job.spec, region):
            asking.setdefault(name, []).append(job.name)
    for name in find_unavailable_in_pools(machines, region):
        asking.setdefault(name, []).append(google_cloud.PERSISTENT_RESOURCE)
    said = [_render_line(name, region, asking[name], regions_by_accelerator()) for name in sorted(asking)]
    return [*said, f"Tables change: see {PAGE}"] if said else []


def _render_line(name: str, region: str, jobs: list[str], known: Mapping[str, tuple[str, ...]]) -> str:
    others = f" and {len(jobs) - MAX_NAMES} more" if len(jobs) > MAX_NAMES else ""
    places = ", ".join(known.get(name, ())) or "no region that is known"
    return (
        f"{name} is not offered for training in {region} as of {AS_OF} "
        f"({', '.join(jobs[:MAX_NAMES])}{others}); offered in {places}"
    )
