"""References of declared jobs to results of others, such as `tune.bestTrial.parameters.lr`, and the order they make."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter

from vertex_api.job import MODEL_DIR, Job
from vertex_api.messages import KeyPath
from vertex_api.names import did_you_mean

from ..plan.training import Training
from ..schema import interpolation
from ..schema.interpolation import split_result, unknown_result

ResultReferences = Mapping[str, Sequence[tuple[KeyPath, str]]]
"""By name of a job: the references to results in its spec, without `jobs.`, each with its place."""
JobViolation = tuple[Training, KeyPath, str]
Upstream = Mapping[str, Collection[str]]
"""By name of a job: the jobs that must have succeeded before it is submitted."""


def referenced_results(spec: Job) -> set[str]:
    """Return the references to results in a spec, without their table and paths."""
    tables = (reference.partition(".") for _, reference in interpolation.references(spec.fields))
    return {reference for table, _, reference in tables if table == interpolation.JOBS}


def order_violations(jobs: Sequence[Training], references: ResultReferences) -> Iterator[JobViolation]:
    """Find references and `after` that name no job or no result of one, cycles, and deadlines that nothing applies."""
    by_name = {job.name: job for job in jobs}
    links: dict[str, dict[str, KeyPath]] = {name: {} for name in by_name}
    # None of a job with problems, whose results are not known.
    available = {name: job.job.result_names if job.spec else None for name, job in by_name.items() if references}
    for job in jobs:
        for path, reference in references.get(job.name, ()):
            name, result = split_result(reference, by_name)
            if name not in by_name:
                suggestion = did_you_mean(name, by_name)
                yield job, path, f'${{{interpolation.JOBS}.{reference}}} names no declared job: "{name}"{suggestion}'
                continue
            links[job.name].setdefault(name, path)
            known = available[name]
            if known is not None and result not in known:
                yield job, path, unknown_result(reference, name, result, known)
        for index, name in enumerate(job.lifecycle.get("after", ())):
            if name in by_name:
                links[job.name].setdefault(name, ("lifecycle", "after", index))
            elif not interpolation.is_unresolved(name):
                suggestion = did_you_mean(name, by_name)
                yield job, ("lifecycle", "after", index), f'"{name}" is not a declared job{suggestion}'
    for cycle in cycles(links):
        yield by_name[cycle[0]], links[cycle[0]][cycle[1]], f"comes after itself: {' → '.join(cycle)}"
    upstream = set[str]().union(*links.values())
    for job in jobs:
        is_waited_for = job.is_scheduled or job.lifecycle.get("wait") or job.name in upstream
        if "deadline" in job.lifecycle and not is_waited_for:
            advice = "add wait: true, or take it out; what ends a job is scheduling.timeout"
            yield job, ("lifecycle", "deadline"), f"is for a job that is waited for: {advice}"


def cycles(upstream: Upstream) -> Iterator[list[str]]:
    """Find jobs that come after themselves: `[a, b, a]` if a comes after b, and b after a. No link is in two cycles."""
    remaining = {name: set(others) for name, others in upstream.items()}
    positions = {name: position for position, name in enumerate(remaining)}
    while True:
        try:
            TopologicalSorter(remaining).prepare()
        except CycleError as error:
            # In the error, each job is followed by one that comes after it.
            cycle = error.args[1][:0:-1]
            first = cycle.index(min(cycle, key=positions.__getitem__))
            cycle = [*cycle[first:], *cycle[: first + 1]]
            yield cycle
            remaining[cycle[0]].discard(cycle[1])
        else:
            return


def levels(upstream: Upstream) -> dict[str, int]:
    """Return how many jobs come before each job, one after another: 0 for a job without upstream jobs.

    Jobs of one level can run at the same time. There must be no cycles.
    """
    found: dict[str, int] = {}
    for name in TopologicalSorter(upstream).static_order():
        found[name] = 1 + max((found[other] for other in upstream.get(name, ())), default=-1)
    return found


def link_jobs(jobs: Sequence[Training], references: ResultReferences) -> tuple[Training, ...]:
    """Return copies of valid jobs with the jobs that each has `referenced`.

    A reference to the model folder of a job is resolved if that job's declaration names its output folder. What the
    folder depends on is then referenced too.
    """
    names = frozenset(job.name for job in jobs)
    referenced = {job.name: {split_result(used, names)[0] for _, used in references.get(job.name, ())} for job in jobs}
    level = levels(referenced)
    linked: dict[str, Training] = {}
    model_dirs: dict[str, str] = {}
    tables = {interpolation.JOBS: model_dirs}
    for job in sorted(jobs, key=lambda job: level[job.name]):
        spec, inherited = job.job, set()
        if referenced[job.name]:
            spec = spec.replace(interpolation.resolve(spec.fields, tables))
            inherited = {split_result(result, names)[0] for result in referenced_results(spec)}
        linked[job.name] = replace(job, spec=spec, referenced=frozenset(referenced[job.name] | inherited))
        if folder := spec.model_dir:
            model_dirs[f"{job.name}.{MODEL_DIR}"] = folder
    return tuple(linked[job.name] for job in jobs)
