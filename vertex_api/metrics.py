"""The metrics of a job that has ended: which numbers count, and how the files are read that have them.

A search's metrics are those that its best trial has reported. Any other run's are in the first `FILE` that there is
under one of its `uris`; if there is none, they are the last TensorBoard scalars that it has written to its log folder.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from vertex_api.jobspec import EVENT_FILE, model_folder, output_folder, output_folders

FILE = "metrics.json"
MAX_BYTES = 64 << 10
MAX_METRICS = 100
MAX_EVENT_FILES = 8
"""Of a run, the newest: it writes one for each of its parts, such as `train` and `validation`."""
MAX_EVENT_BYTES = 256 << 10
"""Of an event file, its last: some 5,000 scalars, which take 0.04 s."""
MAX_LISTED = 1000
"""Objects of a log folder that are looked at."""
MAX_NAME = 128
"""Characters of a metric's name."""
_MAX_NUMBER = 1e300  # also false of NaN and infinity, which Pulumi's state cannot hold


class Found(NamedTuple):
    """The bytes of an object that were asked for, when it was written, in seconds since 1970, and its size."""

    content: bytes
    updated: float
    size: int


class Entry(NamedTuple):
    """An object below a folder: its name from there on, and when it was written, in seconds since 1970."""

    name: str
    updated: float


class Reader(Protocol):
    """What reads objects of a store, in several threads if asked to."""

    def read(self, uri: str, max_bytes: int, *, from_end: bool = False) -> Found | None:
        """Return the first or the last bytes of the object under a URI, None if there is none."""

    def objects(self, folder_uri: str, most: int) -> Sequence[Entry]:
        """Return objects below a folder, none if there is no folder."""


def of_run(reader: Reader, job_spec: Mapping[str, Any], since: float) -> dict[str, float]:
    """Return the metrics of a run with a canonical CustomJobSpec, by name.

    What is older than `since`, in seconds since 1970, is left by an earlier run. Raises ValueError, which says what is
    wrong with the file that counts, and what the reader raises.
    """
    for uri in uris(job_spec):
        file = reader.read(uri, MAX_BYTES + 1)
        if file and file.updated >= since:
            try:
                return parse(file.content)
            except ValueError as error:
                raise ValueError(f"{uri}: {error}") from error
    return _scalars(reader, output_folders(job_spec).get("AIP_TENSORBOARD_LOG_DIR", ""), since)


def _scalars(reader: Reader, folder: str, since: float) -> dict[str, float]:
    """Return the last scalars in the newest event files of a log folder; of several values of one, the newest file's.

    The folders of a file below the log folder are part of the names: `train.loss`.
    """
    listed = reader.objects(folder, MAX_LISTED) if folder else ()
    written = [each for each in listed if EVENT_FILE in each.name.rpartition("/")[2] and each.updated >= since]
    values: dict[str, float] = {}
    for each in sorted(written, key=lambda each: (-each.updated, each.name))[:MAX_EVENT_FILES]:
        from vertex_api import events  # takes 0.1 s

        if file := reader.read(f"{folder}{each.name}", MAX_EVENT_BYTES, from_end=True):
            run = each.name.rpartition("/")[0].replace("/", ".")
            last = events.last(file.content, is_whole=len(file.content) == file.size)
            values = {(f"{run}.{tag}" if run else tag): value for tag, value in last.items()} | values
    return _bounded((name, values[name]) for name in sorted(values))


def uris(job_spec: Mapping[str, Any]) -> list[str]:
    """Return where the file of a run may be, the first that counts first: in the model folder, and above it."""
    folders = (model_folder(job_spec), output_folder(job_spec))
    return [f"{folder.rstrip('/')}/{FILE}" for folder in folders if folder]


def parse(content: bytes) -> dict[str, float]:
    """Return the numbers of a file by name, those of nested objects as `train.loss`; at most `MAX_METRICS`.

    This is the form that DVC and CML read. Whatever is no finite number is left out. Raises ValueError, which says
    what is wrong, for a file that is too long or no JSON object.
    """
    if len(content) > MAX_BYTES:
        raise ValueError(f"it has more than {MAX_BYTES >> 10} KiB")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError("it is not JSON") from error
    if not isinstance(document, dict):
        raise ValueError("it is not an object of names and numbers")
    return _bounded(_numbers(document, ""))


def _bounded(numbers: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Return the first numbers that a state can hold, with names that a terminal can show."""
    found: dict[str, float] = {}
    for name, value in numbers:
        if len(found) == MAX_METRICS:
            break
        if len(name) <= MAX_NAME and name.isprintable() and abs(value) < _MAX_NUMBER:
            found[name] = value
    return found


def _numbers(fields: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, float]]:
    for key, value in fields.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and len(name) < MAX_NAME:
            yield from _numbers(value, f"{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield name, value
