"""Executions of a workflow, one after another or overlapping, and the API by which it finds its own.

Semantics: Google's syntax reference of Workflows, pages "Steps", "Variables", "Conditions", "Iteration",
"Subworkflows", "Catch errors", "Raise errors", "Retry steps", "Workflow errors" and "Quotas and limits".
"""

from __future__ import annotations

import copy
import heapq
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

from tests.standins.workflows.expressions import FUNCTIONS, WorkflowError, evaluate
from tests.standins.workflows.field_masks import select_fields

_RESERVED = {name.partition(".")[0] for name in FUNCTIONS} | {"sys", "http", "json", "list", "keys", "if"}
_RESERVED |= {"and", "or", "not", "in", "true", "false", "null"}
_CALL = {"call", "args", "result"}
_STEPS = ({"assign"}, _CALL, {"switch"}, {"return"}, {"raise"}, {"try", "retry", "except"}, {"for"})
"""The kinds of steps that are emitted, by their fields; `next` is one of each."""
_CASES = ({"condition", "next"}, {"condition", "return"}, {"condition", "raise"})
_RETRY = {"predicate", "max_retries", "backoff"}
_BACKOFF = {"initial_delay", "max_delay", "multiplier"}
_CALLS: dict[str, set[str]] = {
    "sys.sleep": {"seconds"},
    "http.get": {"url", "auth", "query"},
    "http.post": {"url", "auth", "query", "body"},
}
MAX_STEPS = 100_000
MAX_ENTRIES = 50
"""Assignments of a step, and conditions of a switch."""
MAX_VARIABLE_BYTES = 512 * 1024
NOON = 1_800_000_000.0
"""When the first execution begins."""


class Http(Protocol):
    """What sends the requests of workflows. It raises WorkflowError for an answer of 400 or more, or for none."""

    def __call__(self, method: str, url: str, query: Mapping[str, Any], body: Any) -> Any: ...


@dataclass
class Clock:
    """The time of all executions, which passes only while one sleeps."""

    now: float = NOON

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@dataclass
class Timeline(Clock):
    """A clock for executions that overlap: of all that sleep, the one whose time comes first goes on, alone.

    `on_turn` is called whenever the time has moved.
    """

    on_turn: Callable[[], object] = lambda: None
    _turns: list[tuple[float, int, Callable[[], object]]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)
    _is_idle: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(max_workers=32))
    _begun: list[Future[None]] = field(default_factory=list)

    def at(self, time: float, action: Callable[[], object]) -> None:
        """Let something happen at a time. It may sleep."""

        def act() -> None:
            try:
                action()
            finally:
                self._is_idle.release()

        self._add(time, lambda: self._begun.append(self._pool.submit(act)))

    def sleep(self, seconds: float) -> None:
        wake = threading.Event()
        self._add(self.now + seconds, wake.set)
        self._is_idle.release()
        wake.wait()

    def run(self) -> None:
        """Go on until nothing is left to happen. Raises what an action has raised."""
        while self._turns:
            time, _, go_on = heapq.heappop(self._turns)
            self.now = max(self.now, time)
            self.on_turn()
            go_on()
            self._is_idle.acquire()
        for begun in self._begun:
            begun.result()
        self._pool.shutdown()

    def _add(self, time: float, go_on: Callable[[], object]) -> None:
        heapq.heappush(self._turns, (time, next(self._numbers), go_on))


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
    most_bytes: int = 0

    @property
    def state(self) -> str:
        if self.error is not None:
            return "FAILED"
        return "ACTIVE" if self.result is None else "SUCCEEDED"


@dataclass
class Workflow:
    """A workflow with its executions.

    `on_sleep` is called with the seconds of each pause. `send` is called with the URL and with what gets the answer,
    for each request: it may fail before or after it.
    """

    source: str
    http: Http
    clock: Clock = field(default_factory=Clock)
    on_sleep: Callable[[float], None] = lambda seconds: None
    send: Callable[[str, Callable[[], Any]], Any] = lambda url, get_answer: get_answer()
    executions: list[Execution] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        check_source(json.loads(self.source))

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

    def request(self, method: str, url: str, query: Mapping[str, Any], body: Any) -> Any:
        """The answer of the API that a URL is of, with the `fields` that it asks for."""
        fields = str(query.get("fields", ""))
        rest = {key: value for key, value in query.items() if key != "fields"}
        if url.startswith("https://workflowexecutions.googleapis.com/v1/"):
            assert method == "GET"
            return select_fields(self.answer_executions(url, rest), fields)
        return select_fields(self.http(method, url, rest, body), fields)

    def answer_executions(self, url: str, query: Mapping[str, Any]) -> Any:
        """The executions API: one execution, or those that a filter selects, newest first."""
        if not url.endswith("/executions"):
            (found,) = (each for each in self.executions if url.endswith(f"/executions/{each.id}"))
            return self._show(found, "FULL")
        assert query.keys() <= {"filter", "pageSize", "view"}, query
        conditions = [_read_condition(text) for text in query.get("filter", "").split(" AND ") if text]
        shown = [self._show(each, str(query.get("view", "BASIC"))) for each in reversed(self.executions)]
        selected = [each for each in shown if all(condition(each) for condition in conditions)]
        selected = selected[: int(query.get("pageSize", 100))]
        return {"executions": selected} if selected else {}

    def _show(self, execution: Execution, view: str) -> dict[str, Any]:
        """An execution as the API has it; a BASIC view lacks error and result (REST reference, ExecutionView)."""
        name = f"projects/1/locations/us-central1/workflows/w/executions/{execution.id}"
        basic = {"name": name, "startTime": FUNCTIONS["time.format"](execution.started), "state": execution.state}
        assert view in ("BASIC", "FULL"), view
        if view == "BASIC" or execution.state == "ACTIVE":
            return basic
        if execution.error is not None:
            return {**basic, "error": {"payload": json.dumps(execution.error), "context": "…"}}
        return {**basic, "result": json.dumps(execution.result)}


def _read_condition(text: str) -> Callable[[Mapping[str, Any]], bool]:
    match = re.fullmatch(r'(state|startTime)(=|<|>)"([^"]+)"', text)
    assert match, f"no condition of executions: {text}"
    name, sign, value = match.groups()
    if sign == "=":
        return lambda shown: bool(shown[name] == value)
    assert name == "startTime", text
    return lambda shown: bool(shown[name] < value if sign == "<" else shown[name] > value)


def check_source(subworkflows: Mapping[str, Any]) -> None:
    """Fail for whatever the interpreter does not know, in steps that no test runs too."""
    for name, subworkflow in subworkflows.items():
        assert subworkflow.keys() <= {"params", "steps"}, (name, subworkflow.keys())
        names = list(_check_steps(subworkflow["steps"], subworkflows, is_loop=False))
        assert len(set(names)) == len(names), (name, names)
    assert not subworkflows["main"].get("params")


def _check_steps(steps: list[Any], subworkflows: Mapping[str, Any], *, is_loop: bool) -> Iterator[str]:
    """The names of steps, of inner ones too: they are unique in a subworkflow. A jump stays in its block."""
    targets = {name for step in steps for name in step} | {"end"} | ({"break", "continue"} if is_loop else set())
    for step in steps:
        ((name, fields),) = step.items()
        yield name
        own = fields.keys() - {"next"}
        assert any(own <= kind for kind in _STEPS) and own, f"{name}: no step: {[*fields]}"
        _check_call(fields, subworkflows)
        for entries in (fields.get("assign", []), fields.get("switch", [])):
            assert len(entries) <= MAX_ENTRIES, name
        for case in (fields, *fields.get("switch", [])):
            assert case.get("next") in {None, *targets}, f"{name}: no jump to {case.get('next')} from here"
        assert all(case.keys() in _CASES for case in fields.get("switch", [])), name
        if "try" in fields:
            assert fields["try"].keys() <= _CALL, name
            _check_call(fields["try"], subworkflows)
            yield from _check_handling(fields, subworkflows)
        if "for" in fields:
            assert fields["for"].keys() == {"value", "in", "steps"}, name
            yield from _check_steps(fields["for"]["steps"], subworkflows, is_loop=True)


def _check_call(fields: Mapping[str, Any], subworkflows: Mapping[str, Any]) -> None:
    if name := fields.get("call"):
        given = fields.get("args", {}).keys()
        if name in _CALLS:
            assert given <= _CALLS[name], (name, given)
        else:
            assert given == {*subworkflows[name].get("params", [])}, (name, given)


def _check_handling(fields: Mapping[str, Any], subworkflows: Mapping[str, Any]) -> Iterator[str]:
    assert "retry" in fields or "except" in fields
    if retry := fields.get("retry"):
        assert isinstance(retry, dict) and retry.keys() == _RETRY and retry["backoff"].keys() == _BACKOFF, retry
        predicate = subworkflows[retry["predicate"][2:-1]]
        assert len(predicate["params"]) == 1, retry
    if handler := fields.get("except"):
        assert handler.keys() == {"as", "steps"}, handler
        yield from _check_steps(handler["steps"], subworkflows, is_loop=False)


class _Interpreter:
    def __init__(self, workflow: Workflow, execution: Execution) -> None:
        self.workflow, self.execution = workflow, execution
        self.subworkflows: dict[str, Any] = json.loads(workflow.source)
        self.scopes: list[Scope] = []
        self.functions: dict[str, Callable[..., Any]] = {
            "sys.get_env": lambda name: {"GOOGLE_CLOUD_WORKFLOW_EXECUTION_ID": execution.id}[name],
            "sys.now": lambda: workflow.clock.now,
        }

    def call_workflow(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Run a subworkflow, whose variables are its own; arguments and results are copies."""
        self.scopes.append(Scope(copy.deepcopy(dict(arguments))))
        try:
            self.run(self.subworkflows[name]["steps"], self.scopes[-1])
        except _Return as returned:
            return copy.deepcopy(returned.value)
        finally:
            self.scopes.pop()
        return None

    def run(self, steps: list[dict[str, Any]], scope: Scope) -> str | None:
        """Run steps in order; what they jump to, if that is not among them: the end, or that of a loop's turn."""
        names = [name for step in steps for name in step]
        at = 0
        while at < len(steps):
            self.execution.steps += 1
            assert self.execution.steps <= MAX_STEPS, "StepsLimitExceeded"
            ((_, fields),) = steps[at].items()
            jump = self.run_step(fields, scope)
            if jump is None:
                at += 1
            elif jump in names:
                at = names.index(jump)
            elif jump == "end":
                raise _Return(None)
            else:
                return jump
        return None

    def run_step(self, fields: dict[str, Any], scope: Scope) -> str | None:
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
                self.measure_memory()
        elif "switch" in fields:
            for case in fields["switch"]:
                condition = self.value(case["condition"], scope)
                assert isinstance(condition, bool), case
                if condition:
                    return self.run_step({key: case[key] for key in case if key != "condition"}, scope)
        elif "try" in fields:
            jump = self.run_try(fields, scope)
            if jump is not None:
                return jump
        elif "for" in fields:
            self.run_loop(fields["for"], scope)
        if "return" in fields:
            raise _Return(self.value(fields["return"], scope))
        if "raise" in fields:
            raise WorkflowError(self.value(fields["raise"], scope))
        return fields.get("next")

    def run_try(self, fields: dict[str, Any], scope: Scope) -> str | None:
        """Run a call, again as long as the predicate says so, and then what handles its error."""
        retry = fields.get("retry")
        for attempt in count():
            try:
                return self.run_step(fields["try"], scope)
            except WorkflowError as error:
                if retry and attempt < retry["max_retries"] and self.is_retried(retry["predicate"], error):
                    backoff = retry["backoff"]
                    pause = backoff["initial_delay"] * backoff["multiplier"] ** attempt
                    self.sleep(min(pause, backoff["max_delay"]))
                    continue
                if "except" not in fields:
                    raise
                inner = Scope({fields["except"]["as"]: error.value}, scope)
                return self.run(fields["except"]["steps"], inner)
        raise AssertionError

    def is_retried(self, predicate: str, error: WorkflowError) -> bool:
        name = predicate[2:-1]
        (parameter,) = self.subworkflows[name]["params"]
        found = self.call_workflow(name, {parameter: error.value})
        assert isinstance(found, bool), found
        return found

    def run_loop(self, loop: dict[str, Any], scope: Scope) -> None:
        for value in self.value(loop["in"], scope):
            if self.run(loop["steps"], Scope({loop["value"]: value}, scope)) == "break":
                break

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        if name == "sys.sleep":
            self.sleep(arguments["seconds"])
            return None
        if name in ("http.get", "http.post"):
            assert arguments["auth"] == {"type": "OAuth2"}
            url, query = arguments["url"], arguments.get("query", {})
            method, body = name.removeprefix("http.").upper(), arguments.get("body")
            workflow = self.workflow
            answer = workflow.send(url, lambda: workflow.request(method, url, query, body))
            return {"body": answer, "code": 200, "headers": {}}
        return self.call_workflow(name, arguments)

    def sleep(self, seconds: float) -> None:
        self.workflow.clock.sleep(seconds)
        self.workflow.on_sleep(seconds)

    def measure_memory(self) -> None:
        """Fail as an execution does that holds too much, all variables of all its subworkflows together."""
        held = sum(len(json.dumps(scope.variables).encode()) for scope in self.scopes)
        self.execution.most_bytes = max(self.execution.most_bytes, held)
        if held > MAX_VARIABLE_BYTES:
            tags = ["MemoryLimitExceededError", "ResourceLimitError"]
            raise WorkflowError({"message": f"{held} bytes of variables", "tags": tags})

    def value(self, value: Any, scope: Scope) -> Any:
        return evaluate(copy.deepcopy(value), scope.all(), self.functions)
