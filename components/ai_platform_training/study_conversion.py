"""Hyperparameter tuning of a legacy job, as Vertex AI's StudySpec."""

from typing import Any

from vertex_api.studies import whole_number

from .commented_yaml import CommentedFields

DEFAULT_TAG = "training/hptuning/metric"
_LIMITS = ("minValue", "maxValue")
_RANGES = {"DOUBLE": "doubleValueSpec", "INTEGER": "integerValueSpec"}
_LISTS = {
    "CATEGORICAL": ("categoricalValueSpec", "categoricalValues"),
    "DISCRETE": ("discreteValueSpec", "discreteValues"),
}


def convert_study_spec(hyperparameters: dict[str, Any]) -> CommentedFields:
    """Return the StudySpec, with comments, of a valid HyperparameterSpec."""
    goal = hyperparameters.get("goal", "MAXIMIZE").replace("GOAL_TYPE_UNSPECIFIED", "MAXIMIZE")
    metric_id = hyperparameters.get("hyperparameterMetricTag", DEFAULT_TAG)
    study = CommentedFields({"metrics": [{"metricId": metric_id, "goal": goal}]})
    text = "Vertex AI reads what the code reports with cloudml-hypertune, under this name, and no TensorFlow summaries."
    study.add_comments("metrics", text)
    study["parameters"] = [_convert_parameter(each) for each in hyperparameters["params"]]
    if hyperparameters.get("algorithm", "ALGORITHM_UNSPECIFIED") != "ALGORITHM_UNSPECIFIED":
        study["algorithm"] = hyperparameters["algorithm"]
    if hyperparameters.get("enableTrialEarlyStopping"):
        study["medianAutomatedStoppingSpec"] = {}
        text = "the nearest rule. It stops a trial that is worse than the median of the others."
        study.add_comments("medianAutomatedStoppingSpec", f"enableTrialEarlyStopping: {text}")
    if "resumePreviousJobId" in hyperparameters:
        text = "Vertex AI has nothing like it; a study starts anew."
        study.add_comments(
            "resumePreviousJobId", f"resumePreviousJobId {hyperparameters['resumePreviousJobId']}: {text}"
        )
    return study


def convert_trial_counts(hyperparameters: dict[str, Any]) -> dict[str, int]:
    """Return the numbers of trials of a HyperparameterSpec. AI Platform's default for the first two is one."""
    counts = {
        "maxTrialCount": hyperparameters.get("maxTrials") or 1,
        "parallelTrialCount": hyperparameters.get("maxParallelTrials") or 1,
    }
    max_failed = hyperparameters.get("maxFailedTrials")
    return counts | ({"maxFailedTrialCount": max_failed} if max_failed else {})


def _convert_parameter(parameter_spec: dict[str, Any]) -> CommentedFields:
    kind, parameter = parameter_spec["type"], CommentedFields({"parameterId": parameter_spec["parameterName"]})
    if kind in _RANGES:
        parameter[_RANGES[kind]] = {name: whole_number(parameter_spec.get(name, 0.0)) for name in _LIMITS}
    else:
        name, legacy_name = _LISTS[kind]
        values = parameter_spec[legacy_name]
        if kind == "DISCRETE" and values != (ordered := sorted(set(values))):
            text = "discreteValues: in Vertex AI they increase, so they are sorted here, each once."
            parameter.add_comments(name, text)
            values = ordered
        parameter[name] = {"values": [whole_number(value) for value in values]}
    scale = parameter_spec.get("scaleType", "NONE")
    if scale != "NONE" and kind == "CATEGORICAL":
        parameter.add_comments("scaleType", f"scaleType {scale}: left out; categories have no scale.")
    elif scale != "NONE":
        parameter["scaleType"] = scale
    used_names = _LIMITS if kind in _RANGES else _LISTS[kind]
    for name in (*_LIMITS, "categoricalValues", "discreteValues"):
        if name in parameter_spec and name not in used_names:
            parameter.add_comments(name, f"{name}: left out; it says nothing of a parameter of type {kind}.")
    return parameter
