"""Origins of the fields of a converted job: their paths in the legacy job, for the problems that Vertex AI reports."""

from collections.abc import Mapping
from typing import Any

from vertex_api.messages import KeyPath

from .machine_conversion import ROLES

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


def find_legacy_path_or_none(
    converted_path: KeyPath, training_input: Mapping[str, Any], training_input_path: KeyPath
) -> KeyPath | None:
    """Return the path in a legacy job of what became the field at `converted_path`; `None` if it comes from no field.

    `training_input_path` is the path of the TrainingInput. Of several fields that became one, it is the one that names
    it.
    """
    if converted_path[0] in _JOB_FIELDS:
        return (_JOB_FIELDS[str(converted_path[0])], *converted_path[1:])
    if converted_path[:2] == ("studySpec", "parameters") and len(converted_path) > 2:
        parameter_path = _replace_known_prefix_or_none(converted_path[3:], _PARAMETER) or ()
        return (*training_input_path, "hyperparameters", "params", converted_path[2], *parameter_path)
    if converted_path[0] not in ("jobSpec", "trialJobSpec"):
        legacy_path = _replace_known_prefix_or_none(converted_path, _TUNING)
    elif converted_path[1:2] == ("workerPoolSpecs",) and len(converted_path) > 2:
        legacy_path = _find_legacy_path_of_pool_field_or_none(
            ROLES[int(converted_path[2])], converted_path[3:], training_input
        )
    else:
        legacy_path = _replace_known_prefix_or_none(converted_path[1:], _JOB_SPEC)
    return (*training_input_path, *legacy_path) if legacy_path else None


def _find_legacy_path_of_pool_field_or_none(
    role: str, path_in_pool: KeyPath, training_input: Mapping[str, Any]
) -> KeyPath | None:
    if (parts := _replace_known_prefix_or_none(path_in_pool, _POOL)) is None:
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


def _replace_known_prefix_or_none(path: KeyPath, legacy_prefixes: Mapping[KeyPath, KeyPath]) -> KeyPath | None:
    for prefix, legacy_prefix in legacy_prefixes.items():
        if path[: len(prefix)] == prefix:
            return (*legacy_prefix, *path[len(prefix) :])
    return None
