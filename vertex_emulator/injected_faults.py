"""Faults that users inject into jobs to test how their code handles the service's errors."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from fnmatch import fnmatchcase
from typing import Any, get_args, get_type_hints

from vertex_emulator.errors import InvalidFault

FAULT_KINDS = {
    "quota": "the request that creates the job is rejected with 429 RESOURCE_EXHAUSTED",
    "fail": "the job fails with an error code and message, or because a replica exits with a code",
    "preempt": "the job's machines are preempted: a SPOT job is restarted, any other fails for lack of resources",
    "oom": "a replica runs out of memory",
}
_MAX_TIMES = 1000
_TASK = re.compile(r"workerpool[0-9]-[0-9]+")
_CODES = range(1, 17)  # google.rpc.Code without OK


@dataclass(frozen=True)
class InjectedFault:
    """A fault of the next `count` jobs whose display name matches the pattern `name` (`*` and `?` are wildcards).

    It hits a job `after` seconds after its start or restart, `times` times if the job is restarted. Kind `fail` has
    either the `code` and `message` of the job's error, or the `exit_code` of `replica`; kind `oom` has `replica`.
    """

    kind: str
    name: str = "*"
    count: int = 1
    after: float = 0.0
    times: int = 1
    code: int | None = None
    message: str | None = None
    exit_code: int | None = None
    replica: str = "workerpool0-0"

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> "InjectedFault":
        """Parse a fault from JSON. Raises InvalidFault."""
        types = get_type_hints(cls)
        for key, value in body.items():
            if key not in types:
                raise InvalidFault(f"{key} is not one of the fields of a fault: {', '.join(types)}")
            allowed = (int, float) if types[key] is float else get_args(types[key]) or (types[key],)
            if isinstance(value, bool) or not isinstance(value, allowed):
                raise InvalidFault(f"{key} is {value!r}; it must be of type {allowed[0].__name__}")
        if body.get("kind") not in FAULT_KINDS:
            source = f"kind is {body['kind']!r}" if "kind" in body else "kind is missing"
            raise InvalidFault(f"{source}; it must be {', '.join(FAULT_KINDS)}")
        fault = cls(**body)
        fault._validate()
        return fault

    def _validate(self) -> None:
        for field, value in (("count", self.count), ("times", self.times)):
            if not 1 <= value <= _MAX_TIMES:
                raise InvalidFault(f"{field} is {value}; it must be from 1 to {_MAX_TIMES}")
        if not 0 <= self.after < 10**9:
            raise InvalidFault(f"after is {self.after}; it must be a number of seconds, 0 or more")
        if not _TASK.fullmatch(self.replica):
            raise InvalidFault(f"replica is {self.replica}; it must be a task such as workerpool1-0")
        if self.kind != "fail" and (self.code is not None or self.message is not None or self.exit_code is not None):
            raise InvalidFault(f"code, message and exit_code belong to kind fail, not to {self.kind}")
        if self.kind == "fail" and (self.code is None) == (self.exit_code is None):
            raise InvalidFault("kind fail needs one of code (the job's error) and exit_code (a replica's end)")
        if self.code is not None and self.code not in _CODES:
            raise InvalidFault(f"code is {self.code}; it must be a google.rpc.Code, from 1 to 16")
        if self.exit_code is not None and not 1 <= self.exit_code <= 255:
            raise InvalidFault(f"exit_code is {self.exit_code}; it must be from 1 to 255")

    def matches(self, display_name: str) -> bool:
        """Return whether the fault hits a job of that display name."""
        return fnmatchcase(display_name, self.name)

    def to_json_without_defaults(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults, as JSON."""
        default = asdict(InjectedFault(self.kind))
        return {key: value for key, value in asdict(self).items() if key == "kind" or value != default[key]}


FAULT_FIELDS = tuple(field.name for field in fields(InjectedFault))


def describe_fault(fault_json: Mapping[str, Any], remaining_jobs: int) -> str:
    """Describe a fault in JSON form in one line: `fail for the next 2 jobs (name=a-*, code=13)`."""
    rest = ", ".join(f"{key}={value}" for key, value in fault_json.items() if key not in ("kind", "count"))
    jobs = "the next job" if remaining_jobs == 1 else f"the next {remaining_jobs} jobs"
    return f"{fault_json['kind']} for {jobs}{f' ({rest})' if rest else ''}"
