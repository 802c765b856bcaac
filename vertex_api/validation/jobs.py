"""Jobs of every kind, training pipelines among them: one way to check them, and where in them the training stands."""

from collections.abc import Mapping
from typing import Any

from vertex_api.kinds import TRAINING_PIPELINE, Kind
from vertex_api.validation import pipeline_tasks, pipelines
from vertex_api.validation.messages import ValuePredicate, never_unresolved, validate_job
from vertex_api.validation.rules import KeyPath
from vertex_api.validation.shape import FieldProblem


def validated(
    kind: Kind, body: Mapping[str, Any], *, has_unresolved_references: ValuePredicate = never_unresolved
) -> tuple[dict[str, Any], list[FieldProblem]]:
    """The canonical form of what is declared, and every problem it has; see `validate` and `pipelines.declared`."""
    if kind == TRAINING_PIPELINE:
        return pipelines.validate_declared_pipeline(body, has_unresolved_references=has_unresolved_references)
    return validate_job(kind, body, has_unresolved_references=has_unresolved_references)


def held(kind: Kind, job: Mapping[str, Any]) -> dict[str, Any]:
    """The canonical form of what the service shows, without the fields that only it sets."""
    return (
        pipelines.pipeline_from_service(job)
        if kind == TRAINING_PIPELINE
        else validate_job(kind, job, output_only="drop")[0]
    )


def training(kind: Kind, spec: Mapping[str, Any]) -> tuple[Kind, Mapping[str, Any]]:
    """The canonical job that trains, and its kind: of a pipeline the one that it runs, else the job itself."""
    if kind == TRAINING_PIPELINE:
        return pipeline_tasks.backing_kind(spec), pipeline_tasks.build_backing_job(spec)
    return kind, spec


def in_declaration(kind: Kind, spec: Mapping[str, Any], path: KeyPath) -> KeyPath:
    """Where a field of the job that trains stands in what is declared, a canonical spec of a kind."""
    return (
        pipeline_tasks.path_in_pipeline(pipeline_tasks.backing_kind(spec), path) if kind == TRAINING_PIPELINE else path
    )


def job_spec_path(kind: Kind, spec: Mapping[str, Any]) -> KeyPath:
    """Where the CustomJobSpec stands in a canonical spec of a kind."""
    trains = pipeline_tasks.backing_kind(spec) if kind == TRAINING_PIPELINE else kind
    return in_declaration(kind, spec, (trains.spec_field,))
