"""Executions of a workflow, one after another, and the API by which it finds its own: Google's syntax reference."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

from tests.standins.workflows.expressions import FUNCTIONS, WorkflowError, evaluate

_RESERVED = {name.partition(".")[0] for name in FUNCTIONS} | {"sys", "http", "json", "list", "keys", "if"}
MAX_STEPS = 100_000
NOON = 1_800_000_000.0
"""When the first execution begins."""


class Http(Protocol):
    """What sends the requests of workflows. It raises WorkflowError for an answer of 400 or more, or for none."""

    def __call__(self, method: str, url: str, query: Mapping[str, Any], body: Any) -> Any: ...


@dataclass
class Clock:
    """The time of all executions, which passes only while one sleeps."""

    now: float = NOON


class _Return(Exception):
    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


@dataclass
class Scope:
    """Variables. A block sees those around it; what it sets first is gone after it."""

    variables: dict[str, Any]
    outer: Scope | None = None

    def all(self) -> dict[str, Any]:
        return {**(self.outer.all() if self.outer else {}), **self.variables}

    def assign(self, target: str, value: Any, key: Any = None) -> None:
        assert target not in _RESERVED, f"{target} is a name of the standard library"
        scope: Scope | None = self
        while scope and target not in scope.variables:
            scope = scope.outer
        if key is None:
            (scope or self).variables[target] = value
        else:
            assert scope
            scope.variables[target][key] = value


@dataclass
class Execution:
    """One execution: `result` once it has returned, or the `error` that it ended with."""

    id: str
    started: float
    result: Any = None
    error: Any = None
    steps: int = 0

    @property
    def is_active(self) -> bool:
        return self.result is None and self.error is None


@dataclass
class Workflow:
    """A workflow with its executions. `on_sleep` is called with the seconds instead of waiting."""

    source: str
    http: Http
    clock: Clock = field(default_factory=Clock)
    on_sleep: Callable[[float], None] = lambda seconds: None
    executions: list[Execution] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def execute(self) -> Execution:
        """Run the workflow to its end. Within `http` and `on_sleep`, another execution may run meanwhile."""
        execution = Execution(f"{next(self._numbers):08x}-1111-2222-3333-444444444444", self.clock.now)
        self.clock.now += 0.001
        self.executions.append(execution)
        try:
            execution.result = _Interpreter(self, execution).call_workflow("main", {})
        except WorkflowError as error:
            execution.error = error.value
        return execution

    def answer_executions(self, url: str, query: Mapping[str, Any]) -> Any:
        """The executions API: one execution, or those that a filter selects."""
        if not url.endswith("/executions"):
            (found,) = (each for each in self.executions if url.endswith(f"/executions/{each.id}"))
            return self._show(found)
        match = re.fullmatch(r'state="ACTIVE" AND startTime<"([^"]+)"(?: AND startTime>"([^"]+)")?', query["filter"])
        assert match, query
        selected = [
            shown
            for each in self.executions
            if each.is_active and (shown := self._show(each))["startTime"] < match[1]
            if not match[2] or shown["startTime"] > match[2]
        ]
        return {"executions": selected} if selected else {}

    def _show(self, execution: Execution) -> dict[str, Any]:
        return {"name": f"…/executions/{execution.id}", "startTime": FUNCTIONS["time.format"](execution.started)}


class _Interpreter:
    def __init__(self, workflow: Workflow, execution: Execution) -> None:
        self.workflow, self.execution = workflow, execution
        self.subworkflows: dict[str, Any] = json.loads(workflow.source)
        self.functions: dict[str, Callable[..., Any]] = {
            "sys.get_env": lambda name: {"GOOGLE_CLOUD_WORKFLOW_EXECUTION_ID": execution.id}[name],
            "sys.now": lambda: workflow.clock.now,
            "http.default_retry_predicate": _is_retried_by_default,
        }

    def call_workflow(self, name: str, arguments: Mapping[str, Any]) -> Any:
        subworkflow = self.subworkflows[name]
        names = list(_iterate_step_names(subworkflow["steps"]))
        assert len(set(names)) == len(names), names
        assert set(arguments) == set(subworkflow.get("params", [])), (name, arguments.keys())
        try:
            self.run(subworkflow["steps"], Scope(dict(arguments)))
        except _Return as returned:
            return copy.deepcopy(returned.value)
        return None

    def run(self, steps: list[dict[str, Any]], scope: Scope) -> str | None:
        """Run steps in order; what they jump to, if that is not among them."""
        names = [name for step in steps for name in step]
        at = 0
        while at < len(steps):
            self.execution.steps += 1
            assert self.execution.steps <= MAX_STEPS
            ((_, fields),) = steps[at].items()
            jump = self.run_step(fields, scope)
            if jump is None:
                at += 1
            elif jump in names:
                at = names.index(jump)
            else:
                return jump
        return None

    def run_step(self, fields: dict[str, Any], scope: Scope) -> str | None:
        known = {
            "assign",
            "call",
            "args",
            "result",
            "switch",
            "return",
            "raise",
            "try",
            "retry",
            "except",
            "for",
            "next",
        }
        assert fields.keys() <= known, fields.keys() - known
        if "assign" in fields:
            for entry in fields["assign"]:
                ((target, value),) = entry.items()
                name, _, key = target.partition("[")
                found_key = self.value(f"${{{key.removesuffix(']')}}}", scope) if key else None
                scope.assign(name, self.value(value, scope), found_key)
        elif "call" in fields:
            result = self.call(fields["call"], self.value(fields.get("args", {}), scope))
            if "result" in fields:
                scope.assign(fields["result"], result)
        elif "switch" in fields:
            for case in fields["switch"]:
                condition = self.value(case["condition"], scope)
                assert isinstance(condition, bool), case
                if condition:
                    return self.run_step({key: case[key] for key in case if key != "condition"}, scope)
        elif "try" in fields:
            return self.run_try(fields, scope)
        elif "for" in fields:
            return self.run_loop(fields["for"], scope)
        if "return" in fields:
            raise _Return(self.value(fields["return"], scope))
        if "raise" in fields:
            raise WorkflowError(self.value(fields["raise"], scope))
        return fields.get("next")

    def run_try(self, fields: dict[str, Any], scope: Scope) -> str | None:
        retry = fields.get("retry")
        for attempt in count():
            try:
                return self.run_step(fields["try"], scope)
            except WorkflowError as error:
                if retry and attempt < retry["max_retries"] and self.value(retry["predicate"], scope)(error.value):
                    backoff = retry["backoff"]
                    pause = backoff["initial_delay"] * backoff["multiplier"] ** attempt
                    self.sleep(min(pause, backoff["max_delay"]))
                    continue
                if "except" not in fields:
                    raise
                inner = Scope({fields["except"]["as"]: error.value}, scope)
                return self.run(fields["except"]["steps"], inner)
        raise AssertionError

    def run_loop(self, loop: dict[str, Any], scope: Scope) -> str | None:
        for value in self.value(loop["in"], scope):
            jump = self.run(loop["steps"], Scope({loop["value"]: value}, scope))
            if jump == "break":
                break
            if jump and jump != "continue":
                return jump
        return None

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        if name == "sys.sleep":
            self.sleep(arguments["seconds"])
            return None
        if name in ("http.get", "http.post"):
            assert arguments["auth"] == {"type": "OAuth2"}
            known = {"url", "auth", "query", "body"}
            assert arguments.keys() <= known, arguments.keys() - known
            url, query = arguments["url"], arguments.get("query", {})
            if url.startswith("https://workflowexecutions.googleapis.com/v1/"):
                return {"body": self.workflow.answer_executions(url, query), "code": 200}
            method = name.removeprefix("http.").upper()
            return {"body": self.workflow.http(method, url, query, arguments.get("body")), "code": 200}
        return self.call_workflow(name, arguments)

    def sleep(self, seconds: float) -> None:
        self.workflow.clock.now += seconds
        self.workflow.on_sleep(seconds)

    def value(self, value: Any, scope: Scope) -> Any:
        return evaluate(copy.deepcopy(value), scope.all(), self.functions)


def _iterate_step_names(value: Any) -> Iterator[str]:
    """Names of steps, of inner ones too: they are unique in a subworkflow."""
    if isinstance(value, list):
        for step in value:
            yield from step
            for fields in step.values():
                inner = [fields.get("for", {}), fields.get("except", {}), fields]
                for block in inner:
                    yield from _iterate_step_names(block.get("steps", []))


def _is_retried_by_default(error: Any) -> bool:
    return error.get("code") in (429, 502, 503, 504) or "ConnectionError" in error.get("tags", ())
