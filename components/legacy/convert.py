"""Conversion of a job of AI Platform Training into a declaration of this project."""

import re
from collections.abc import Mapping
from typing import Any

from vertex_api.messages import KeyPath
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB
from vertex_api.studies import whole_number
from vertex_api.validation.check import ValidPart, validate_job
from vertex_api.validation.shape import MUST_BE_OBJECT, FieldProblem, canonicalize

from ..schema.interpolation import map_texts
from . import validation
from .document import CommentedFields
from .pools import ROLES, convert_pools, ignored_comments
from .types import Job, TrainingInput

DEFAULT_TAG = "training/hptuning/metric"


def convert(document: object, fallback_name: str) -> tuple[CommentedFields, list[FieldProblem]]:
    """Return the declaration, with comments, of a Job or a bare TrainingInput, and all problems of the legacy job.

    The declaration is valid only if there are no problems: those of the job by its own rules, and what Vertex AI would
    say of what it becomes. `fallback_name` names a job that has no id.
    """
    if not isinstance(document, Mapping):
        return CommentedFields(), [FieldProblem((), MUST_BE_OBJECT)]
    place: KeyPath = ("trainingInput",) if _is_job(document) else ()
    job, problems = canonicalize(Job, document if place else {"trainingInput": document}, output_only="drop")
    if "predictionInput" in job:
        problems = [FieldProblem(("predictionInput",), "is a prediction job's; only training jobs can be converted")]
    elif not problems and "trainingInput" not in job:
        problems = [FieldProblem(("trainingInput",), "is required")]
    problems = [*problems, *_violations(ValidPart.of(Job, job, problems, output_only="drop"))]
    if problems:
        return CommentedFields(), [FieldProblem(each.path[0 if place else 1 :], each.message) for each in problems]
    # "${" begins a reference in a declaration.
    declaration = declare(map_texts(job, lambda text: text.replace("${", "$${")), fallback_name)
    ((collection, jobs),) = declaration.items()
    ((name, body),) = jobs.items()
    kind = CUSTOM_JOB if collection == CUSTOM_JOB.collection else HYPERPARAMETER_TUNING_JOB
    _, refused = validate_job(kind, {"displayName": name, **body})
    return declaration, [_at_legacy_field(each, job["trainingInput"], place) for each in refused]


def _is_job(document: Mapping[Any, Any]) -> bool:
    """Whether more names are those of a Job than of its TrainingInput; both spellings count."""

    def count(message_type: Any) -> int:
        names = {name.lower() for name in message_type.__annotations__}
        return sum(name.replace("_", "").lower() in names for name in document if isinstance(name, str))

    return count(Job) >= count(TrainingInput)


def _violations(valid_part: ValidPart) -> list[FieldProblem]:
    """Find the rules that the valid part of a Job breaks, unless its misshapen parts may be the reason."""
    job = valid_part.value or {}
    if "trainingInput" not in job or "predictionInput" in job:
        return []

    def whole(path: KeyPath) -> KeyPath:
        """What is checked as a whole: one parameter, or everything that describes the replicas."""
        return path[:4] if path[1:2] == ("hyperparameters",) else ()

    removed = {whole(path) for path in valid_part.removed_paths}
    found = [(("trainingInput", *path), text) for path, text in validation.violations(job["trainingInput"])]
    return [
        FieldProblem(path, message)
        for path, message in found
        if whole(path) not in removed and not valid_part.consequences.may_include(path)
    ]


def declare(job: Mapping[str, Any], fallback_name: str) -> CommentedFields:
    """Return the fields, with comments, of a file that declares a valid Job; one without an id has `fallback_name`."""
    training_input = job["trainingInput"]
    display_name = job.get("jobId") or fallback_name
    name = re.sub(r"[^a-z0-9._-]", "-", display_name.lower())[:63].strip("._-") or "job"
    body = CommentedFields({"displayName": display_name} if display_name != name else {})
    for key, value in (("labels", job.get("labels")), ("encryptionSpec", training_input.get("encryptionConfig"))):
        if value:
            body[key] = value
    tuning = training_input.get("hyperparameters")
    if tuning:
        body["studySpec"] = _study_spec(tuning)
        # AI Platform's default for the first two is one.
        body["maxTrialCount"] = tuning.get("maxTrials") or 1
        body["parallelTrialCount"] = tuning.get("maxParallelTrials") or 1
        if max_failed := tuning.get("maxFailedTrials"):
            body["maxFailedTrialCount"] = max_failed
    body["trialJobSpec" if tuning else "jobSpec"] = _job_spec(training_input)
    jobs = CommentedFields({name: body})
    if "region" in training_input:
        text = f"region {training_input['region']}: a stack says where its jobs run, with vertex-training:region."
        jobs.comment(name, text)
    return CommentedFields({(HYPERPARAMETER_TUNING_JOB if tuning else CUSTOM_JOB).collection: jobs})


def _job_spec(training_input: dict[str, Any]) -> CommentedFields:
    spec = CommentedFields({"workerPoolSpecs": convert_pools(training_input)})
    options = training_input.get("scheduling", {})
    if "maxRunningTime" in options:
        spec["scheduling"] = {"timeout": options["maxRunningTime"]}
    if "maxWaitTime" in options:
        text = "Vertex AI limits it for the strategy FLEX_START only, on newer GPUs: "
        text += f"{{strategy: FLEX_START, maxWaitDuration: {options['maxWaitTime']}}}."
        spec.comment("scheduling", f"maxWaitTime {options['maxWaitTime']}: {text}")
    if "priority" in options:
        spec.comment("scheduling", f"priority {options['priority']}: Vertex AI has none.")
    copied = ("serviceAccount", "network", "enableWebAccess")
    spec |= {name: training_input[name] for name in copied if name in training_input}
    if "jobDir" in training_input:
        folder = training_input["jobDir"]
        spec["baseOutputDirectory"] = {"outputUriPrefix": folder}
        text = (
            "jobDir: Vertex AI names folders below it in AIP_MODEL_DIR, AIP_CHECKPOINT_DIR and "
            f'AIP_TENSORBOARD_LOG_DIR, and gives no flag. If the code reads --job-dir, add "--job-dir={folder}" to '
            "args. Without this field each run gets a folder of its own."
        )
        spec.comment("baseOutputDirectory", text)
    if training_input.get("useChiefInTfConfig"):
        spec.comment("workerPoolSpecs", "useChiefInTfConfig: left out; Vertex AI always says chief.")
    elif "useChiefInTfConfig" in training_input or len(spec["workerPoolSpecs"]) > 1:
        text = "TF_CONFIG calls the first replica chief, where AI Platform said master: see whether the code reads it."
        spec.comment("workerPoolSpecs", text)
    spec.comment("workerPoolSpecs", *ignored_comments(training_input))
    return spec


_LIMITS = ("minValue", "maxValue")
_RANGES = {"DOUBLE": "doubleValueSpec", "INTEGER": "integerValueSpec"}
_LISTS = {
    "CATEGORICAL": ("categoricalValueSpec", "categoricalValues"),
    "DISCRETE": ("discreteValueSpec", "discreteValues"),
}


def _study_spec(tuning: dict[str, Any]) -> CommentedFields:
    goal = tuning.get("goal", "MAXIMIZE").replace("GOAL_TYPE_UNSPECIFIED", "MAXIMIZE")
    metric_id = tuning.get("hyperparameterMetricTag", DEFAULT_TAG)
    study = CommentedFields({"metrics": [{"metricId": metric_id, "goal": goal}]})
    text = "Vertex AI reads what the code reports with cloudml-hypertune, under this name, and no TensorFlow summaries."
    study.comment("metrics", text)
    study["parameters"] = [_parameter(each) for each in tuning["params"]]
    if tuning.get("algorithm", "ALGORITHM_UNSPECIFIED") != "ALGORITHM_UNSPECIFIED":
        study["algorithm"] = tuning["algorithm"]
    if tuning.get("enableTrialEarlyStopping"):
        study["medianAutomatedStoppingSpec"] = {}
        text = "the nearest rule. It stops a trial that is worse than the median of the others."
        study.comment("medianAutomatedStoppingSpec", f"enableTrialEarlyStopping: {text}")
    if "resumePreviousJobId" in tuning:
        text = "Vertex AI has nothing like it; a study starts anew."
        study.comment("resumePreviousJobId", f"resumePreviousJobId {tuning['resumePreviousJobId']}: {text}")
    return study


def _parameter(legacy: dict[str, Any]) -> CommentedFields:
    kind, parameter = legacy["type"], CommentedFields({"parameterId": legacy["parameterName"]})
    if kind in _RANGES:
        parameter[_RANGES[kind]] = {name: whole_number(legacy.get(name, 0.0)) for name in _LIMITS}
    else:
        name, legacy_name = _LISTS[kind]
        values = legacy[legacy_name]
        if kind == "DISCRETE" and values != (ordered := sorted(set(values))):
            text = "discreteValues: in Vertex AI they increase, so they are sorted here, each once."
            parameter.comment(name, text)
            values = ordered
        parameter[name] = {"values": [whole_number(value) for value in values]}
    scale = legacy.get("scaleType", "NONE")
    if scale != "NONE" and kind == "CATEGORICAL":
        parameter.comment("scaleType", f"scaleType {scale}: left out; categories have no scale.")
    elif scale != "NONE":
        parameter["scaleType"] = scale
    used_names = _LIMITS if kind in _RANGES else _LISTS[kind]
    for name in (*_LIMITS, "categoricalValues", "discreteValues"):
        if name in legacy and name not in used_names:
            parameter.comment(name, f"{name}: left out; it says nothing of a parameter of type {kind}.")
    return parameter


def _at_legacy_field(problem: FieldProblem, training_input: Mapping[str, Any], place: KeyPath) -> FieldProblem:
    """Return a problem of the converted job at the legacy field that it comes from, if there is one."""
    path = origin(problem.path, training_input, place)
    message = problem.message.replace("maxTrialCount", "maxTrials")
    return FieldProblem(path or (), f"Vertex AI would refuse {'it' if path else problem.place}: {message}")


_JOB_FIELDS = {"displayName": "jobId", "labels": "labels"}
"""Fields of the legacy Job itself; all others are of its TrainingInput."""

# The legacy path of each prefix of a path.
_TUNING: dict[KeyPath, KeyPath] = {
    ("encryptionSpec",): ("encryptionConfig",),
    ("maxFailedTrialCount",): ("hyperparameters", "maxFailedTrials"),
    ("maxTrialCount",): ("hyperparameters", "maxTrials"),
    ("parallelTrialCount",): ("hyperparameters", "maxParallelTrials"),
    ("studySpec", "algorithm"): ("hyperparameters", "algorithm"),
    ("studySpec", "metrics", 0, "metricId"): ("hyperparameters", "hyperparameterMetricTag"),
    ("studySpec", "parameters"): ("hyperparameters", "params"),
}
_JOB_SPEC: dict[KeyPath, KeyPath] = {
    ("baseOutputDirectory", "outputUriPrefix"): ("jobDir",),
    ("network",): ("network",),
    ("scheduling", "timeout"): ("scheduling", "maxRunningTime"),
    ("serviceAccount",): ("serviceAccount",),
}
_POOL: dict[KeyPath, KeyPath] = {
    ("containerSpec", "args"): ("{role}Config", "containerArgs"),
    ("containerSpec", "command"): ("{role}Config", "containerCommand"),
    ("containerSpec", "imageUri"): ("{role}Config", "imageUri"),
    ("diskSpec",): ("{role}Config", "diskConfig"),
    ("machineSpec", "acceleratorCount"): ("{role}Config", "acceleratorConfig", "count"),
    ("machineSpec", "acceleratorType"): ("{role}Config", "acceleratorConfig", "type"),
    ("machineSpec", "machineType"): ("{role}Type",),
    ("pythonPackageSpec", "args"): ("args",),
    ("pythonPackageSpec", "packageUris"): ("packageUris",),
    ("pythonPackageSpec", "pythonModule"): ("pythonModule",),
    ("replicaCount",): ("{role}Count",),
}
_PARAMETER: dict[KeyPath, KeyPath] = {
    ("categoricalValueSpec", "values"): ("categoricalValues",),
    ("discreteValueSpec", "values"): ("discreteValues",),
    ("parameterId",): ("parameterName",),
    ("scaleType",): ("scaleType",),
}


def origin(path: KeyPath, training_input: Mapping[str, Any], place: KeyPath) -> KeyPath | None:
    """Return the path in a legacy job of what became the field at `path`; `None` if it comes from no field.

    `place` is the path of the TrainingInput. Of several fields that became one, it is the one that names it.
    """
    if path[0] in _JOB_FIELDS:
        return (_JOB_FIELDS[str(path[0])], *path[1:])
    if path[:2] == ("studySpec", "parameters") and len(path) > 2:
        return (*place, "hyperparameters", "params", path[2], *(_renamed(path[3:], _PARAMETER) or ()))
    if path[0] not in ("jobSpec", "trialJobSpec"):
        legacy_path = _renamed(path, _TUNING)
    elif path[1:2] == ("workerPoolSpecs",) and len(path) > 2:
        legacy_path = _pool_origin(ROLES[int(path[2])], path[3:], training_input)
    else:
        legacy_path = _renamed(path[1:], _JOB_SPEC)
    return (*place, *legacy_path) if legacy_path else None


def _pool_origin(role: str, path_in_pool: KeyPath, training_input: Mapping[str, Any]) -> KeyPath | None:
    if (parts := _renamed(path_in_pool, _POOL)) is None:
        return None
    path = tuple(part.format(role=role) if isinstance(part, str) else part for part in parts)
    field = path[1:2]
    is_missing = bool(field) and path[1] not in training_input.get(f"{role}Config", {})
    if is_missing and field == ("acceleratorConfig",):
        path = (f"{role}Type",)  # which has accelerators, or needs some
    if is_missing and field == ("containerArgs",):
        return ("args", *path[2:])
    if is_missing and field == ("imageUri",):
        return ("masterConfig", "imageUri")
    is_set_by_tier = path in ((f"{role}Type",), (f"{role}Count",)) and path[0] not in training_input
    return ("scaleTier",) if is_set_by_tier else path


def _renamed(path: KeyPath, legacy_prefixes: Mapping[KeyPath, KeyPath]) -> KeyPath | None:
    for prefix, legacy_prefix in legacy_prefixes.items():
        if path[: len(prefix)] == prefix:
            return (*legacy_prefix, *path[len(prefix) :])
    return None
