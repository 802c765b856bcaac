"""Validation of the dependencies between declared jobs: references to results, `after`, cycles and deadlines."""

from collections.abc import Iterator, Sequence

from vertex_api.messages import KeyPath
from vertex_api.names import did_you_mean

from ..schema import interpolation
from ..schema.declared_job import DeclaredJob
from ..schema.interpolation import split_result, unknown_result
from .dependency_graph import find_cycles
from .result_references import ResultReferences

JobViolation = tuple[DeclaredJob, KeyPath, str]


def find_dependency_and_unused_deadline_violations(
    jobs: Sequence[DeclaredJob], result_references: ResultReferences
) -> Iterator[JobViolation]:
    """Find references and `after` that name no job or no result of one, cycles, and deadlines that nothing applies."""
    by_name = {job.name: job for job in jobs}
    links: dict[str, dict[str, KeyPath]] = {name: {} for name in by_name}
    # None of a job with problems, whose results are not known.
    available_result_names = {
        name: job.valid_spec.result_names if job.valid_spec else None
        for name, job in by_name.items()
        if result_references
    }
    for job in jobs:
        for path, reference in result_references.get(job.name, ()):
            name, result = split_result(reference, by_name)
            if name not in by_name:
                suggestion = did_you_mean(name, by_name)
                yield job, path, f'${{{interpolation.JOBS}.{reference}}} names no declared job: "{name}"{suggestion}'
                continue
            links[job.name].setdefault(name, path)
            available = available_result_names[name]
            if available is not None and result not in available:
                yield job, path, unknown_result(reference, name, result, available)
        for index, name in enumerate(job.lifecycle.get("after", ())):
            if name in by_name:
                links[job.name].setdefault(name, ("lifecycle", "after", index))
            elif not interpolation.is_unresolved(name):
                suggestion = did_you_mean(name, by_name)
                yield job, ("lifecycle", "after", index), f'"{name}" is not a declared job{suggestion}'
    for cycle in find_cycles(links):
        yield by_name[cycle[0]], links[cycle[0]][cycle[1]], f"comes after itself: {' → '.join(cycle)}"
    upstream_jobs = set[str]().union(*links.values())
    for job in jobs:
        if (
            "deadline" in job.lifecycle
            and not job.is_scheduled
            and not job.lifecycle.get("wait")
            and job.name not in upstream_jobs
        ):
            advice = "add wait: true, or take it out; what ends a job is scheduling.timeout"
            yield job, ("lifecycle", "deadline"), f"is for a job that is waited for: {advice}"
