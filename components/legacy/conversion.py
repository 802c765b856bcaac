"""A job of AI Platform Training, converted into a declaration of this project."""

import re
from collections.abc import Mapping
from typing import Any

from vertex_api.kinds import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB
from vertex_api.validation.messages import ValidPart, extract_valid_part, validate_job
from vertex_api.validation.misshapen_parts import is_consequence
from vertex_api.validation.rules import KeyPath
from vertex_api.validation.shape import MUST_BE_OBJECT, FieldProblem, validate_shape

from . import checks, study
from .fields import Fields
from .messages import Job, TrainingInput
from .origins import origin
from .pools import left_out, worker_pools

_COUNTS = {"maxTrialCount": "maxTrials"}
"""Fields that messages name as well, and what they are here."""


def converted(given: object, fallback: str) -> tuple[Fields, list[FieldProblem]]:
    """The declaration of a Job or a bare TrainingInput, with comments, and all that is wrong with what is given.

    The declaration means something only where nothing is wrong. `fallback` names a job that has no id.
    """
    if not isinstance(given, Mapping):
        return Fields(), [FieldProblem((), MUST_BE_OBJECT)]
    whole = _is_job(given)
    job, problems = validate_shape(Job, given if whole else {"trainingInput": given}, output_only="drop")
    if "predictionInput" in job:
        problems = [FieldProblem(("predictionInput",), "is a prediction job's; only training jobs can be converted")]
    elif not problems and "trainingInput" not in job:
        problems = [FieldProblem(("trainingInput",), "is required")]
    left = extract_valid_part(Job, job, problems, output_only="drop")
    problems = [*problems, *_broken(left)]
    if problems:
        return Fields(), [problem if whole else FieldProblem(problem.path[1:], problem.message) for problem in problems]
    declaration = _declaration(_escaped(job), fallback)
    (collection, jobs), *_ = declaration.items()
    (name, body), *_ = jobs.items()
    kind = CUSTOM_JOB if collection == CUSTOM_JOB.collection else HYPERPARAMETER_TUNING_JOB
    _, refused = validate_job(kind, {"displayName": name, **body})
    above: KeyPath = ("trainingInput",) if whole else ()
    return declaration, [_of_the_legacy_job(problem, job["trainingInput"], above) for problem in refused]


def _broken(left: ValidPart) -> list[FieldProblem]:
    """What is wrong with what is left of a job, but for what is to be judged together with what is withheld."""
    if left.value is None or "trainingInput" not in left.value or "predictionInput" in left.value:
        return []
    found = (
        FieldProblem(("trainingInput", *path), message) for path, message in checks.broken(left.value["trainingInput"])
    )
    withheld = {_judged_as(path) for path in left.removed_paths}
    return [
        problem
        for problem in found
        if _judged_as(problem.path) not in withheld and not is_consequence(problem.path, left.removed_paths)
    ]


def _judged_as(path: KeyPath) -> KeyPath:
    """The part of a job that is judged as a whole: one parameter, or else all that says which replicas there are."""
    return path[:4] if path[1:2] == ("hyperparameters",) else ()


def _of_the_legacy_job(problem: FieldProblem, training_input: Mapping[str, Any], above: KeyPath) -> FieldProblem:
    """What Vertex AI would refuse, at the field that it came from, or else named in full."""
    path, message = origin(problem.path, training_input, above), problem.message
    for name, legacy in _COUNTS.items():
        message = message.replace(name, legacy)
    if path:
        return FieldProblem(path, f"Vertex AI would refuse it: {message}")
    return FieldProblem((), f"Vertex AI would refuse {problem.field}: {message}")


def _is_job(given: Mapping[str, Any]) -> bool:
    """Whether more names are those of a Job than of its TrainingInput; both spellings count."""

    def known(message: Any) -> int:
        names = {name.lower() for name in message.__annotations__}
        return sum(name.replace("_", "").lower() in names for name in given if isinstance(name, str))

    return known(Job) >= known(TrainingInput)


def _escaped(value: Any) -> Any:
    """The value with `$${` for each `${`, which begins a reference in a declaration."""
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, Mapping):
        return {key: _escaped(child) for key, child in value.items()}
    return [_escaped(child) for child in value] if isinstance(value, list) else value


def _declaration(job: Mapping[str, Any], fallback: str) -> Fields:
    training_input = job["trainingInput"]
    given = job.get("jobId") or fallback
    name = re.sub(r"[^a-z0-9._-]", "-", given.lower())[:63].strip("._-") or "job"
    body = Fields({"displayName": given} if given != name else {})
    for key, value in (("labels", job.get("labels")), ("encryptionSpec", training_input.get("encryptionConfig"))):
        if value:
            body[key] = value
    tuning = training_input.get("hyperparameters")
    if tuning:
        body["studySpec"] = study.study_spec(tuning)
        body |= study.counts(tuning)
    body["trialJobSpec" if tuning else "jobSpec"] = _job_spec(training_input)
    jobs = Fields({name: body})
    if "region" in training_input:
        text = f"region {training_input['region']}: a stack says where its jobs run, with vertex-training:region."
        jobs.comment(name, text)
    return Fields({(HYPERPARAMETER_TUNING_JOB if tuning else CUSTOM_JOB).collection: jobs})


def _job_spec(training_input: dict[str, Any]) -> Fields:
    spec = Fields({"workerPoolSpecs": worker_pools(training_input)})
    options = training_input.get("scheduling", {})
    if "maxRunningTime" in options:
        spec["scheduling"] = {"timeout": options["maxRunningTime"]}
    spec.comment("scheduling", *_about_scheduling(options))
    for name in ("serviceAccount", "network", "enableWebAccess"):
        if name in training_input:
            spec[name] = training_input[name]
    if "jobDir" in training_input:
        folder = training_input["jobDir"]
        spec["baseOutputDirectory"] = {"outputUriPrefix": folder}
        text = (
            "jobDir: Vertex AI names folders below it in AIP_MODEL_DIR, AIP_CHECKPOINT_DIR and "
            f'AIP_TENSORBOARD_LOG_DIR, and gives no flag. If the code reads --job-dir, add "--job-dir={folder}" to '
            "args. Without this field each run gets a folder of its own."
        )
        spec.comment("baseOutputDirectory", text)
    pools = len(spec["workerPoolSpecs"])
    spec.comment("workerPoolSpecs", *_about_the_chief(training_input, pools), *left_out(training_input))
    return spec


def _about_scheduling(options: Mapping[str, Any]) -> list[str]:
    comments = []
    if "maxWaitTime" in options:
        text = (
            f"maxWaitTime {options['maxWaitTime']}: Vertex AI limits it for the strategy FLEX_START only, on newer "
            f"GPUs: {{strategy: FLEX_START, maxWaitDuration: {options['maxWaitTime']}}}."
        )
        comments.append(text)
    if "priority" in options:
        comments.append(f"priority {options['priority']}: Vertex AI has none.")
    return comments


def _about_the_chief(training_input: Mapping[str, Any], pools: int) -> list[str]:
    if training_input.get("useChiefInTfConfig"):
        return ["useChiefInTfConfig: left out; Vertex AI always says chief."]
    if "useChiefInTfConfig" in training_input or pools > 1:
        return [
            "TF_CONFIG calls the first replica chief, where AI Platform said master: see whether the code reads it."
        ]
    return []
