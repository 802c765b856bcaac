"""The file of a rehearsal: what `vertex-training rehearse --save` writes, and what a comparison and a review read.

It is JSON. Keys without a value are left out, and a reader leaves out keys that it does not know.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Required, cast

from pydantic import Field, NonNegativeInt, ValidationError
from typing_extensions import TypedDict

from vertex_api.messages import show_path, type_adapter, without_unset
from vertex_api.scalars import quote

from .errors import ComponentError

VERSION = 1
MAX_BYTES = 64 << 20
"""A rehearsal of 1,000 jobs, with 100 metrics each, has some 4 MiB."""

Number = Annotated[float, Field(allow_inf_nan=False)]
Seconds = Annotated[float, Field(allow_inf_nan=False, ge=0)]
Outcome = Literal["succeeded", "failed", "skipped"]


class Replica(TypedDict, total=False):
    """What a replica used; `memoryBytes` and `vcpus` are those of its machine type."""

    name: str
    machineType: str
    peakMemoryBytes: NonNegativeInt
    memoryBytes: NonNegativeInt
    cpuSeconds: Seconds
    vcpus: Seconds


class Files(TypedDict, total=False):
    """What a job wrote below its output folder; `names` are the first of them."""

    count: Required[NonNegativeInt]
    bytes: Required[NonNegativeInt]
    names: list[str]


class Base(TypedDict, total=False):
    """What the job that a job is compared with did. An `outcome` is there, whatever else is."""

    outcome: Outcome
    seconds: Seconds
    metrics: dict[str, Number]
    parameters: dict[str, Number | str]
    replicas: list[Replica]
    buckets: list[str]
    hosts: list[str]
    permissions: list[str]


class Drill(TypedDict, total=False):
    """What a job did when a `fault` struck it: whether it went on from a step, and ended as it does undisturbed.

    Without `resumed`, that is not known, and `reason` says why.
    """

    fault: Required[str]
    resumed: bool
    fromStep: int
    lostSteps: int
    outcome: Outcome
    metrics: dict[str, Number]
    sameEnd: bool
    reason: str


class JobReport(TypedDict, total=False):
    """What a rehearsal says of one job. `seconds` are those from its start; `env` are names of variables.

    `metrics` of a search are those of its best trial, and `parameters` what that trial had.

    `missingMetrics` are those that a search or the base needs, and that it did not report, though nothing cut it short.
    `missingInputs` are objects that it names, and that were in no bucket when it had ended. `notes` are what is to be
    said of a job that succeeded.

    `permissions` are those that its calls needed, each with what it is on. Those of `notGranted` are not granted by the
    stack, and what `remedies` say grants them.
    """

    name: Required[str]
    kind: str
    outcome: Required[Outcome]
    reason: str
    seconds: Seconds
    replicas: list[Replica]
    files: Files
    metrics: dict[str, Number]
    parameters: dict[str, Number | str]
    missingMetrics: list[str]
    missingInputs: list[str]
    env: list[str]
    newEnv: list[str]
    buckets: list[str]
    hosts: list[str]
    permissions: list[str]
    newPermissions: list[str]
    notGranted: list[str]
    remedies: list[str]
    base: Base
    drills: list[Drill]
    notes: list[str]


class Rehearsal(TypedDict, total=False):
    """All jobs of a rehearsal, in the order in which they ran; `base` is what they are compared with.

    `inputs` is the folder that objects were taken from.
    """

    version: Required[int]
    project: str
    stack: str
    commit: str | None
    base: str
    inputs: str
    jobs: Required[list[JobReport]]


class RehearsalUnreadable(ComponentError):
    """A file is not that of a rehearsal."""


def load(file: str | Path) -> Rehearsal:
    """Return a rehearsal that was saved. Raises RehearsalUnreadable, and OSError if there is none."""
    with Path(file).open("rb") as stream:
        text = stream.read(MAX_BYTES)
    advice = f"make it with `vertex-training rehearse --save {file}`"
    try:
        found: Any = json.loads(text)
        if found["version"] != VERSION:
            version = quote(found["version"])
            raise RehearsalUnreadable(f"{file}: has version {version}, and this release reads {VERSION}; {advice}")
        # Unset are keys that a writer may leave out; a list of no jobs is none of them.
        whole = {**without_unset(found), "jobs": without_unset(found["jobs"])}
        return cast(Rehearsal, type_adapter(Rehearsal).validate_python(whole, strict=True))
    except ValidationError as error:
        problem = error.errors(include_url=False, include_context=False)[0]
        what = f"{problem['msg'].replace('Input should be', 'must be')} ({quote(problem['input'])})"
        what = "is missing" if problem["type"] == "missing" else what
        raise RehearsalUnreadable(f"{file}: {show_path(problem['loc'])}: {what}; {advice}") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise RehearsalUnreadable(f"{file}: is not the file of a rehearsal; {advice}") from None


def to_json(rehearsal: Rehearsal) -> str:
    """Return the file of a rehearsal, without keys that have no value."""

    def kept(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: kept(each) for key, each in value.items() if each not in ("", None, [], {})}
        return [kept(each) for each in value] if isinstance(value, list) else value

    return json.dumps({**kept(rehearsal), "jobs": kept(rehearsal["jobs"])}, indent=1, ensure_ascii=False) + "\n"


def size(count: int) -> str:
    """Return a number of bytes as people read it, such as `12.0 kB`."""
    for unit, length in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= length:
            return f"{count / length:.1f} {unit}"
    return f"{count} B"
