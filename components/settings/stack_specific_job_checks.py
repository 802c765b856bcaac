"""Checks of a declared job beyond the API's own rules: adoption, likely mistakes, regions, labels, guardrails."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from vertex_api.mistakes import likely_mistakes, region_mismatches
from vertex_api.validation.check import resolved_problems
from vertex_api.validation.formats import Violation

from ..images.declaration import bare_name_violations
from ..jobs.adoption import RERUN_MESSAGE, adoption_violations
from ..jobs.identity import label_violations
from ..schema import interpolation, scheduled_job_rules, shapes
from ..schema.declared_job import DeclaredJob
from . import guardrail_checks
from .writable_folders import WritableFolders


def find_job_violations(
    job: DeclaredJob,
    images: Mapping[str, shapes.Image],
    stack_values: Mapping[str, Any],
    folders: WritableFolders | None = None,
) -> Iterator[Violation]:
    """Find all that makes a job invalid in a stack with these `images`, values of its stack file and `folders`.

    Of a job whose spec has problems already, only its adoption is checked.
    """
    if job.is_scheduled:
        yield from scheduled_job_rules.find_lifecycle_violations(job.lifecycle)
    elif job.is_adopted:
        yield from _find_adoption_violations(job, stack_values)
    if not (spec := job.valid_spec):
        return
    is_on_google_cloud = stack_values.get("target") == "gcp"
    stack_labels = stack_values.get("labels", {})
    if job.is_scheduled:
        yield from scheduled_job_rules.find_unschedulable_content_violations(spec)
    if not job.is_adopted:
        yield from _find_likely_mistake_violations(job, images, is_on_google_cloud)
        for path, message in label_violations(spec.fields.get("labels", {}), stack_labels):
            yield ("labels", *path), message
        if folders:
            yield from folders.find_job_violations(spec, is_granted=True)
    if is_on_google_cloud and "region" in stack_values:
        yield from region_mismatches(spec, stack_values["region"])
    if "guardrails" in stack_values:
        yield from guardrail_checks.find_job_violations(stack_values["guardrails"], job, images, stack_labels)


def find_duplicate_adoptions(jobs: Iterable[DeclaredJob]) -> list[tuple[DeclaredJob, str]]:
    """Find the jobs that adopt what another one adopts, each with a message for its `lifecycle.adopt`."""
    names: dict[str, str] = {}
    duplicates = []
    for job in jobs:
        if adopt := job.lifecycle.get("adopt"):
            other = names.setdefault(adopt.rpartition("/")[2], job.name)
            if other != job.name:
                duplicates.append((job, f'"{adopt}" is adopted by {other} already'))
    return duplicates


def _find_adoption_violations(job: DeclaredJob, stack_values: Mapping[str, Any]) -> Iterator[Violation]:
    project, region_name = stack_values.get("project", "local"), stack_values.get("region", "us-central1")
    place = (project, stack_values.get("projectNumber"), region_name)
    for message in adoption_violations(job.kind, job.lifecycle["adopt"], *place):
        yield ("lifecycle", "adopt"), message
    if job.lifecycle.get("rerun"):
        yield ("lifecycle", "rerun"), RERUN_MESSAGE


def _find_likely_mistake_violations(
    job: DeclaredJob, images: Mapping[str, shapes.Image], is_on_google_cloud: bool
) -> Iterable[Violation]:
    """Find likely mistakes, one for each path: that of the last rule."""
    spec = job.required_valid_spec
    mistakes = likely_mistakes(spec, on_google_cloud=is_on_google_cloud)
    problems = resolved_problems(mistakes, spec.fields, interpolation.is_unresolved)
    messages = {problem.path: problem.message for problem in problems}
    messages.update(bare_name_violations(spec, images))
    return messages.items()
