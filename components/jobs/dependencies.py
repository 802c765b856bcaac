"""What declared jobs have to do with one another: whose results they use, and which they come after."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from vertex_api.spelling import suggestion_text
from vertex_api.validation.rules import KeyPath

from ..schema import references
from ..schema.job_declaration import JobDeclaration
from . import results, stages

Written = Mapping[str, Sequence[tuple[KeyPath, str]]]
"""By job: the references to results in it, without their table, each with the place where it stands."""
Violation = tuple[JobDeclaration, KeyPath, str]


def broken(jobs: Sequence[JobDeclaration], written: Written) -> Iterator[Violation]:
    """References and `after` that name no job or no result of one, jobs that come after themselves, and deadlines of
    jobs that nothing waits for."""
    by_name = {job.name: job for job in jobs}
    links: dict[str, dict[str, KeyPath]] = {name: {} for name in by_name}
    offered: dict[str, list[str] | None] = {}  # None of a job with problems: what it will have is not known
    for job in jobs:
        for path, reference in written.get(job.name, ()):
            name, result = results.split(reference, by_name)
            if name not in by_name:
                suggestion = suggestion_text(name, by_name)
                message = f'${{{references.JOBS}.{reference}}} names no declared job: "{name}"{suggestion}'
                yield job, path, message
                continue
            links[job.name].setdefault(name, path)
            if name not in offered:
                offered[name] = results.list_available_results(spec) if (spec := by_name[name].valid_spec) else None
            known = offered[name]
            if known is not None and result not in known:
                yield job, path, not_a_result(reference, name, result, known)
        for index, name in enumerate(job.lifecycle.get("after", ())):
            if name in by_name:
                links[job.name].setdefault(name, ("lifecycle", "after", index))
            elif not references.has_unresolved_references(name):
                yield (
                    job,
                    ("lifecycle", "after", index),
                    f'"{name}" is not a declared job{suggestion_text(name, by_name)}',
                )
    for ring in stages.cycles(links):
        yield by_name[ring[0]], links[ring[0]][ring[1]], f"comes after itself: {' → '.join(ring)}"
    needed = set[str]().union(*links.values())
    for job in jobs:
        if "deadline" in job.lifecycle and not job.lifecycle.get("wait") and job.name not in needed:
            message = "is for a job that is waited for: add wait: true, or take it out; what ends a job is "
            yield job, ("lifecycle", "deadline"), f"{message}scheduling.timeout"


def not_a_result(reference: str, name: str, result: str, known: Sequence[str]) -> str:
    """What is wrong with a reference to a `result` of the job with a `name` that is none of the `known` ones."""
    return f"${{{references.JOBS}.{reference}}} is not a result of {name}{suggestion_text(result, known)}"


def linked(jobs: Sequence[JobDeclaration], written: Written) -> tuple[JobDeclaration, ...]:
    """Jobs without a problem, with the `referenced_jobs` of each.

    Where a job says itself where its outputs go, its `modelDir` is filled in here, with the references in it.
    """
    names = frozenset(job.name for job in jobs)
    uses = {job.name: {results.split(result, names)[0] for _, result in written.get(job.name, ())} for job in jobs}
    levels, used = stages.levels(uses), frozenset().union(*uses.values())
    found: dict[str, JobDeclaration] = {}
    folders: dict[str, str] = {}
    for job in sorted(jobs, key=lambda job: levels[job.name]):
        spec, inherited = job.spec, set()
        if uses[job.name]:
            spec = spec.transform(lambda fields: references.resolve(fields, {references.JOBS: folders}))
            inherited = {results.split(result, names)[0] for result in results.referenced(spec.fields)}
        found[job.name] = replace(job, valid_spec=spec, referenced_jobs=frozenset(uses[job.name] | inherited))
        if job.name in used and (folder := spec.model_dir):
            folders[f"{job.name}.{results.MODEL_DIR}"] = folder
    return tuple(found[job.name] for job in jobs)
