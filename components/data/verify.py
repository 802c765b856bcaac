"""Whether data is still what its lock says, before a job is submitted: one list for each item of data in a run."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import DataLockUnusable, DataUnreadable, SubmitFailed
from .listing import take
from .lock import FILE, Lock, Snapshot, differences

_lock = threading.Lock()
_taken: dict[tuple[str, str], Snapshot | DataUnreadable] = {}
"""By location and URI. Pulumi starts and ends the process of providers with each run."""
_warned: set[tuple[str, str]] = set()


def verify(
    data: Mapping[str, Mapping[str, Any]], modes: Mapping[str, str], full_location_name: str, prefix: str
) -> None:
    """Raise SubmitFailed, whose message begins with `prefix`, if data differs from its summaries by name.

    `modes` are those of `verify` that are not `error`: with `warn`, a line is printed once in a run.
    """
    for name, summary in sorted(data.items()):
        mode = modes.get(name, "error")
        if mode == "off" or not (problem := _problem(name, summary, full_location_name)):
            continue
        if mode == "error":
            raise SubmitFailed(f"{prefix}: {problem}; or set data.{name}.verify to warn")
        with _lock:
            is_new = (name, problem) not in _warned
            _warned.add((name, problem))
        if is_new:
            print(f"warning: {problem}", flush=True)  # noqa: T201


def _problem(name: str, summary: Mapping[str, Any], full_location_name: str) -> str | None:
    uri = str(summary["uri"])
    now = _now(uri, full_location_name)
    if isinstance(now, DataUnreadable):
        return f"data.{name}: cannot be compared with {FILE}: {now}"
    if now.digest == summary["digest"]:
        return None
    # The job has no more than a digest of many objects, and the file has names.
    try:
        snapshots = Lock(Path.cwd()).snapshots.values()
        before = next((each for each in snapshots if (each.uri, each.digest) == (uri, summary["digest"])), None)
        changes = differences(before, now) if before else ""
    except DataLockUnusable:
        changes = ""
    what = f" ({changes})" if changes else ""
    advice = f"run `vertex-training data lock {name}` to take it as it is"
    return f"data.{name}: {uri} is not what {FILE} says{what}; {advice}"


def _now(uri: str, full_location_name: str) -> Snapshot | DataUnreadable:
    key = full_location_name, uri
    with _lock:
        if key not in _taken:
            try:
                _taken[key] = take(uri, Path.cwd(), full_location_name)
            except DataUnreadable as error:
                _taken[key] = error
        return _taken[key]
