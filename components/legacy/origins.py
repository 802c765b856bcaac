"""Where in a legacy job stands what became a field of a Vertex AI job: for what Vertex AI would refuse of it."""

from collections.abc import Mapping
from typing import Any

from vertex_api.validation.rules import KeyPath

from .machines import ROLES

_OF_THE_JOB = {"displayName": "jobId", "labels": "labels"}
"""Fields of the legacy Job itself; all others are of its TrainingInput."""

# By the beginnings of paths.
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


def origin(path: KeyPath, training_input: Mapping[str, Any], above: KeyPath) -> KeyPath:
    """The path in a legacy job, whose TrainingInput stands at `above`, of what became the field at a path.

    Where several fields have become one it is the one that names it; empty where none has.
    """
    if path[0] in _OF_THE_JOB:
        return (_OF_THE_JOB[str(path[0])], *path[1:])
    if path[:2] == ("studySpec", "parameters") and len(path) > 2:
        return (*above, "hyperparameters", "params", path[2], *_renamed(path[3:], _PARAMETER))
    if path[0] not in ("jobSpec", "trialJobSpec"):
        found = _renamed(path, _TUNING)
    elif path[1:2] == ("workerPoolSpecs",) and len(path) > 2:
        found = _of_a_role(ROLES[int(path[2])], path[3:], training_input)
    else:
        found = _renamed(path[1:], _JOB_SPEC)
    return (*above, *found) if found else ()


def _of_a_role(role: str, path: KeyPath, training_input: Mapping[str, Any]) -> KeyPath:
    found = tuple(part.format(role=role) if isinstance(part, str) else part for part in _renamed(path, _POOL))
    config = training_input.get(f"{role}Config", {})
    if path[:1] == ("machineSpec",) and found[1:2] == ("acceleratorConfig",) and "acceleratorConfig" not in config:
        found = (f"{role}Type",)  # which has them, or needs some
    if found[1:2] == ("containerArgs",) and "containerArgs" not in config:
        return ("args", *found[2:])
    if found[1:2] == ("imageUri",) and "imageUri" not in config:
        return ("masterConfig", "imageUri")
    is_of_a_tier = found in ((f"{role}Type",), (f"{role}Count",)) and found[0] not in training_input
    return ("scaleTier",) if is_of_a_tier else found


def _renamed(path: KeyPath, names: Mapping[KeyPath, KeyPath]) -> KeyPath:
    for begins, legacy in names.items():
        if path[: len(begins)] == begins:
            return (*legacy, *path[len(begins) :])
    return ()
