"""The statements on training pipelines: which job each runs, and the model that it uploaded."""

import sqlite3
from collections.abc import Sequence

from vertex_emulator.database.records import PipelineProgress


class Pipelines:
    """Valid while its transaction is open. A pipeline itself is a row among the jobs."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def set_job(self, pipeline: str, job: str) -> None:
        """Note the id of the job that runs a pipeline's task; the job is added in the same transaction."""
        self._connection.execute("INSERT INTO pipelines (pipeline, job) VALUES (?, ?)", (pipeline, job))

    def set_model(self, pipeline: str, model: str) -> None:
        """Note the name of the model that a pipeline uploaded."""
        self._connection.execute("UPDATE pipelines SET model = ? WHERE pipeline = ?", (model, pipeline))

    def get_progress(self, pipelines: Sequence[str]) -> dict[str, PipelineProgress]:
        """How far pipelines are, by id; those that have no job yet are left out."""
        marks = ", ".join("?" * len(pipelines))
        rows = self._connection.execute(f"SELECT * FROM pipelines WHERE pipeline IN ({marks})", tuple(pipelines))
        return {row["pipeline"]: PipelineProgress(row["job"], row["model"]) for row in rows}

    def get_pipeline_of_job(self, job: str) -> str | None:
        """The pipeline that a job runs the task of."""
        row = self._connection.execute("SELECT pipeline FROM pipelines WHERE job = ?", (job,)).fetchone()
        return row["pipeline"] if row else None
