"""The subworkflows that are the same for all schedules: submit a job once, find it, wait for it, read a URL.

Requests are plain HTTP calls: the connectors of Workflows for Vertex AI repeat a create request
whose answer is lost, which would submit a second job. Variables that a block sets are assigned before it, as those
that it sets first are gone after it. Requests have a `fields` mask (a system parameter of all Google REST APIs,
discovery document), as an execution holds at most 512 KB in its variables.
"""

from typing import Any

from vertex_api.names import SUCCEEDED_STATES, TERMINAL_STATES, TRAINING_PIPELINE

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
_JOB_FIELDS = "name,state,error"
_PIPELINE_RESULT_FIELDS = "trainingTaskMetadata,modelToUpload/name"
_HAS_NO_ANSWER = '"ConnectionError" in tags or "ConnectionFailedError" in tags or "TimeoutError" in tags'
_TAGS = '${default(map.get(%s, "tags"), no_tags)}'
_CODE = '${default(map.get(%s, "code"), 0)}'


def build_read_step_fields(result: str, url: str, **query: Any) -> dict[str, Any]:
    """Return the fields of a step that calls the subworkflow `read`: `result` is the body of the answer of `url`."""
    return {"call": "read", "args": {"url": url, "query": query}, "result": result}


def build_wait_step_fields(
    result: str, url: str, job: str, later: str, collection: str, hours: int, last_pause: int
) -> dict[str, Any]:
    """Return the fields of a step that waits until a job has succeeded, for at most so many `hours`.

    `result` is the job with its name and, if it is a pipeline, the names of its job and its model; `later` is the job
    that is submitted then. Looks at it come closer together at first, and at last every `last_pause` seconds.
    """
    fields = _JOB_FIELDS + (f",{_PIPELINE_RESULT_FIELDS}" if collection == TRAINING_PIPELINE.collection else "")
    args = {"job": job, "url": url, "fields": fields, "later": later, "hours": hours, "last_pause": last_pause}
    return {"call": "wait_for_job", "args": args, "result": result}


def build_shared_subworkflows(*, is_sequence: bool) -> dict[str, Any]:
    """Return the subworkflows by name; `wait_for_job` is only for a sequence of jobs."""
    waiting = {
        "wait_for_job": {
            "params": ["job", "url", "fields", "later", "hours", "last_pause"],
            "steps": _build_wait_for_job_steps(),
        }
    }
    return {
        "submit_job": {"params": ["job", "url", "collection", "filter", "body"], "steps": _build_submit_job_steps()},
        "find_submitted_job": {
            "params": ["url", "collection", "filter", "display_name"],
            "steps": _build_find_submitted_job_steps(),
        },
        "read": {"params": ["url", "query"], "steps": _build_read_steps()},
        "is_passing": {"params": ["failure"], "steps": _build_is_passing_steps()},
        **(waiting if is_sequence else {}),
    }


def _build_read_steps() -> Steps:
    args = {"url": "${url}", "auth": OAUTH, "query": "${query}"}
    get = {"call": "http.get", "args": args, "result": "answer"}
    return [
        {"begin": {"assign": [{"answer": None}]}},
        {"get": {"try": get, "retry": RETRY}},
        {"done": {"return": "${answer.body}"}},
    ]


def _build_is_passing_steps() -> Steps:
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


def _build_submit_job_steps() -> Steps:
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


def _build_find_submitted_job_steps() -> Steps:
    """Find the job of this run by its display name, which has the run's id in it."""
    same = {"condition": "${one.displayName == display_name}", "return": "${one}"}
    each = {"value": "one", "in": "${found}", "steps": [{"compare": {"switch": [same]}}]}
    fields = '${collection + "(name,displayName)"}'
    return [
        {"begin": {"assign": [{"nothing": []}]}},
        {"list": build_read_step_fields("answer", "${url}", filter="${filter}", pageSize=100, fields=fields)},
        {"read": {"assign": [{"found": "${default(map.get(answer, collection), nothing)}"}]}},
        {"each": {"for": each}},
        {"not_found": {"return": None}},
    ]


def _build_wait_for_job_steps() -> Steps:
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
