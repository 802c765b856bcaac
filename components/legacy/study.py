"""Hyperparameter tuning of a legacy job, as Vertex AI's StudySpec."""

from typing import Any

from .fields import Fields

DEFAULT_TAG = "training/hptuning/metric"
_VALUES = {"DOUBLE": "doubleValueSpec", "INTEGER": "integerValueSpec"}
_LISTS = {
    "CATEGORICAL": ("categoricalValueSpec", "categoricalValues"),
    "DISCRETE": ("discreteValueSpec", "discreteValues"),
}


def study_spec(spec: dict[str, Any]) -> Fields:
    """The StudySpec, with comments, of a HyperparameterSpec without problems."""
    goal = spec.get("goal", "MAXIMIZE").replace("GOAL_TYPE_UNSPECIFIED", "MAXIMIZE")
    study = Fields({"metrics": [{"metricId": spec.get("hyperparameterMetricTag", DEFAULT_TAG), "goal": goal}]})
    text = "Vertex AI reads what the code reports with cloudml-hypertune, under this name, and no TensorFlow summaries."
    study.comment("metrics", text)
    study["parameters"] = [_parameter(each) for each in spec["params"]]
    if spec.get("algorithm", "ALGORITHM_UNSPECIFIED") != "ALGORITHM_UNSPECIFIED":
        study["algorithm"] = spec["algorithm"]
    if spec.get("enableTrialEarlyStopping"):
        study["medianAutomatedStoppingSpec"] = {}
        text = (
            "enableTrialEarlyStopping: the nearest rule. It stops a trial that is worse than the median of the others."
        )
        study.comment("medianAutomatedStoppingSpec", text)
    if "resumePreviousJobId" in spec:
        text = f"resumePreviousJobId {spec['resumePreviousJobId']}: Vertex AI has nothing like it; a study starts anew."
        study.comment("resumePreviousJobId", text)
    return study


def counts(spec: dict[str, Any]) -> dict[str, int]:
    """The numbers of trials of a HyperparameterSpec; AI Platform's default for both of the first two is one."""
    found = {"maxTrialCount": spec.get("maxTrials") or 1, "parallelTrialCount": spec.get("maxParallelTrials") or 1}
    return found | ({"maxFailedTrialCount": spec["maxFailedTrials"]} if spec.get("maxFailedTrials") else {})


def _parameter(spec: dict[str, Any]) -> Fields:
    kind, parameter = spec["type"], Fields({"parameterId": spec["parameterName"]})
    if kind in _VALUES:
        limits = {name: plain(spec.get(name, 0.0)) for name in ("minValue", "maxValue")}
        parameter[_VALUES[kind]] = limits
        unused = ["categoricalValues", "discreteValues"]
    else:
        name, values = _LISTS[kind]
        given = spec[values]
        if kind == "DISCRETE" and given != (ordered := sorted(set(given))):
            parameter.comment(name, "discreteValues: in Vertex AI they increase, so they are sorted here, each once.")
            given = ordered
        parameter[name] = {"values": [plain(value) for value in given]}
        unused = ["minValue", "maxValue", *(other for _, other in _LISTS.values() if other != values)]
    scale = spec.get("scaleType", "NONE")
    if scale != "NONE" and kind == "CATEGORICAL":
        parameter.comment("scaleType", f"scaleType {scale}: left out; categories have no scale.")
    elif scale != "NONE":
        parameter["scaleType"] = scale
    for name in unused:
        if name in spec:
            parameter.comment(name, f"{name}: left out; it says nothing of a parameter of type {kind}.")
    return parameter


def plain(value: Any) -> Any:
    """A number as a person writes it: without a fraction where there is none."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
