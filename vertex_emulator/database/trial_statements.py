"""The statements on the trials of studies."""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic_core import from_json

from vertex_emulator.database.records import Trial
from vertex_emulator.database.statement_base import Statements, encode_values


class TrialStatements(Statements):
    """The statements on trials; the job of a trial is a row among the jobs."""

    def list_trials(self, study_id: str, except_numbers: Iterable[int] = ()) -> list[Trial]:
        """List the trials of a tuning job by number, but for those with `except_numbers`."""
        return list(self.iterate_trials(study_id, except_numbers))

    def iterate_trials(self, study_id: str, except_numbers: Iterable[int] = ()) -> Iterator[Trial]:
        """Yield the trials that `list_trials` lists, one at a time."""
        query = (
            "SELECT * FROM trials WHERE study = ? AND number NOT IN (SELECT value FROM json_each(?)) ORDER BY number"
        )
        rows = self._connection.execute(query, (study_id, json.dumps(list(except_numbers))))
        return map(_parse_trial, rows)

    def list_trials_omitting_measurements(self, study_id: str) -> list[Trial]:
        """List the trials of a tuning job by number, as if they had no measurements, which take most of the time."""
        query = (
            "SELECT study, number, state, parameters, job, started, ended, '[]' AS measurements, final,"
            " infeasible_reason FROM trials WHERE study = ? ORDER BY number"
        )
        return [_parse_trial(row) for row in self._connection.execute(query, (study_id,))]

    def list_trial_measurements(self, study_id: str, number: int) -> tuple[dict[str, Any], ...]:
        """List the measurements of a trial."""
        query = "SELECT measurements FROM trials WHERE study = ? AND number = ?"
        row = self._connection.execute(query, (study_id, number)).fetchone()
        return tuple(from_json(row["measurements"])) if row else ()

    def count_ended_trials(self, study_id: str) -> int:
        """Count the trials of a tuning job that have ended."""
        query = "SELECT count(*) FROM trials WHERE study = ? AND state IN ('SUCCEEDED', 'INFEASIBLE')"
        return int(self._connection.execute(query, (study_id,)).fetchone()[0])

    def add_trial(self, trial: Trial) -> None:
        """Add a trial; add its job in the same transaction."""
        names = ("study", "number", "state", "parameters", "job")
        self._insert_row("trials", **{name: getattr(trial, name) for name in names})

    def update_trial(self, trial: Trial) -> None:
        """Write a trial's state, times and measurements."""
        names = ("state", "started", "ended", "measurements", "final", "infeasible_reason")
        values = encode_values(getattr(trial, name) for name in names)
        query = f"UPDATE trials SET {', '.join(f'{name} = ?' for name in names)} WHERE study = ? AND number = ?"
        self._connection.execute(query, (*values, trial.study, trial.number))


def _parse_trial(row: sqlite3.Row) -> Trial:
    # By position, as a page of studies has thousands: the columns of the table are the fields of the record.
    study, number, state, parameters, job, started, ended, measurements, final, infeasible_reason = row
    measurement_list = tuple(from_json(measurements))
    final = from_json(final) if final else None
    return Trial(
        study, number, state, from_json(parameters), job, started, ended, measurement_list, final, infeasible_reason
    )
