"""The subworkflows of all schedules: submit a job once, find it, wait for it, read a URL, find the best trial.

Requests are plain HTTP calls: the connectors of Workflows for Vertex AI repeat a create request
whose answer is lost, which would submit a second job. Variables that a block sets are assigned before it, as those
that it sets first are gone after it. Requests have a `fields` mask (a system parameter of all Google REST APIs,
discovery document), as an execution holds at most 512 KB in its variables.
"""

from collections.abc import Mapping
from typing import Any

from vertex_api.names import SUCCEEDED_STATES, TERMINAL_STATES, TRAINING_PIPELINE
from vertex_api.studies import study_metrics

Steps = list[dict[str, Any]]
OAUTH = {"type": "OAuth2"}
RETRY = {
    "predicate": "${is_passing}",
    "max_retries": 8,
    "backoff": {"initial_delay": 2, "max_delay": 120, "multiplier": 2},
}
"""Reading is tried again for some six minutes, after the failures that pass."""
MAX_SUBMISSIONS = 5
SECONDS_UNTIL_LISTED = 30
"""After a lost answer, a job that was created all the same is listed by then."""
MAX_UNREAD_SECONDS = 3600
"""For how long each look at a job may fail before a run gives up waiting for it."""
MAX_LOOKS = 8000
"""A look takes 10 steps, and an execution has 100,000 (Google's page "Quotas and limits" of Workflows)."""
FIRST_PAUSE_SECONDS, MIN_LAST_PAUSE_SECONDS = 30, 300
_TRIAL_FIELDS = "trials(id,state,parameters,finalMeasurement/metrics)"
"""What is read of a tuning job, once and after its end: whole jobs of some 300 trials exceed an execution's memory."""
_JOB_FIELDS = "name,state,error"
_PIPELINE_RESULT_FIELDS = "trainingTaskMetadata,modelToUpload/name"
_HAS_NO_ANSWER = '"ConnectionError" in tags or "ConnectionFailedError" in tags or "TimeoutError" in tags'
_TAGS = '${default(map.get(%s, "tags"), no_tags)}'
_CODE = '${default(map.get(%s, "code"), 0)}'


def read_step(result: str, url: str, **query: Any) -> dict[str, Any]:
    """Return the fields of a step that calls the subworkflow `read`: `result` is the body of the answer of `url`."""
    return {"call": "read", "args": {"url": url, "query": query}, "result": result}


def wait_step(
    result: str, url: str, job: str, later: str, collection: str, hours: int, last_pause: int
) -> dict[str, Any]:
    """Return the fields of a step that waits until a job has succeeded, for at most so many `hours`.

    `result` is the job with its name and, if it is a pipeline, the names of its job and its model; `later` is the job
    that is submitted then. Looks at it come closer together at first, and at last every `last_pause` seconds.
    """
    fields = _JOB_FIELDS + (f",{_PIPELINE_RESULT_FIELDS}" if collection == TRAINING_PIPELINE.collection else "")
    args = {"job": job, "url": url, "fields": fields, "later": later, "hours": hours, "last_pause": last_pause}
    return {"call": "wait_for_job", "args": args, "result": result}


def shared_subworkflows(*, is_sequence: bool) -> dict[str, Any]:
    """Return the subworkflows by name; `wait_for_job` is only for a sequence of jobs."""
    waiting = {
        "wait_for_job": {
            "params": ["job", "url", "fields", "later", "hours", "last_pause"],
            "steps": _wait_for_job(),
        }
    }
    return {
        "submit_job": {"params": ["job", "url", "collection", "filter", "body"], "steps": _submit_job()},
        "find_submitted_job": {
            "params": ["url", "collection", "filter", "display_name"],
            "steps": _find_submitted_job(),
        },
        "read": {"params": ["url", "query"], "steps": _read()},
        "is_passing": {"params": ["failure"], "steps": _is_passing()},
        **(waiting if is_sequence else {}),
    }


def _read() -> Steps:
    args = {"url": "${url}", "auth": OAUTH, "query": "${query}"}
    get = {"call": "http.get", "args": args, "result": "answer"}
    return [
        {"begin": {"assign": [{"answer": None}]}},
        {"get": {"try": get, "retry": RETRY}},
        {"done": {"return": "${answer.body}"}},
    ]


def _is_passing() -> Steps:
    """Return whether a failed request may succeed a little later.

    `http.default_retry_predicate` does not retry 408, 500 (which Vertex AI answers at times) and AuthError, which is
    raised when "generating credentials for an HTTP request fails" (Google's pages on it, and "Workflow errors").
    """
    return [
        {"read": {"assign": [{"no_tags": []}, {"code": _CODE % "failure"}, {"tags": _TAGS % "failure"}]}},
        {
            "known": {
                "switch": [
                    {"condition": "${code == 408 or code == 429 or code >= 500}", "return": True},
                    {"condition": f'${{"AuthError" in tags or {_HAS_NO_ANSWER}}}', "return": True},
                ]
            }
        },
        {"unknown": {"return": False}},
    ]


def _submit_job() -> Steps:
    """Post the job. If the answer is lost, post it again only if no such job is there by then.

    A request without credentials (AuthError) or without a connection (ConnectionFailedError) has not been sent, and
    one above the quota (429) is refused: these are posted again without a look.
    """
    args = {"url": "${url}", "auth": OAUTH, "query": {"fields": "name"}, "body": "${body}"}
    send = {"call": "http.post", "args": args, "result": "answer"}
    failed = [{"keep_failure": {"assign": [{"failure": "${error}"}]}}]
    look_up = {name: f"${{{name}}}" for name in ("url", "collection", "filter")}
    look_up["display_name"] = "${body.displayName}"
    look = {"call": "find_submitted_job", "args": look_up, "result": "found"}
    is_refused = "${code != 0 and code != 408 and code != 429 and code < 500}"
    is_unsent = '${code == 429 or "AuthError" in tags or "ConnectionFailedError" in tags}'
    unseen = {
        "message": '${job + " may be submitted: its answer is lost, and jobs cannot be listed"}',
        "answer": '${default(map.get(error, "body"), error)}',
    }
    refused = {
        "message": '${job + " is not submitted"}',
        "answer": '${default(map.get(failure, "body"), failure)}',
    }
    nothing = [{"answer": None}, {"failure": None}, {"found": None}]
    return [
        {"begin": {"assign": [{"tries": 0}, {"may_be_there": False}, {"no_tags": []}]}},
        {"begin_try": {"assign": [*nothing, {"tries": "${tries + 1}"}]}},
        {"send": {"try": send, "except": {"as": "error", "steps": failed}}},
        {"submitted": {"switch": [{"condition": "${failure == null}", "return": "${answer.body}"}]}},
        {"read_failure": {"assign": [{"code": _CODE % "failure"}, {"tags": _TAGS % "failure"}]}},
        {"refused": {"switch": [{"condition": is_refused, "next": "raise_refusal"}]}},
        {"unsent": {"switch": [{"condition": is_unsent, "next": "wait"}]}},
        {"lost": {"assign": [{"may_be_there": True}]}},
        {"wait": {"call": "sys.sleep", "args": {"seconds": SECONDS_UNTIL_LISTED}}},
        {"not_there": {"switch": [{"condition": "${may_be_there == false}", "next": "again"}]}},
        {"look": {"try": look, "except": {"as": "error", "steps": [{"raise_unseen": {"raise": unseen}}]}}},
        {"found": {"switch": [{"condition": "${found != null}", "return": "${found}"}]}},
        {"again": {"switch": [{"condition": f"${{tries < {MAX_SUBMISSIONS}}}", "next": "begin_try"}]}},
        {"raise_refusal": {"raise": refused}},
    ]


def _find_submitted_job() -> Steps:
    """Find the job of this run by its display name, which has the run's id in it."""
    same = {"condition": "${one.displayName == display_name}", "return": "${one}"}
    each = {"value": "one", "in": "${found}", "steps": [{"compare": {"switch": [same]}}]}
    fields = '${collection + "(name,displayName)"}'
    return [
        {"begin": {"assign": [{"nothing": []}]}},
        {"list": read_step("answer", "${url}", filter="${filter}", pageSize=100, fields=fields)},
        {"read": {"assign": [{"found": "${default(map.get(answer, collection), nothing)}"}]}},
        {"each": {"for": each}},
        {"not_found": {"return": None}},
    ]


def _wait_for_job() -> Steps:
    """Wait until a job has ended, and fail if it has not succeeded.

    A look that fails is one more pause: the job goes on meanwhile. Only a job that is gone is not waited for.
    """
    end = '" + later + " is not submitted"'
    failure = {
        "message": f'${{job + " has ended as " + state + "; {end}}}',
        "error": '${default(map.get(answer.body, "error"), "no error")}',
        "job": "${answer.body.name}",
    }
    late = {
        "message": f'${{job + " is " + state + " after " + string(hours) + " hours, and goes on; {end}}}',
        "job": "${answer.body.name}",
    }
    unread = {
        "message": f'${{job + " cannot be read, and may go on; {end}}}',
        "answer": '${default(map.get(failure, "body"), failure)}',
        "job": "${url}",
    }
    states = [{"succeeded": sorted(SUCCEEDED_STATES)}, {"ended": sorted(TERMINAL_STATES)}]
    times = [{"deadline": "${sys.now() + hours * 3600}"}, {"unread_since": None}, {"pause": FIRST_PAUSE_SECONDS}]
    get = {
        "call": "http.get",
        "args": {"url": "${url}", "auth": OAUTH, "query": {"fields": "${fields}"}},
        "result": "answer",
    }
    failed = [{"keep_failure": {"assign": [{"failure": "${error}"}]}}]
    read_failure = [{"unread_since": "${default(unread_since, sys.now())}"}, {"code": _CODE % "failure"}]
    is_unreadable = f"${{code == 404 or sys.now() - unread_since >= {MAX_UNREAD_SECONDS}}}"
    return [
        {"begin": {"assign": [*times, *states]}},
        {"begin_look": {"assign": [{"answer": None}, {"failure": None}]}},
        {"look": {"try": get, "except": {"as": "error", "steps": failed}}},
        {"is_read": {"switch": [{"condition": "${failure == null}", "next": "read"}]}},
        {"read_failure": {"assign": read_failure}},
        {"unreadable": {"switch": [{"condition": is_unreadable, "next": "raise_unread"}], "next": "wait"}},
        {"read": {"assign": [{"state": "${answer.body.state}"}, {"unread_since": None}]}},
        {"succeeded_by_now": {"switch": [{"condition": "${state in succeeded}", "return": "${answer.body}"}]}},
        {"failed_by_now": {"switch": [{"condition": "${state in ended}", "next": "raise_failure"}]}},
        {"late_by_now": {"switch": [{"condition": "${sys.now() >= deadline}", "next": "raise_late"}]}},
        {"wait": {"call": "sys.sleep", "args": {"seconds": "${pause}"}}},
        {"grow": {"assign": [{"pause": "${math.min(pause * 2, last_pause)}"}], "next": "begin_look"}},
        {"raise_failure": {"raise": failure}},
        {"raise_late": {"raise": late}},
        {"raise_unread": {"raise": unread}},
    ]


def unsupported_metrics(study_spec: Mapping[str, Any]) -> str | None:
    """Return as text which metrics of a study keep a workflow from finding the best trial, None if it can."""
    metrics = study_metrics(study_spec)
    if any(metric.threshold is not None for metric in metrics):
        return "a safety metric"
    return f"{len(metrics)} metrics" if len(metrics) > 1 else None


def metric_args(study_spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `find_best_trial` that depend on the study: its `metric` and the `sign` of losses."""
    (metric,) = study_metrics(study_spec)
    return {"metric": metric.id, "sign": metric.sign}


def best_trial_subworkflows() -> dict[str, Any]:
    """Return two more by name: `find_best_trial`, which is `studies.find_best`, and `format_value` for texts."""
    return {
        "find_best_trial": {"params": ["job", "url", "metric", "sign"], "steps": _find_best_trial()},
        "collect_values": {"params": ["rows", "key"], "steps": _collect_values()},
        "format_value": {"params": ["value"], "steps": _format_value()},
    }


def _find_best_trial() -> Steps:
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
        {"read_trials": read_step("tuning_job", "${url}", fields=_TRIAL_FIELDS)},
        {"begin": {"assign": [*first, {"trials": '${default(map.get(tuning_job, "trials"), no_list)}'}]}},
        {"each": {"for": {"value": "trial", "in": "${trials}", "steps": body}}},
        {"none": {"switch": [{"condition": "${best == null}", "raise": {"message": message}}]}},
        _call_collect_values("parameters", '${default(map.get(best, "parameters"), no_list)}', "parameterId"),
        _call_collect_values("measured", "${best.finalMeasurement.metrics}", "metricId"),
        {"done": {"return": values}},
    ]


def _call_collect_values(result: str, rows: str, key: str) -> dict[str, Any]:
    args = {"rows": rows, "key": key}
    return {f"collect_{result}": {"call": "collect_values", "args": args, "result": result}}


def _collect_values() -> Steps:
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


def _format_value() -> Steps:
    """Write a number as in JSON, a whole one without a fraction: JSON has one kind of number."""
    kinds = [
        {"condition": '${get_type(value) == "string"}', "return": "${value}"},
        {"condition": '${get_type(value) != "double"}', "return": "${string(value)}"},
        {"condition": "${value == int(value)}", "return": "${string(int(value))}"},
    ]
    return [{"by_type": {"switch": kinds}}, {"fraction": {"return": "${string(value)}"}}]
