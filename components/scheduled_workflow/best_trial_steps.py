"""The best trial of a tuning job, found by the steps of a workflow as `studies.find_best` finds it."""

from collections.abc import Mapping
from typing import Any

from vertex_api.studies import study_metrics

from .shared_subworkflows import Steps, build_read_step_fields

_TRIAL_FIELDS = "trials(id,state,parameters,finalMeasurement/metrics)"
"""What is read of a tuning job, once and after its end: whole jobs of some 300 trials exceed an execution's memory."""


def describe_unsupported_metrics_or_none(study_spec: Mapping[str, Any]) -> str | None:
    """Return as text which metrics of a study keep a workflow from finding the best trial, None if it can."""
    metrics = study_metrics(study_spec)
    if any(metric.threshold is not None for metric in metrics):
        return "a safety metric"
    return f"{len(metrics)} metrics" if len(metrics) > 1 else None


def build_metric_and_loss_sign_args(study_spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `find_best_trial` that depend on the study: its `metric` and the `sign` of losses."""
    (metric,) = study_metrics(study_spec)
    return {"metric": metric.id, "sign": metric.sign}


def build_subworkflows() -> dict[str, Any]:
    """Return the subworkflows by name: `find_best_trial`, and `format_value` for texts such as arguments."""
    return {
        "find_best_trial": {"params": ["job", "url", "metric", "sign"], "steps": _build_find_best_trial_steps()},
        "collect_values": {"params": ["rows", "key"], "steps": _build_collect_values_steps()},
        "format_value": {"params": ["value"], "steps": _build_format_value_steps()},
    }


def _build_find_best_trial_steps() -> Steps:
    """Compare the succeeded trials of the tuning job at `url` by the metric: the smallest loss wins, of equal ones the
    first trial.
    """
    read_trial = [
        {"measurement": '${default(map.get(trial, "finalMeasurement"), no_map)}'},
        {"metrics": '${default(map.get(measurement, "metrics"), no_list)}'},
        {"value": None},
    ]
    read_metric = [
        {"is_other": {"switch": [{"condition": "${row.metricId != metric}", "next": "continue"}]}},
        {"keep_value": {"assign": [{"value": '${default(map.get(row, "value"), 0.0)}'}]}},
    ]
    # Of what is no number, such as "NaN", no trial is the best.
    skip = [
        {"condition": '${trial.state != "SUCCEEDED" or value == null}', "next": "continue"},
        {"condition": '${get_type(value) == "string"}', "next": "continue"},
    ]
    compare = [
        {"condition": "${best == null}", "next": "keep"},
        {"condition": "${value * sign < loss}", "next": "keep"},
        {"condition": "${value * sign == loss and int(trial.id) < int(best.id)}", "next": "keep"},
        {"condition": True, "next": "continue"},
    ]
    body: Steps = [
        {"read_trial": {"assign": read_trial}},
        {"read_metrics": {"for": {"value": "row", "in": "${metrics}", "steps": read_metric}}},
        {"skip": {"switch": skip}},
        {"compare": {"switch": compare}},
        {"keep": {"assign": [{"best": "${trial}"}, {"loss": "${value * sign}"}]}},
    ]
    first = [{"best": None}, {"loss": 0}, {"no_list": []}, {"no_map": {}}]
    values = {"id": "${best.id}", "parameters": "${parameters}", "metrics": "${measured}"}
    message = '${job + " has no best trial: no trial has succeeded with the metric " + metric}'
    return [
        {"read_trials": build_read_step_fields("tuning_job", "${url}", fields=_TRIAL_FIELDS)},
        {"begin": {"assign": [*first, {"trials": '${default(map.get(tuning_job, "trials"), no_list)}'}]}},
        {"each": {"for": {"value": "trial", "in": "${trials}", "steps": body}}},
        {"none": {"switch": [{"condition": "${best == null}", "raise": {"message": message}}]}},
        _build_step_calling_collect_values(
            "parameters", '${default(map.get(best, "parameters"), no_list)}', "parameterId"
        ),
        _build_step_calling_collect_values("measured", "${best.finalMeasurement.metrics}", "metricId"),
        {"done": {"return": values}},
    ]


def _build_step_calling_collect_values(result: str, rows: str, key: str) -> dict[str, Any]:
    args = {"rows": rows, "key": key}
    return {f"collect_{result}": {"call": "collect_values", "args": args, "result": result}}


def _build_collect_values_steps() -> Steps:
    """Return the values of rows as texts, by their ids."""
    format_args = {"value": '${default(map.get(row, "value"), 0)}'}
    body: Steps = [
        {"format": {"call": "format_value", "args": format_args, "result": "formatted"}},
        {"keep": {"assign": [{"id": "${row[key]}"}, {"values[id]": "${formatted}"}]}},
    ]
    return [
        {"begin": {"assign": [{"values": {}}]}},
        {"each": {"for": {"value": "row", "in": "${rows}", "steps": body}}},
        {"done": {"return": "${values}"}},
    ]


def _build_format_value_steps() -> Steps:
    """Write a number as in JSON, a whole one without a fraction: JSON has one kind of number."""
    kinds = [
        {"condition": '${get_type(value) == "string"}', "return": "${value}"},
        {"condition": '${get_type(value) != "double"}', "return": "${string(value)}"},
        {"condition": "${value == int(value)}", "return": "${string(int(value))}"},
    ]
    return [{"by_type": {"switch": kinds}}, {"fraction": {"return": "${string(value)}"}}]
