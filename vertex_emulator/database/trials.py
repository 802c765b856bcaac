"""What tuning jobs and training pipelines have beside the job itself: trials, and the progress of a pipeline."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pydantic_core import from_json

from vertex_emulator.database.records import PipelineProgress, Trial
from vertex_emulator.database.tables import Table


class Trials(Table):
    """The statements on the trials of a study (a tuning job's id); the job of a trial is a row among the jobs."""

    def all(self, study: str, without: Iterable[int] = ()) -> list[Trial]:
        """List the trials by number, but for those with the numbers `without`."""
        return list(self.iterate(study, without))

    def iterate(self, study: str, without: Iterable[int] = ()) -> Iterator[Trial]:
        """Yield what `all` lists, one at a time."""
        query = (
            "SELECT * FROM trials WHERE study = ? AND number NOT IN (SELECT value FROM json_each(?)) ORDER BY number"
        )
        return map(_parse, self._connection.execute(query, (study, json.dumps(list(without)))))

    def summaries(self, study: str) -> list[Trial]:
        """List the trials by number, as if they had no measurements, which take most of the time."""
        query = (
            "SELECT study, number, state, parameters, job, started, ended, '[]' AS measurements, final,"
            " infeasible_reason FROM trials WHERE study = ? ORDER BY number"
        )
        return [_parse(row) for row in self._connection.execute(query, (study,))]

    def measurements(self, study: str, number: int) -> tuple[dict[str, Any], ...]:
        """List the measurements of a trial."""
        row = self._first("SELECT measurements FROM trials WHERE study = ? AND number = ?", study, number)
        return tuple(from_json(row["measurements"])) if row else ()

    def count_ended(self, study: str) -> int:
        """Count the trials that have ended."""
        query = "SELECT count(*) FROM trials WHERE study = ? AND state IN ('SUCCEEDED', 'INFEASIBLE')"
        return int(self._connection.execute(query, (study,)).fetchone()[0])

    def add(self, trial: Trial) -> None:
        """Add a trial; add its job in the same transaction."""
        names = ("study", "number", "state", "parameters", "job")
        self._insert("trials", **{name: getattr(trial, name) for name in names})

    def update(self, trial: Trial) -> None:
        """Write a trial's state, times and measurements."""
        names = ("state", "started", "ended", "measurements", "final", "infeasible_reason")
        key = {"study": trial.study, "number": trial.number}
        self._update("trials", key, **{name: getattr(trial, name) for name in names})


def _parse(row: sqlite3.Row) -> Trial:
    # By position, as a page of studies has thousands: the columns of the table are the fields of the record.
    study, number, state, parameters, job, started, ended, measurements, final, reason = row
    measured, final = tuple(from_json(measurements)), from_json(final) if final else None
    return Trial(study, number, state, from_json(parameters), job, started, ended, measured, final, reason)


class Pipelines(Table):
    """The statements on the progress of pipelines; a pipeline itself is a row among the jobs."""

    def get(self, pipeline: str) -> PipelineProgress | None:
        """Return the progress of a pipeline; None if it has no job yet."""
        return self.progress([pipeline]).get(pipeline)

    def progress(self, pipelines: Sequence[str]) -> dict[str, PipelineProgress]:
        """Return the progress of pipelines by id, without those that have no job yet."""
        marks = ", ".join("?" * len(pipelines))
        rows = self._connection.execute(f"SELECT * FROM pipelines WHERE pipeline IN ({marks})", tuple(pipelines))
        return {row["pipeline"]: PipelineProgress(row["job"], row["model"], row["best_trial_job"]) for row in rows}

    def of_job(self, job_id: str) -> str | None:
        """Return the id of the pipeline whose task a job runs; None if there is none."""
        row = self._first("SELECT pipeline FROM pipelines WHERE job = ?", job_id)
        return row["pipeline"] if row else None

    def add(self, pipeline: str, job_id: str) -> None:
        """Store which job runs a pipeline's task; add the job in the same transaction."""
        self._insert("pipelines", pipeline=pipeline, job=job_id)

    def set_model(self, pipeline: str, model_name: str) -> None:
        """Store the name of the model that a pipeline uploaded."""
        self._update("pipelines", {"pipeline": pipeline}, model=model_name)

    def set_best_trial(self, pipeline: str, job_id: str) -> None:
        """Store the job of the best trial that a pipeline's tuning job found."""
        self._update("pipelines", {"pipeline": pipeline}, best_trial_job=job_id)
