"""What the page asks of experiments: the runs of one with all that they have recorded, and the curves of some."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.vertex_emulator.jobs import LOCATION, custom_job_spec
from vertex_api.names import CUSTOM_JOB
from vertex_emulator.database import Database
from vertex_emulator.database.lineage import CHILD
from vertex_emulator.errors import ApiError
from vertex_emulator.page import experiments

STORE = f"{LOCATION.name}/metadataStores/default"
NAME = f"{STORE}/contexts/tuning"
BOARD = f"{LOCATION.name}/tensorboards/1"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A database with the experiment `tuning`, which has no runs."""
    database = Database(tmp_path / "emulator.db")
    with database.write() as transaction:
        spec = {"schemaTitle": "system.Experiment", "metadata": {"backing_tensorboard_resource": BOARD}}
        transaction.lineage.add(NAME, spec)
    yield database
    database.close()


def add_run(database: Database, name: str, *losses: float | str, **metadata: Any) -> None:
    """A run with a point of its time series `loss` for each value."""
    with database.write() as transaction:
        fields = {"displayName": name, "schemaTitle": "system.ExperimentRun", "metadata": metadata}
        run, experiment = transaction.lineage.add(f"{NAME}-{name}", fields), transaction.lineage.get(NAME)
        assert run is not None and experiment is not None
        transaction.lineage.connect(experiment, run, CHILD)
        if losses:
            board = f"{BOARD}/experiments/tuning/runs/{name}"
            transaction.lineage.add(f"{STORE}/artifacts/tuning-{name}-tb-run", {"metadata": {"resourceName": board}})
            fields = {"displayName": "loss", "valueType": "SCALAR"}
            series = transaction.tensorboards.add(f"{board}/timeSeries/1", fields)
            assert series is not None
            points = [{"step": step, "scalar": {"value": value}} for step, value in enumerate(losses)]
            transaction.tensorboards.write(series, points)


def shown(database: Database) -> Any:
    found = experiments.shown(database, NAME)
    assert found is not None
    return found


def test_runs_have_what_they_have_recorded(database: Database) -> None:
    with database.write() as transaction:
        job = transaction.jobs.add("1", CUSTOM_JOB, LOCATION, custom_job_spec())
    jobs = [{"custom_job_resource_name": name} for name in (job.name, f"{job.name}0", job.name.replace("/1", "/x/1"))]
    add_run(database, "first", 1.0, 0.5, _params={"rate": 0.1}, _metrics={"accuracy": 1}, _state="COMPLETE")
    add_run(database, "second", _custom_jobs=jobs)
    add_run(database, "odd", "NaN", _params=[1], _metrics={"a": None, "b": "text"}, _state=3, _custom_jobs=["x", 1])
    found = shown(database)
    assert (found["id"], found["tensorboard"], found["left_out"]) == ("tuning", BOARD, 0)
    odd, second, first = found["runs"]
    assert (first["name"], first["params"], first["metrics"]) == ("first", {"rate": 0.1}, {"accuracy": 1})
    assert (first["series"], first["jobs"]) == ({"loss": 0.5}, [])
    state = "JOB_STATE_QUEUED"
    assert second["jobs"] == [{"id": "1", "collection": "customJobs", "state": state}]
    assert (odd["params"], odd["metrics"], odd["series"], odd["jobs"]) == ({}, {"b": "text"}, {"loss": "NaN"}, [])
    assert [run["state"] for run in found["runs"]] == ["STATE_UNSPECIFIED", "STATE_UNSPECIFIED", "COMPLETE"]
    (listed,) = experiments.listed(database)
    assert (listed["name"], listed["runs"]) == (NAME, 3)
    assert experiments.shown(database, f"{NAME}-first") is None


def test_curves_are_those_of_the_runs(database: Database) -> None:
    for name in ("a", "b", "c"):
        add_run(database, name, 1.0, "NaN", 0.25)
    add_run(database, "none")
    lines = experiments.curves(database, NAME, ["tuning-a", "tuning-c", "tuning-none", "missing"])["lines"]
    assert [(line["tag"], line["run"], line["steps"], line["values"]) for line in lines] == [
        ("loss", name, [0, 2], [1.0, 0.25]) for name in ("a", "c")
    ]
    assert lines[0]["not_finite"] == {"count": 1, "step": 1}
    with pytest.raises(ApiError, match="run is given 7 times; at most 6"):
        experiments.curves(database, NAME, ["a"] * 7)


def test_a_thousand_runs_take_few_statements(database: Database) -> None:
    statements: list[str] = []

    def asked(count: int) -> int:
        for number in range(len(shown(database)["runs"]), count):
            add_run(database, f"run-{number:04}", 0.5, _params={"rate": number}, _metrics={"accuracy": 0.5})
        database._connection.set_trace_callback(statements.append)
        statements.clear()
        assert len(shown(database)["runs"]) == count
        database._connection.set_trace_callback(None)
        return len(statements)

    assert (asked(10), asked(1000)) == (5, 7)  # two kinds are read by the names of 500 runs at a time
