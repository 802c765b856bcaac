"""What to change in a job for which its region has no machines: another strategy, machine type or region."""

from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.catalog.machines import (
    Machine,
    find_machine_or_none,
    get_accelerator_and_count_per_machine,
    get_machines_by_name,
)
from vertex_api.estimates.regional_availability import find_required_accelerators, get_regions_by_accelerator
from vertex_api.validation.rules.scheduling import find_scheduling_violations

MAX_NAMES = 4
"""How many machine types or regions an alternative names."""


def iterate_capacity_alternative_lines(job_spec: Mapping[str, Any], region: str) -> Iterator[str]:
    """Yield a line for each change of a valid CustomJobSpec that may get it machines, the least change first."""
    if resource := job_spec.get("persistentResourceId"):
        yield f"more machines in the persistent resource {resource}, or a job without persistentResourceId"
        return
    yield from _iterate_strategy_lines(job_spec)
    pools = [pool for pool in job_spec["workerPoolSpecs"] if pool]
    yield from dict.fromkeys(line for pool in pools if (line := _render_machine_alternatives_or_none(pool, region)))
    yield _render_region_alternatives(find_required_accelerators(pools), region)


def _iterate_strategy_lines(job_spec: Mapping[str, Any]) -> Iterator[str]:
    scheduling = job_spec.get("scheduling", {})
    current = scheduling.get("strategy", "STANDARD")
    if current == "FLEX_START":
        wait = scheduling.get("maxWaitDuration", "86400s")
        yield f'a longer scheduling.maxWaitDuration than "{wait}"; "0s" waits without limit'
    elif _is_strategy_allowed(job_spec, "FLEX_START"):
        yield (
            "scheduling: {strategy: FLEX_START, maxWaitDuration: 86400s}: the job waits for machines, here for at most "
            "a day, and starts when all are there; it takes preemptible quota"
        )
    if current == "SPOT":
        yield "scheduling: {strategy: STANDARD}: machines on demand, which are not taken back"
    elif _is_strategy_allowed(job_spec, "SPOT"):
        yield "scheduling: {strategy: SPOT}: spare machines, which may be taken back; it takes preemptible quota"


def _is_strategy_allowed(job_spec: Mapping[str, Any], strategy: str) -> bool:
    """Return whether a job may have a strategy, by the rules for its machines and its timeout."""
    options = {key: value for key, value in job_spec.get("scheduling", {}).items() if key != "maxWaitDuration"}
    changed = {**job_spec, "scheduling": {**options, "strategy": strategy}}
    return not any(find_scheduling_violations(changed, ()))


def _render_machine_alternatives_or_none(pool: Mapping[str, Any], region: str) -> str | None:
    """Return the machine types nearest to a pool's, with its accelerator if it has one; None if there are none."""
    machine = find_machine_or_none(pool["machineSpec"].get("machineType", ""))
    if machine is None or machine.is_tpu:
        return None
    kind, count = get_accelerator_and_count_per_machine(pool, machine)
    if kind and region not in get_regions_by_accelerator().get(kind, ()):
        return None
    others = (
        _list_other_machine_texts_by_closest_accelerator_count(machine, kind, count)
        if kind
        else _list_smallest_sufficient_machine_names_of_other_families(machine)
    )
    if not others:
        return None
    return f"another machineType{f' with {kind}' if kind else ''}: {', '.join(others[:MAX_NAMES])}"


def _list_other_machine_texts_by_closest_accelerator_count(machine: Machine, kind: str, count: int) -> list[str]:
    """Return the other machines that have an accelerator: those of this count first, then of more, then of fewer."""
    others = [each for each in get_machines_by_name().values() if kind in each.gpus and each.name != machine.name]
    counts = {each.name: min(each.gpus[kind], key=lambda known: (known < count, abs(known - count))) for each in others}
    distance = {name: (known < count, abs(known - count)) for name, known in counts.items()}
    others.sort(key=lambda each: (*distance[each.name], abs(each.vcpus - machine.vcpus), each.name))
    names = [each.name for each in others]
    return [name if counts[name] == count else f"{name} (acceleratorCount {counts[name]})" for name in names]


def _list_smallest_sufficient_machine_names_of_other_families(machine: Machine) -> list[str]:
    """Return the smallest machine of each other family that has as many vCPUs and as much memory."""
    smallest: dict[str, Machine] = {}
    for each in sorted(get_machines_by_name().values(), key=lambda each: (each.vcpus, each.memory_gb)):
        if each.can_omit_accelerator and each.vcpus >= machine.vcpus and each.memory_gb >= machine.memory_gb:
            smallest.setdefault(each.name.partition("-")[0], each)
    own_family = machine.name.partition("-")[0]
    return [each.name for family, each in smallest.items() if family != own_family and not each.is_tpu]


def _render_region_alternatives(accelerators: set[str], region: str) -> str:
    offering: list[set[str]] = [set(get_regions_by_accelerator().get(each, ())) for each in accelerators]
    regions = set.intersection(*offering) - {region} if offering else set()
    if accelerators and not regions:
        return f"another accelerator: no other region is known to offer {' and '.join(sorted(accelerators))}"
    with_all = f" that offers {' and '.join(sorted(accelerators))}" if accelerators else ""
    more = f", and {len(regions) - MAX_NAMES} more" if len(regions) > MAX_NAMES else ""
    # Those of the same part of the world first.
    nearest = sorted(regions, key=lambda each: (each.partition("-")[0] != region.partition("-")[0], each))
    names = f": {', '.join(nearest[:MAX_NAMES])}{more}" if regions else ""
    return f"a second stack in another region{with_all}{names} (docs/regions.md)"
