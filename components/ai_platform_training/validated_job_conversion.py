"""Validation and conversion of a legacy job: its own rules, the declaration, and what Vertex AI says of that."""

from collections.abc import Mapping
from typing import Any

from vertex_api.messages import KeyPath
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB
from vertex_api.validation.check import ValidPart, validate_job
from vertex_api.validation.shape import MUST_BE_OBJECT, FieldProblem, canonicalize

from ..schema.interpolation import map_texts
from . import training_input_rules
from .commented_yaml import CommentedFields
from .converted_field_origins import find_legacy_path_or_none
from .job_conversion import convert_valid_job
from .legacy_api_types import Job, TrainingInput


def convert_job_to_declaration_and_find_problems(
    legacy_job: object, fallback_name: str
) -> tuple[CommentedFields, list[FieldProblem]]:
    """Return the declaration, with comments, of a Job or a bare TrainingInput, and all problems of the legacy job.

    The declaration is valid only if there are no problems. `fallback_name` names a job that has no id.
    """
    if not isinstance(legacy_job, Mapping):
        return CommentedFields(), [FieldProblem((), MUST_BE_OBJECT)]
    training_input_path: KeyPath = ("trainingInput",) if _is_job_not_training_input(legacy_job) else ()
    whole_job = legacy_job if training_input_path else {"trainingInput": legacy_job}
    job, problems = canonicalize(Job, whole_job, output_only="drop")
    if "predictionInput" in job:
        problems = [FieldProblem(("predictionInput",), "is a prediction job's; only training jobs can be converted")]
    elif not problems and "trainingInput" not in job:
        problems = [FieldProblem(("trainingInput",), "is required")]
    problems = [*problems, *_find_legacy_violations(ValidPart.of(Job, job, problems, output_only="drop"))]
    if problems:
        return CommentedFields(), [
            FieldProblem(each.path[0 if training_input_path else 1 :], each.message) for each in problems
        ]
    # "${" begins a reference in a declaration.
    declaration = convert_valid_job(map_texts(job, lambda text: text.replace("${", "$${")), fallback_name)
    ((collection, jobs),) = declaration.items()
    ((name, body),) = jobs.items()
    kind = CUSTOM_JOB if collection == CUSTOM_JOB.collection else HYPERPARAMETER_TUNING_JOB
    _, vertex_problems = validate_job(kind, {"displayName": name, **body})
    return declaration, [
        _restate_problem_at_legacy_path(each, job["trainingInput"], training_input_path) for each in vertex_problems
    ]


def _find_legacy_violations(valid_part: ValidPart) -> list[FieldProblem]:
    """Find the rules that the valid part of a Job breaks, unless its misshapen parts may be the reason."""
    job = valid_part.value or {}
    if "trainingInput" not in job or "predictionInput" in job:
        return []
    removed_groups = {_cut_to_parameter_path_or_empty(path) for path in valid_part.removed_paths}
    violations = [
        (("trainingInput", *path), text)
        for path, text in training_input_rules.find_training_input_violations(job["trainingInput"])
    ]
    return [
        FieldProblem(path, message)
        for path, message in violations
        if _cut_to_parameter_path_or_empty(path) not in removed_groups and not valid_part.consequences.may_include(path)
    ]


def _cut_to_parameter_path_or_empty(problem_path: KeyPath) -> KeyPath:
    """Return the path of what is checked as a whole: one parameter, or everything that describes the replicas."""
    return problem_path[:4] if problem_path[1:2] == ("hyperparameters",) else ()


def _restate_problem_at_legacy_path(
    problem: FieldProblem, training_input: Mapping[str, Any], training_input_path: KeyPath
) -> FieldProblem:
    """Return a problem of the converted job at the legacy field that it comes from, if there is one."""
    path = find_legacy_path_or_none(problem.path, training_input, training_input_path)
    message = problem.message.replace("maxTrialCount", "maxTrials")
    return FieldProblem(path or (), f"Vertex AI would refuse {'it' if path else problem.place}: {message}")


def _is_job_not_training_input(document: Mapping[str, Any]) -> bool:
    """Whether more names are those of a Job than of its TrainingInput; both spellings count."""

    def count_fields_of_type(message_type: Any) -> int:
        names = {name.lower() for name in message_type.__annotations__}
        return sum(name.replace("_", "").lower() in names for name in document if isinstance(name, str))

    return count_fields_of_type(Job) >= count_fields_of_type(TrainingInput)
