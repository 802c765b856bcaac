"""References to the model folders of declared jobs: resolved where a declaration names the folder."""

from collections.abc import Sequence
from dataclasses import replace

from vertex_api.job import MODEL_DIR

from ..schema import interpolation
from ..schema.declared_job import DeclaredJob
from ..schema.interpolation import split_result
from .dependency_graph import compute_level_by_job
from .result_references import ResultReferences, collect_result_references


def copy_jobs_with_model_dirs_and_referenced_jobs(
    jobs: Sequence[DeclaredJob], result_references: ResultReferences
) -> tuple[DeclaredJob, ...]:
    """Return copies of valid jobs with the `referenced_jobs` of each.

    A reference to the model folder of a job is resolved if that job's declaration names its output folder. What the
    folder depends on is then referenced too.
    """
    names = frozenset(job.name for job in jobs)
    referenced_jobs = {
        job.name: {split_result(used, names)[0] for _, used in result_references.get(job.name, ())} for job in jobs
    }
    levels = compute_level_by_job(referenced_jobs)
    linked_jobs: dict[str, DeclaredJob] = {}
    model_dirs: dict[str, str] = {}
    tables = {interpolation.JOBS: model_dirs}
    for job in sorted(jobs, key=lambda job: levels[job.name]):
        spec, inherited = job.required_valid_spec, set()
        if referenced_jobs[job.name]:
            spec = spec.replace(interpolation.resolve(spec.fields, tables))
            inherited = {split_result(result, names)[0] for result in collect_result_references(spec)}
        all_referenced = frozenset(referenced_jobs[job.name] | inherited)
        linked_jobs[job.name] = replace(job, valid_spec=spec, referenced_jobs=all_referenced)
        if folder := spec.model_dir:
            model_dirs[f"{job.name}.{MODEL_DIR}"] = folder
    return tuple(linked_jobs[job.name] for job in jobs)
