"""Conversion of a job of AI Platform Training into a declaration of this project."""

import re
from collections.abc import Mapping
from typing import Any

from vertex_api.job_kinds import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB
from vertex_api.validation.job_validation import canonicalize_job_and_find_problems
from vertex_api.validation.rules import KeyPath
from vertex_api.validation.shape_validation import (
    MUST_BE_OBJECT,
    FieldProblem,
    canonicalize_and_find_shape_problems,
)
from vertex_api.validation.valid_part import ValidPart, extract_valid_part

from ..schema.interpolation import map_texts
from . import training_input_rules
from .commented_yaml import CommentedFields
from .converted_field_origins import find_legacy_path_or_none
from .legacy_api_types import Job, TrainingInput
from .study_conversion import convert_study_spec, convert_trial_counts
from .worker_pool_conversion import convert_worker_pools, list_comments_on_ignored_pool_fields


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
    job, problems = canonicalize_and_find_shape_problems(Job, whole_job, output_only="drop")
    if "predictionInput" in job:
        problems = [FieldProblem(("predictionInput",), "is a prediction job's; only training jobs can be converted")]
    elif not problems and "trainingInput" not in job:
        problems = [FieldProblem(("trainingInput",), "is required")]
    problems = [*problems, *_find_legacy_violations(extract_valid_part(Job, job, problems, output_only="drop"))]
    if problems:
        return CommentedFields(), [
            FieldProblem(each.path[0 if training_input_path else 1 :], each.message) for each in problems
        ]
    # "${" begins a reference in a declaration.
    declaration = _build_declaration_file_fields(map_texts(job, lambda text: text.replace("${", "$${")), fallback_name)
    ((collection, jobs),) = declaration.items()
    ((name, body),) = jobs.items()
    kind = CUSTOM_JOB if collection == CUSTOM_JOB.collection else HYPERPARAMETER_TUNING_JOB
    _, vertex_problems = canonicalize_job_and_find_problems(kind, {"displayName": name, **body})
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
        if _cut_to_parameter_path_or_empty(path) not in removed_groups
        and not valid_part.removal_consequences.may_include(path)
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
    return FieldProblem(path or (), f"Vertex AI would refuse {'it' if path else problem.path_text}: {message}")


def _is_job_not_training_input(document: Mapping[str, Any]) -> bool:
    """Whether more names are those of a Job than of its TrainingInput; both spellings count."""

    def count_fields_of_type(message_type: Any) -> int:
        names = {name.lower() for name in message_type.__annotations__}
        return sum(name.replace("_", "").lower() in names for name in document if isinstance(name, str))

    return count_fields_of_type(Job) >= count_fields_of_type(TrainingInput)


def _build_declaration_file_fields(job: Mapping[str, Any], fallback_name: str) -> CommentedFields:
    training_input = job["trainingInput"]
    display_name = job.get("jobId") or fallback_name
    name = re.sub(r"[^a-z0-9._-]", "-", display_name.lower())[:63].strip("._-") or "job"
    body = CommentedFields({"displayName": display_name} if display_name != name else {})
    for key, value in (("labels", job.get("labels")), ("encryptionSpec", training_input.get("encryptionConfig"))):
        if value:
            body[key] = value
    tuning = training_input.get("hyperparameters")
    if tuning:
        body["studySpec"] = convert_study_spec(tuning)
        body |= convert_trial_counts(tuning)
    body["trialJobSpec" if tuning else "jobSpec"] = _build_job_spec(training_input)
    jobs = CommentedFields({name: body})
    if "region" in training_input:
        text = f"region {training_input['region']}: a stack says where its jobs run, with vertex-training:region."
        jobs.add_comments(name, text)
    return CommentedFields({(HYPERPARAMETER_TUNING_JOB if tuning else CUSTOM_JOB).collection: jobs})


def _build_job_spec(training_input: dict[str, Any]) -> CommentedFields:
    spec = CommentedFields({"workerPoolSpecs": convert_worker_pools(training_input)})
    options = training_input.get("scheduling", {})
    if "maxRunningTime" in options:
        spec["scheduling"] = {"timeout": options["maxRunningTime"]}
    if "maxWaitTime" in options:
        text = "Vertex AI limits it for the strategy FLEX_START only, on newer GPUs: "
        text += f"{{strategy: FLEX_START, maxWaitDuration: {options['maxWaitTime']}}}."
        spec.add_comments("scheduling", f"maxWaitTime {options['maxWaitTime']}: {text}")
    if "priority" in options:
        spec.add_comments("scheduling", f"priority {options['priority']}: Vertex AI has none.")
    copied_names = ("serviceAccount", "network", "enableWebAccess")
    spec |= {name: training_input[name] for name in copied_names if name in training_input}
    if "jobDir" in training_input:
        folder = training_input["jobDir"]
        spec["baseOutputDirectory"] = {"outputUriPrefix": folder}
        text = (
            "jobDir: Vertex AI names folders below it in AIP_MODEL_DIR, AIP_CHECKPOINT_DIR and "
            f'AIP_TENSORBOARD_LOG_DIR, and gives no flag. If the code reads --job-dir, add "--job-dir={folder}" to '
            "args. Without this field each run gets a folder of its own."
        )
        spec.add_comments("baseOutputDirectory", text)
    if training_input.get("useChiefInTfConfig"):
        text = "useChiefInTfConfig: left out; Vertex AI always says chief."
        spec.add_comments("workerPoolSpecs", text)
    elif "useChiefInTfConfig" in training_input or len(spec["workerPoolSpecs"]) > 1:
        text = "TF_CONFIG calls the first replica chief, where AI Platform said master: see whether the code reads it."
        spec.add_comments("workerPoolSpecs", text)
    spec.add_comments("workerPoolSpecs", *list_comments_on_ignored_pool_fields(training_input))
    return spec
