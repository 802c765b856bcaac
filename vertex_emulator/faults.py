"""Faults that users inject into jobs and requests to test how their code handles the service's errors."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from fnmatch import fnmatchcase
from typing import Any, get_args, get_type_hints

from vertex_emulator.errors import InvalidFault

FAULT_KINDS = {
    "quota": "the request that creates the job is rejected with 429 RESOURCE_EXHAUSTED",
    "denied": "the request that creates the job is rejected with 403 PERMISSION_DENIED",
    "fail": "the job fails with an error code and message, or because a replica exits with a code",
    "preempt": "the job's machines are preempted: a SPOT job is restarted, any other fails for lack of resources",
    "oom": "a replica runs out of memory",
    "stockout": "a job with a machine of this type fails before it starts, as its region is out of such machines",
    "second-start": "a container that fails the job is started again in place some time before the job is torn down",
    "debug": "Python in the job's replicas starts under debugpy, and the job's log says where a debugger attaches",
    "rate": "creating and deleting jobs is limited to a number a minute for a project and region (429), until cleared",
    "unavailable": "a request about jobs is rejected with 503 UNAVAILABLE",
    "lost-answer": "a job is created, and the connection is cut before the answer",
    "slow": "the answer to a request about jobs is late by some seconds",
}
RUN_FAULT_KINDS = ("fail", "preempt", "oom", "stockout", "second-start", "debug")
REQUEST_FAULT_KINDS = ("denied", "rate", "unavailable", "lost-answer", "slow")
_OWN_FIELDS = {"per_minute": "rate", "seconds": "slow", "machine_type": "stockout", "run_for": "second-start"}
"""Fields that one kind of fault needs, and that belong to no other."""
_DEFAULTS_BY_KIND: Mapping[str, dict[str, Any]] = {"second-start": {"after": 70.0, "run_for": 30.0}}
"""Defaults that differ from those of all kinds: the first is a capture's (docs/fidelity.md), the second is inferred."""
_HIT_BY_KIND = {"unavailable": "request", "slow": "request"}
MAX_PENDING_FAULTS = 100
_MAX_TEXTS = {"name": 256, "message": 10_000, "replica": 32, "machine_type": 128}
"""The most characters of a text. The work of `fnmatch` on a pattern grows with the square of its length."""
DEFAULT_DEBUG_PORT = 5678
"""The port of debugpy's documentation, which editors propose."""
_TASK = re.compile(r"workerpool[0-9]-[0-9]+")
_SECONDS = (0, 10**9 - 1, "a number of seconds, 0 or more")
_RANGES = {
    "count": (1, 1000, ""),
    "times": (1, 1000, ""),
    "after": _SECONDS,
    "run_for": _SECONDS,
    "port": (1, (1 << 16) - 1, ""),
    "per_minute": (1, 10**6, ""),
    "seconds": (0, 600, ""),
    "code": (1, 16, "a google.rpc.Code, from 1 to 16"),  # without OK
    "exit_code": (1, 255, ""),
}
"""The least and the most value of a number, and how they are told."""


@dataclass(frozen=True)
class InjectedFault:
    """A fault of the next `count` jobs whose display name matches the pattern `name` (`*` and `?` are wildcards).

    It hits a job `after` seconds after its start or restart, `times` times if the job is restarted. Kind `fail` has
    either the `code` and `message` of the job's error, or the `exit_code` of `replica`; kind `oom` has `replica`, too,
    by default the first. Kind `stockout` hits jobs with a machine of `machine_type`, `after` seconds after their
    creation. Kind `second-start` starts a container again in place whose exit fails the job, `after` seconds later, and
    tears the job down `run_for` seconds after that; only that of `replica`, by default any. Kind `debug` debugs
    `replica`, by default all of them, on ports of this machine from `port` on; with `wait`, Python waits for a debugger
    before it runs the program.

    Faults of requests: kind `rate` stays until it is cleared and allows `per_minute` submissions; `unavailable` and
    `slow`, by `seconds`, hit the next `count` requests about jobs, whatever their names.
    """

    kind: str
    name: str = "*"
    count: int = 1
    after: float = 0.0
    times: int = 1
    code: int | None = None
    message: str | None = None
    exit_code: int | None = None
    replica: str | None = None
    per_minute: int | None = None
    seconds: float | None = None
    machine_type: str | None = None
    run_for: float | None = None
    wait: bool = False
    port: int | None = None

    @property
    def task_name(self) -> str:
        """The replica that a fault of one replica hits."""
        return self.replica or "workerpool0-0"

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> "InjectedFault":
        """Parse a fault from JSON. Raises InvalidFault."""
        types = get_type_hints(cls)
        for key, value in body.items():
            if key not in types:
                raise InvalidFault(f"{key} is not one of the fields of a fault: {', '.join(types)}")
            allowed = get_args(types[key]) or (types[key],)
            type_name = allowed[0].__name__
            allowed = (int, *allowed) if float in allowed else allowed
            if isinstance(value, bool) != (bool in allowed) or not isinstance(value, allowed):
                raise InvalidFault(f"{key} is {value!r}; it must be of type {type_name}")
        if body.get("kind") not in FAULT_KINDS:
            source = f"kind is {body['kind']!r}" if "kind" in body else "kind is missing"
            raise InvalidFault(f"{source}; it must be {', '.join(FAULT_KINDS)}")
        fault = cls(**_DEFAULTS_BY_KIND.get(body["kind"], {}) | dict(body))
        fault._validate()
        return fault

    def _validate(self) -> None:
        for field, most in _MAX_TEXTS.items():
            text = getattr(self, field)
            if text is not None and len(text) > most:
                raise InvalidFault(f"{field} has {len(text)} characters; it must have {most} at most")
        if self.replica is not None and not _TASK.fullmatch(self.replica):
            raise InvalidFault(f"replica is {self.replica}; it must be a task such as workerpool1-0")
        if self.kind != "fail" and (self.code is not None or self.message is not None or self.exit_code is not None):
            raise InvalidFault(f"code, message and exit_code belong to kind fail, not to {self.kind}")
        if self.kind == "fail" and (self.code is None) == (self.exit_code is None):
            raise InvalidFault("kind fail needs one of code (the job's error) and exit_code (a replica's end)")
        for field, kind in _OWN_FIELDS.items():
            value = getattr(self, field)
            if (value is not None) != (self.kind == kind):
                raise InvalidFault(f"kind {self.kind} {f'needs {field}' if value is None else f'has no {field}'}")
        if self.kind != "debug" and (self.wait or self.port is not None):
            raise InvalidFault(f"wait and port belong to kind debug, not to {self.kind}")
        if self.kind in ("rate", "unavailable", "slow") and self.name != "*":
            raise InvalidFault(f"kind {self.kind} hits requests of any job and has no name")
        for field, (least, most, what) in _RANGES.items():
            value = getattr(self, field)
            if value is not None and not least <= value <= most:
                raise InvalidFault(f"{field} is {value}; it must be {what or f'from {least} to {most}'}")

    def matches(self, display_name: str) -> bool:
        """Return whether the fault hits a job of that display name."""
        return fnmatchcase(display_name, self.name)

    def to_json(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults, as JSON."""
        # Without a check: some kinds need more fields.
        default = asdict(InjectedFault(self.kind, **_DEFAULTS_BY_KIND.get(self.kind, {})))
        return {key: value for key, value in asdict(self).items() if key == "kind" or value != default[key]}


@dataclass(frozen=True)
class UnnoticedFailure:
    """The failure of a job under kind `second-start` until its tear-down begins: `code` and `message` are its error.

    The container of `task_name` exited at `exited` (ns); if it has started later, that is its second start.
    """

    task_name: str
    exited: int
    code: int
    message: str


FAULT_FIELDS = tuple(field.name for field in fields(InjectedFault))


def describe_fault(fault_json: Mapping[str, Any], remaining_jobs: int) -> str:
    """Describe a fault in JSON form in one line: `fail for the next 2 jobs (name=a-*, code=13)`."""
    rest = ", ".join(f"{key}={value}" for key, value in fault_json.items() if key not in ("kind", "count"))
    kind = fault_json["kind"]
    hit = _HIT_BY_KIND.get(kind, "job")
    hits = f"for the next {hit}" if remaining_jobs == 1 else f"for the next {remaining_jobs} {hit}s"
    return f"{kind} {'until cleared' if kind == 'rate' else hits}{f' ({rest})' if rest else ''}"
