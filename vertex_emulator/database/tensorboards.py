"""Tensorboards with the experiments, runs and time series in them, all in one table by name; and their points."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic_core import from_json

from vertex_emulator.database.records import Resource, ResourceTable, batches


class Tensorboards(ResourceTable):
    """The statements on tensorboards and all that is in them: experiments, runs and time series."""

    table = "tensorboards"

    def of(self, collection: str) -> list[Resource]:
        """List the resources of a collection, the oldest first."""
        query = "SELECT * FROM tensorboards WHERE collection = ? ORDER BY sequence"
        return [Resource.parse(row) for row in self._connection.execute(query, (collection,))]

    def named(self, collection: str, display_name: str) -> list[str]:
        """List the names of those of a collection that have a display name."""
        query = "SELECT name FROM tensorboards WHERE collection = ? AND json_extract(spec, '$.displayName') = ?"
        return [row["name"] for row in self._connection.execute(query, (collection, display_name))]

    def count_runs(self, board: str) -> int:
        """Count the runs of all experiments of a tensorboard."""
        query = """
            SELECT count(*) AS n FROM tensorboards AS experiment
            JOIN tensorboards AS run ON run.collection = experiment.name || '/runs' WHERE experiment.collection = ?
        """
        row = self._first(query, f"{board}/experiments")
        return int(row["n"]) if row else 0

    def write(self, series: Resource, points: Iterable[Mapping[str, Any]]) -> None:
        """Store canonical TimeSeriesDataPoints, each in place of that of the same step."""
        rows = [
            (series.sequence, point.get("step", 0), point.get("wallTime", ""), json.dumps(point)) for point in points
        ]
        self._connection.executemany("INSERT OR REPLACE INTO tensorboard_points VALUES (?, ?, ?, ?)", rows)

    def points(self, series: Resource) -> list[dict[str, Any]]:
        """List the points of a time series by step."""
        query = "SELECT point FROM tensorboard_points WHERE series = ? ORDER BY step"
        return [from_json(row["point"]) for row in self._connection.execute(query, (series.sequence,))]

    def last_scalars(self, runs: Iterable[str]) -> dict[str, dict[str, float | str]]:
        """Return the last value of each time series of scalars of some runs, by the run's name and the display name."""
        found = dict[str, dict[str, float | str]]()
        for some in batches(dict.fromkeys(f"{run}/timeSeries" for run in runs)):
            query = f"""
                SELECT collection, json_extract(spec, '$.displayName') AS tag, (
                    SELECT point FROM tensorboard_points WHERE series = sequence ORDER BY step DESC LIMIT 1
                ) AS point
                FROM tensorboards WHERE collection IN ({", ".join("?" * len(some))}) AND point IS NOT NULL
                ORDER BY sequence
            """
            for row in self._connection.execute(query, some):
                if (scalar := from_json(row["point"]).get("scalar")) is not None:
                    found.setdefault(row["collection"].rpartition("/")[0], {})[row["tag"]] = scalar.get("value", 0.0)
        return found

    def extent(self, series: Resource) -> tuple[int, str] | None:
        """Return the last step and the last time of a time series; None without points."""
        query = "SELECT max(step) AS step, max(time) AS time FROM tensorboard_points WHERE series = ?"
        row = self._first(query, series.sequence)
        return (row["step"], row["time"]) if row and row["step"] is not None else None
