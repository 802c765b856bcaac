"""The subworkflows that are the same for all schedules: submit a job once, find it, wait for it, read a URL.

Requests are plain HTTP calls: the connectors of Workflows for Vertex AI repeat a create request
whose answer is lost, which would submit a second job. Variables that a block sets are assigned before it, as those
that it sets first are gone after it.
"""

from typing import Any

from vertex_api.job_states import SUCCEEDED_STATES, TERMINAL_STATES

Steps = list[dict[str, Any]]
OAUTH = {"type": "OAuth2"}
RETRY = {
    "predicate": "${http.default_retry_predicate}",
    "max_retries": 8,
    "backoff": {"initial_delay": 2, "max_delay": 120, "multiplier": 2},
}
"""Reading is tried again for some eight minutes, after 429, 502, 503, 504 and lost connections."""
MAX_SUBMISSIONS = 5
_SECONDS_UNTIL_LISTED = 30
"""After a lost answer, a job that was created all the same is listed by then."""
_FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 30, 300
"""A job of seven days takes some 20,000 of the 100,000 steps that an execution may have."""


def build_read_step_fields(result: str, url: str, query: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the fields of a step that calls the subworkflow `read`: `result` is the body of the answer of `url`."""
    return {"call": "read", "args": {"url": url, "query": query or {}}, "result": result}


def build_shared_subworkflows(*, is_sequence: bool) -> dict[str, Any]:
    """Return the subworkflows by name; `wait_for_job` is only for a sequence of jobs."""
    waiting = {"wait_for_job": {"params": ["job", "url", "later"], "steps": _build_wait_for_job_steps()}}
    return {
        "submit_job": {"params": ["job", "url", "collection", "filter", "body"], "steps": _build_submit_job_steps()},
        "find_submitted_job": {
            "params": ["url", "collection", "filter", "display_name"],
            "steps": _build_find_submitted_job_steps(),
        },
        "read": {"params": ["url", "query"], "steps": _build_read_steps()},
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


def _build_submit_job_steps() -> Steps:
    """Post the job. If the answer is lost, post it again only if no such job is there by then."""
    send = {"call": "http.post", "args": {"url": "${url}", "auth": OAUTH, "body": "${body}"}, "result": "answer"}
    failed = [{"keep_failure": {"assign": [{"failure": "${error}"}]}}]
    look_up = {name: f"${{{name}}}" for name in ("url", "collection", "filter")}
    look_up["display_name"] = "${body.displayName}"
    refused = {
        "message": '${job + " is not submitted"}',
        "answer": '${default(map.get(failure, "body"), failure)}',
    }
    return [
        {"begin": {"assign": [{"tries": 0}]}},
        {"begin_try": {"assign": [{"answer": None}, {"failure": None}, {"tries": "${tries + 1}"}]}},
        {"send": {"try": send, "except": {"as": "error", "steps": failed}}},
        {"submitted": {"switch": [{"condition": "${failure == null}", "return": "${answer.body}"}]}},
        # Without a code, the connection was lost.
        {"get_code": {"assign": [{"code": '${default(map.get(failure, "code"), 0)}'}]}},
        {
            "refused": {
                "switch": [{"condition": "${code != 0 and code != 429 and code < 500}", "next": "raise_refusal"}],
            }
        },
        {"wait": {"call": "sys.sleep", "args": {"seconds": _SECONDS_UNTIL_LISTED}}},
        {"look": {"call": "find_submitted_job", "args": look_up, "result": "found"}},
        {"found": {"switch": [{"condition": "${found != null}", "return": "${found}"}]}},
        {"again": {"switch": [{"condition": f"${{tries < {MAX_SUBMISSIONS}}}", "next": "begin_try"}]}},
        {"raise_refusal": {"raise": refused}},
    ]


def _build_find_submitted_job_steps() -> Steps:
    """Find the job of this run by its display name, which has the run's id in it."""
    same = {"condition": "${one.displayName == display_name}", "return": "${one}"}
    each = {"value": "one", "in": "${found}", "steps": [{"compare": {"switch": [same]}}]}
    return [
        {"begin": {"assign": [{"nothing": []}]}},
        {"list": build_read_step_fields("answer", "${url}", {"filter": "${filter}", "pageSize": 100})},
        {"read": {"assign": [{"found": "${default(map.get(answer, collection), nothing)}"}]}},
        {"each": {"for": each}},
        {"not_found": {"return": None}},
    ]


def _build_wait_for_job_steps() -> Steps:
    """Wait until a job has ended, and fail if it has not succeeded."""
    failure = {
        "message": '${job + " has ended as " + state + "; " + later + " is not submitted"}',
        "error": '${default(map.get(answer, "error"), "no error")}',
        "job": "${answer.name}",
    }
    states = [{"succeeded": sorted(SUCCEEDED_STATES)}, {"ended": sorted(TERMINAL_STATES)}]
    return [
        {"begin": {"assign": [{"pause": _FIRST_PAUSE_SECONDS}, *states]}},
        {"look": build_read_step_fields("answer", "${url}")},
        {"read": {"assign": [{"state": "${answer.state}"}]}},
        {"succeeded_by_now": {"switch": [{"condition": "${state in succeeded}", "return": "${answer}"}]}},
        {"failed_by_now": {"switch": [{"condition": "${state in ended}", "next": "raise_failure"}]}},
        {"wait": {"call": "sys.sleep", "args": {"seconds": "${pause}"}}},
        {"grow": {"assign": [{"pause": f"${{math.min(pause * 2, {_MAX_PAUSE_SECONDS})}}"}], "next": "look"}},
        {"raise_failure": {"raise": failure}},
    ]
