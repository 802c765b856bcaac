"""Holders: which resources have a job, a schedule or an emulator, by the stack's state and by this run.

Pulumi knows a resource by its URN. Under a new one, it creates the resource first, which takes over what exists, and
then deletes it under the old one. A provider is told of one resource at a time, so this asks the `pulumi` command for
the state, once in a run that deletes or takes over something (half a second), and counts.
"""

import json
import re
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

from . import DYNAMIC_TYPE, engine

Value = TypeVar("Value")
FOUND = "found"
"""The output of a job that was found, not submitted, when nothing proved that no other state has it."""
_EXPORT_SECONDS, _TRIES = 120, 2
_URN = re.compile(r"urn:pulumi:(?P<stack>[^:]+)::(?P<project>[^:]+)::(?P<types>.*?)::(?P<name>.*)")
_TARGETED = re.compile(r"-t\b|--(target|exclude)\b")
_DESTROY = {"destroy", "down", "dn"}


@dataclass(frozen=True)
class State:
    """What a stack's state records of dynamic resources: `ids` with their URNs, and types and `inputs` by URN.

    A resource that is to be deleted after its replacement counts too. `found` are the ids of those whose outputs say
    so. `creating` has those whose creation was under way when a run was killed.
    """

    ids: dict[str, list[str]] = field(default_factory=dict)
    found: set[str] = field(default_factory=set)
    inputs: dict[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    creating: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def is_of(self, stack: str, project: str) -> bool:
        """Return whether this is the state of a stack, as far as its URNs tell."""
        return all(urn.startswith(f"urn:pulumi:{stack}::{project}::") for urns in self.ids.values() for urn in urns)

    @classmethod
    def parse(cls, deployment: Mapping[str, Any]) -> "State":
        """Parse the `deployment` of `pulumi stack export`."""
        ids: dict[str, list[str]] = {}
        found, inputs = set(), {}
        for resource in _dynamic(deployment.get("resources")):
            if "id" in resource:
                ids.setdefault(resource["id"], []).append(resource["urn"])
                inputs[resource["urn"]] = _typed_inputs(resource)
                if (resource.get("outputs") or {}).get(FOUND):
                    found.add(resource["id"])
        pending = [op["resource"] for op in deployment.get("pending_operations") or [] if op.get("type") == "creating"]
        return cls(ids, found, inputs, [_typed_inputs(each) for each in _dynamic(pending)])


def _dynamic(resources: Any) -> Iterator[Mapping[str, Any]]:
    return (each for each in resources or [] if str(each.get("type")).startswith(DYNAMIC_TYPE))


def _typed_inputs(resource: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    return resource["type"].removeprefix(DYNAMIC_TYPE), resource.get("inputs") or {}


def export(stack: str) -> State | None:
    """Return the state of a stack, as `--stack` takes its name, "" for the selected one; None if it is not readable."""
    return _asked(lambda answer: State.parse(answer["deployment"]), "export", *(["--stack", stack] if stack else []))


def stacks() -> list[str] | None:
    """Return all stacks of the backend, `organization/project/stack`; None if they cannot be listed."""
    return _asked(
        lambda answer: [str(each["name"]) for each in answer], "ls", "--all", "--fully-qualify-stack-names", "--json"
    )


def _asked(read: Callable[[Any], Value], verb: str, *options: str) -> Value | None:
    """Return what a command of `pulumi stack` prints as JSON, as it is read; None if it prints no such thing."""
    command = ["pulumi", "stack", verb, "--non-interactive", *options]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_EXPORT_SECONDS)
        return read(json.loads(done.stdout))
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
        return None


def stack_of(urn: str) -> str:
    """Return the stack of a URN, `<pulumi project>/<stack>`; "" if it is none."""
    match = _URN.match(urn)
    return f"{match['project']}/{match['stack']}" if match else ""


class Holders:
    """Counts, in one run, the resources that have something, by its id; `advised` are those that got advice."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        self._states: dict[str, State] = {}
        self._tries: Counter[str] = Counter()
        self._counted: Counter[str] = Counter()
        self._taken: dict[str, list[str]] = {}
        self._seen: set[str] = set()
        self._told: set[str] = set()
        self.advised: set[str] = set()

    def state(self, stack: str) -> State | None:
        """Return the state of `organization/project/stack`, as it was when it was first asked for."""
        with self._reading:
            if stack not in self._states and self._tries[stack] < _TRIES:
                if state := export(stack):
                    self._states[stack] = state
                self._tries[stack] += 1
            return self._states.get(stack)

    def own_state(self, urn: str, id_: str | None = None) -> State | None:
        """Return the state of the stack that a URN names; None if it cannot be read.

        A URN does not have the organization: the stack is that of the command line, the selected one, or one of this
        name. A state is believed if its URNs are of the same stack, and if it records `id_`.
        """
        match = _URN.match(urn)
        if not match:
            return None
        for name in dict.fromkeys((*self._states, *(engine.option("--stack", "-s") or [""]), match["stack"])):
            state = self.state(name)
            if state and state.is_of(match["stack"], match["project"]) and (id_ is None or id_ in state.ids):
                return state
        return None

    def see(self, urn: str) -> None:
        """Record that the state has a resource, so that the stack is not new."""
        self._seen.add(urn)

    def has_seen(self, urn: str) -> bool:
        """Return whether this run has come to a resource that the state has."""
        return urn in self._seen

    def is_new(self, urn: str) -> bool:
        """Return whether a resource that has no state yet comes into a stack which others are in already."""
        return bool(self._seen) and urn not in self._seen

    def moved_from(self, urn: str, id_: str) -> str:
        """Return the URN under which the state has what a new resource is to have; "" if there is none."""
        state = self.own_state(urn) if self.is_new(urn) else None
        recorded = state.ids.get(id_, ()) if state else ()
        return recorded[0] if recorded and urn not in recorded else ""

    def goes_on(self, name: str, urn: str) -> None:
        """Print, once in a run, that something goes on under another URN."""
        if urn not in self._told:
            self._told.add(urn)
            print(f"{name}: goes on as {tail(urn)}", flush=True)  # noqa: T201

    def take(self, urn: str, id_: str) -> None:
        """Record that a resource has been created in this run, for which something was made or taken over."""
        with self._lock:
            self._counted[id_] += 1
            self._taken.setdefault(id_, []).append(urn)

    def has(self, id_: str) -> bool:
        """Return whether a resource has been created in this run that has something."""
        return bool(self._taken.get(id_))

    def release(self, urn: str, id_: str) -> "Release":
        """Record that a resource is deleted in this run, and return who else has what it had."""
        state = self.own_state(urn, id_)
        with self._lock:
            self._counted[id_] -= 1
            recorded = state.ids.get(id_, ()) if state else (urn,)
            others = [other for other in (*self._taken.get(id_, ()), *recorded) if other != urn]
            if self._counted[id_] + len(recorded) > 0:
                return Release(others[0] if others else urn, is_known=True)
        return Release("", is_known=state is not None or _deletes_all())


@dataclass(frozen=True)
class Release:
    """Who else has what a deleted resource had: the URN `holder`, empty for nobody, if that `is_known`."""

    holder: str
    is_known: bool

    @property
    def is_last(self) -> bool:
        """Whether it is known that nobody else has it."""
        return self.is_known and not self.holder


@cache
def current() -> Holders:
    """Return the holders of this process, which Pulumi starts and ends with each run, for all providers."""
    return Holders()


def tail(urn: str) -> str:
    """Return a URN as messages show it: `Squad$CustomJob::train`."""
    match = _URN.match(urn)
    if not match:
        return urn
    types = (re.split("[:/]", each)[-1] for each in match["types"].split("$"))
    return f"{'$'.join(types)}::{match['name']}"


def _deletes_all() -> bool:
    """Return whether the command deletes the whole stack: then it does not matter who else has something."""
    arguments = engine.own_arguments()
    is_targeted = any(_TARGETED.match(argument) for argument in arguments)
    return any(argument in _DESTROY for argument in arguments) and not is_targeted
