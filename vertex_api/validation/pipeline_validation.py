"""Validation of training pipelines, each together with the job that its task runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic.alias_generators import to_camel, to_snake

from vertex_api.job_kinds import HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE
from vertex_api.scalar_to_string_conversion import convert_scalars_in_string_fields_to_texts
from vertex_api.training_pipelines.backing_job import (
    CUSTOM_TASK,
    DEFINITION_FIELD,
    INPUTS_FIELD,
    NAME_ENDINGS,
    SHARED_FIELDS,
    TASK_KINDS,
    TUNING_TASK,
    convert_backing_job_path_to_pipeline_path,
    convert_job_to_task_inputs,
    convert_task_inputs_to_job,
    get_backing_job_kind,
)
from vertex_api.validation import rules
from vertex_api.validation.job_validation import (
    ValuePredicate,
    find_problems_of_valid_part,
    never_unresolved,
)
from vertex_api.validation.rules.training_pipeline import find_pipeline_violations_except_job
from vertex_api.validation.shape_validation import (
    MUST_BE_OBJECT,
    FieldProblem,
    OutputOnlyPolicy,
    canonicalize_and_find_shape_problems,
    copy_without_unknown_fields,
)
from vertex_api.validation.valid_part import extract_valid_part

_TASK_TITLES = {CUSTOM_TASK: "custom task", TUNING_TASK: "hyperparameter tuning task"}


@dataclass(frozen=True)
class PipelineValidationResult:
    """The canonical form `spec` of a pipeline, with the task's inputs as sent, and its `problems`.

    `job` is the canonical job that it runs, empty if the shape of the pipeline or of its inputs has problems.
    `headline` is the service's text for inputs that do not have their task's shape, else empty.
    """

    spec: dict[str, Any]
    problems: list[FieldProblem]
    headline: str = ""
    job: dict[str, Any] = field(default_factory=dict)


def build_pipeline_validation_result(
    body: object,
    *,
    output_only: OutputOnlyPolicy = "reject",
    is_unresolved_value: ValuePredicate = never_unresolved,
) -> PipelineValidationResult:
    """Return the canonical form of a TrainingPipeline, and every problem of it and of the job that it runs.

    In the inputs of a request, of which `output_only` fields are dropped, numbers and booleans stand for texts too:
    Google's SDK documents and sends them. A declaration is to say which text it means.
    """
    message_type = TRAINING_PIPELINE.typed_dict
    spec, misshapen = canonicalize_and_find_shape_problems(message_type, body, output_only=output_only)
    if not isinstance(body, Mapping):
        return PipelineValidationResult(spec, misshapen)
    valid_part = extract_valid_part(message_type, spec, misshapen, output_only=output_only)
    violations = find_problems_of_valid_part(find_pipeline_violations_except_job, valid_part, is_unresolved_value)
    problems = [*misshapen, *violations]
    definition = _get_field_in_either_spelling(spec, DEFINITION_FIELD)
    # The canonical form no longer has misspelt input fields that are unset.
    inputs = _get_field_in_either_spelling(body, INPUTS_FIELD)
    if definition not in list(TASK_KINDS):
        if isinstance(definition, str):
            message = f'"{definition}" is no task that runs training code; known: {", ".join(TASK_KINDS)}'
            problems = [*problems, FieldProblem((DEFINITION_FIELD,), message)]
        return PipelineValidationResult(spec, problems)
    headline = (
        "Unable to parse `training_pipeline.training_task_inputs` into "
        f"{_TASK_TITLES[definition]} `inputs` defined in the file: {definition}"
    )  # users' reports quote it for the custom task
    if not isinstance(inputs, Mapping):
        if (INPUTS_FIELD,) not in valid_part.removed_paths:  # else a misspelt field was meant as the inputs
            message = "is required" if inputs is None else MUST_BE_OBJECT
            problems = [*problems, FieldProblem((INPUTS_FIELD,), message)]
        return PipelineValidationResult(spec, problems, headline)
    kind = TASK_KINDS[definition]
    job = convert_task_inputs_to_job(kind, valid_part.value or {}, inputs)
    if output_only == "drop":  # a request
        job = convert_scalars_in_string_fields_to_texts(kind.typed_dict, job)
    job, malformed = canonicalize_and_find_shape_problems(kind.typed_dict, job)
    valid_job = extract_valid_part(kind.typed_dict, job, malformed)
    violations = find_problems_of_valid_part(
        lambda job: rules.find_violations(kind, job), valid_job, is_unresolved_value
    )
    problems += [
        replace(problem, path=convert_backing_job_path_to_pipeline_path(kind, problem.path))
        for problem in (*malformed, *violations)
        if problem.path[0] not in SHARED_FIELDS
    ]
    if kind == HYPERPARAMETER_TUNING_JOB:
        misplaced = [name for name in inputs if to_camel(name) in SHARED_FIELDS]
        problems += [FieldProblem((INPUTS_FIELD, name), "is set on the pipeline itself") for name in misplaced]
    headline = headline if malformed else ""
    return PipelineValidationResult(spec, problems, headline, job={} if misshapen or malformed else job)


def canonicalize_pipeline_with_defaults_and_find_problems(
    body: Any,
    *,
    output_only: OutputOnlyPolicy = "reject",
    is_unresolved_value: ValuePredicate = never_unresolved,
) -> tuple[dict[str, Any], list[FieldProblem]]:
    """Return the canonical form of a declared pipeline, its task's inputs included, and every problem it has.

    A declaration may leave out two fields. Without a task definition, inputs with a studySpec are those of a tuning
    task, and all others those of a custom task. Without a display name, the model gets that of the pipeline.
    """
    validated = build_pipeline_validation_result(
        _copy_with_omitted_fields_filled_in(body), output_only=output_only, is_unresolved_value=is_unresolved_value
    )
    if not validated.job:
        return body, validated.problems
    inputs = convert_job_to_task_inputs(get_backing_job_kind(validated.spec), validated.job)
    return {**validated.spec, INPUTS_FIELD: inputs}, validated.problems


def convert_pipeline_to_backing_job(pipeline: Mapping[str, Any]) -> dict[str, Any]:
    """Return the canonical job that a valid canonical pipeline runs, under the name that the service gives it."""
    kind = get_backing_job_kind(pipeline)
    job = convert_task_inputs_to_job(kind, pipeline, pipeline[INPUTS_FIELD])
    job = convert_scalars_in_string_fields_to_texts(kind.typed_dict, job)
    job, problems = canonicalize_and_find_shape_problems(kind.typed_dict, job)
    assert not problems, problems
    return {**job, "displayName": f"{pipeline['displayName']}-{NAME_ENDINGS[pipeline[DEFINITION_FIELD]]}"}


def canonicalize_pipeline_and_drop_unknown_fields(stored_pipeline: Mapping[str, Any]) -> dict[str, Any]:
    """Return the canonical form of a pipeline of the service, without fields that it alone sets or these types lack."""
    known_part = dict(stored_pipeline)
    kind = TASK_KINDS.get(stored_pipeline.get(DEFINITION_FIELD, ""))
    if kind is not None and isinstance(inputs := stored_pipeline.get(INPUTS_FIELD), Mapping):
        known_job = copy_without_unknown_fields(kind.typed_dict, convert_task_inputs_to_job(kind, {}, inputs))
        known_part[INPUTS_FIELD] = convert_job_to_task_inputs(kind, known_job)
    return canonicalize_pipeline_with_defaults_and_find_problems(known_part, output_only="drop")[0]


def _get_field_in_either_spelling(body: Mapping[str, Any], name: str) -> Any:
    return body.get(name, body.get(to_snake(name)))


def _copy_with_omitted_fields_filled_in(body: object) -> object:
    if not isinstance(body, Mapping):
        return body
    whole = dict(body)
    if _get_field_in_either_spelling(body, DEFINITION_FIELD) is None:
        inputs = _get_field_in_either_spelling(body, INPUTS_FIELD)
        has_study = isinstance(inputs, Mapping) and _get_field_in_either_spelling(inputs, "studySpec") is not None
        whole[DEFINITION_FIELD] = TUNING_TASK if has_study else CUSTOM_TASK
    for key in ("modelToUpload", to_snake("modelToUpload")):
        if isinstance(model := body.get(key), Mapping) and _get_field_in_either_spelling(model, "displayName") is None:
            whole[key] = {**model, "displayName": _get_field_in_either_spelling(body, "displayName")}
    return whole
