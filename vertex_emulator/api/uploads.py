"""What jobs upload to tensorboards of this emulator: the scalars of their event files, stored when somebody looks.

A job with such a tensorboard has an experiment in it, named by its own number. On the service a program uploads while
the job runs; here, each request about what is in the experiment first stores what the job has written since the last.
"""

import math
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from threading import Lock
from typing import TYPE_CHECKING, Any

from vertex_emulator import event_files
from vertex_emulator.database import Database, Transaction
from vertex_emulator.errors import InvalidBucketUri
from vertex_emulator.gcs.files import BucketTree
from vertex_emulator.names import BOARD_PATTERNS, new_id
from vertex_emulator.times import format_time

if TYPE_CHECKING:
    from vertex_api.events import Records, Scalar

_BELOW_EXPERIMENT = re.compile(rf"({BOARD_PATTERNS[1]})/")
_NO_ID = re.compile("[^a-z0-9-]")
_MAX_ID = 128
_MAX_POSITIONS = 20_000  # of files; what is read again is stored again, in the same places


class JobUploads:
    """Stores the scalars of jobs. Of a file that is replaced by a longer one, the first part is not read again."""

    def __init__(self, database: Database, tree: BucketTree) -> None:
        self._database = database
        self._tree = tree
        self._positions: dict[str, int] = {}
        self._lock = Lock()

    def update(self, name: str) -> None:
        """Store what is new, some 2 MB at most, for a run, a time series or a collection of these."""
        match = _BELOW_EXPERIMENT.match(name)
        if match is None:
            return
        with self._lock:
            for uri in self._folders(match[1]):
                self._store(match[1], uri)

    def _folders(self, experiment: str) -> list[str]:
        with self._database.read() as transaction:
            job = transaction.jobs.get(experiment.rpartition("/")[2])
            found = transaction.tensorboards.get(experiment)
            if job is None or found is None or found.spec.get("source") != job.name:
                return []
            return [folder.uri for folder in event_files.log_folders(transaction, job)]

    def _store(self, experiment: str, folder_uri: str) -> None:
        # These take 0.1 s, which the emulator's start has not to spend.
        from vertex_emulator.curves import MAX_BYTES_PER_READ, read_records

        remaining = MAX_BYTES_PER_READ
        for file in event_files.find(self._tree, folder_uri):
            begin = self._positions.get(file.uri, 0)
            try:
                with closing(self._tree.open(file.uri)) as opened:
                    begin = begin if begin <= os.fstat(opened.fileno()).st_size else 0
                    batch = read_records(opened, begin, remaining)
            except (OSError, InvalidBucketUri):
                continue  # the job's page says why
            if found := _scalars(batch):
                with self._database.write() as transaction:
                    _add(transaction, experiment, file.run, found)
            if len(self._positions) >= _MAX_POSITIONS:
                self._positions.clear()
            self._positions[file.uri] = batch.end_offset
            remaining -= batch.read_bytes
            if remaining <= 0:
                return


def _scalars(batch: "Records") -> "dict[str, list[Scalar]]":
    """Return the scalars of records by tag."""
    from vertex_api.events import scalars
    from vertex_emulator.curves import MAX_TAGS

    found: dict[str, list[Scalar]] = {}
    for record in batch.records:
        with suppress(ValueError):
            for scalar in scalars(record):
                if scalar.tag in found or len(found) < MAX_TAGS:
                    found.setdefault(scalar.tag, []).append(scalar)
    return found


def _add(
    transaction: Transaction, experiment: str, folder: str, scalars_by_tag: "Mapping[str, Iterable[Scalar]]"
) -> None:
    """Store scalars in the run of a folder below the log folder, which is made if it is missing, as are time series.

    A job has as many of both as its page shows, however often its files are replaced.
    """
    from vertex_emulator.curves import MAX_TAGS

    if transaction.tensorboards.get(experiment) is None:
        return  # deleted meanwhile
    name = folder or "default"  # as Google's uploader calls it
    run = f"{experiment}/runs/{_NO_ID.sub('-', name.lower())[:_MAX_ID]}"
    if transaction.tensorboards.get(run) is None:
        if len(transaction.tensorboards.of(f"{experiment}/runs")) >= event_files.MAX_FOLDERS:
            return
        transaction.tensorboards.add(run, {"displayName": name})
    known = {each.spec["displayName"]: each for each in transaction.tensorboards.of(f"{run}/timeSeries")}
    for tag, points in scalars_by_tag.items():
        series = known.get(tag)
        if series is None and len(known) < MAX_TAGS:
            spec = {"displayName": tag, "pluginName": "scalars", "valueType": "SCALAR"}
            series = transaction.tensorboards.add(f"{run}/timeSeries/{new_id()}", spec)
        if series is not None:
            known[tag] = series
            transaction.tensorboards.write(series, map(_point, points))


def _point(scalar: "Scalar") -> dict[str, Any]:
    value: float | str = scalar.value
    if not math.isfinite(scalar.value):
        value = "NaN" if math.isnan(scalar.value) else "Infinity" if scalar.value > 0 else "-Infinity"
    time = format_time(int(scalar.wall_time * 1_000_000) * 1000)
    return {"step": scalar.step, "wallTime": time, "scalar": {"value": value}}
