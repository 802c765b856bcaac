"""Experiments as the page shows them: the list of all, the runs of one, and the curves of some runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from vertex_emulator.database import Database, Transaction
from vertex_emulator.database.records import Resource
from vertex_emulator.errors import ApiError
from vertex_emulator.representation import api_state, time_fields
from vertex_emulator.times import parse_time

if TYPE_CHECKING:
    from vertex_emulator.curves import Curve

MAX_RUNS = 10_000
MAX_CURVE_RUNS = 6  # as many as can be told apart by colour
_MAX_TAGS = 100
_EXPERIMENT, _RUN = "system.Experiment", "system.ExperimentRun"
_BOARD_RUN = "-tb-run"
"""What Google's SDK adds to a run's id for that of the artifact which names its run of a tensorboard."""


def listed(database: Database) -> list[dict[str, Any]]:
    """Return the experiments of all projects and regions, the newest first: `id`, `place`, `runs` and times."""
    with database.read() as transaction:
        found = transaction.lineage.titled(_EXPERIMENT)
        return [{**_summary(node), "runs": count} for node, count in found]


def shown(database: Database, name: str) -> dict[str, Any] | None:
    """Return an experiment by its full name, None if there is none.

    Beside the fields of a list, it has its `tensorboard` (the name, or null) and `runs`, the newest first, each with
    `id`, `name`, `state`, times, `params`, `metrics`, the last values of its `series`, and its `jobs`; `left_out` are
    more runs than `MAX_RUNS`.
    """
    with database.read() as transaction:
        node = transaction.lineage.get(name)
        if node is None or node.spec.get("schemaTitle") != _EXPERIMENT:
            return None
        contexts = transaction.lineage.of(name.rpartition("/")[0], inside=name)
        runs = [each for each in contexts if each.spec.get("schemaTitle") == _RUN]
        some = runs[:MAX_RUNS]
        last = _last_values(transaction, some)
        metadata = _object(node.spec.get("metadata"))
        return {
            **_summary(node),
            "tensorboard": metadata.get("backing_tensorboard_resource"),
            "runs": [_run(transaction, run, last.get(run.name, {})) for run in some],
            "left_out": len(runs) - len(some),
        }


def curves(database: Database, name: str, ids: Sequence[str]) -> dict[str, Any]:
    """Return the time series of runs of an experiment: `lines` with `tag`, `run` and the fields of `Curve.to_json`.

    Raises ApiError for more runs than `MAX_CURVE_RUNS`.
    """
    from vertex_emulator.curves import Curve  # here, because most pages draw none, and its messages take 20 MB

    if len(ids) > MAX_CURVE_RUNS:
        raise ApiError("INVALID_ARGUMENT", f"run is given {len(ids)} times; at most {MAX_CURVE_RUNS} are read")
    with database.read() as transaction:
        named = transaction.lineage.named(f"{name.rpartition('/')[0]}/{each}" for each in ids)
        boards = _boards(transaction, [*named.values()])
        lines = [
            {"tag": tag, "run": _name(run), **curve.to_json()}
            for run in named.values()
            for tag, curve in islice(_series(transaction, boards.get(run.name), Curve), _MAX_TAGS)
        ]
    return {"lines": sorted(lines, key=lambda line: str(line["tag"]))}


def _summary(node: Resource) -> dict[str, Any]:
    parts = node.name.split("/")
    return {
        "id": node.id,
        "name": node.name,
        "place": {"project": parts[1], "region": parts[3]},
        "description": node.spec.get("description", ""),
        **time_fields(createTime=node.created, updateTime=node.updated),
    }


def _run(transaction: Transaction, node: Resource, series: Mapping[str, float | str]) -> dict[str, Any]:
    metadata = _object(node.spec.get("metadata"))
    state = metadata.get("_state")
    return {
        "id": node.id,
        "name": _name(node),
        "state": state if isinstance(state, str) else "STATE_UNSPECIFIED",
        **time_fields(createTime=node.created, updateTime=node.updated),
        "params": _scalars(metadata.get("_params")),
        "metrics": _scalars(metadata.get("_metrics")),
        "series": series,
        "jobs": [*_jobs(transaction, metadata.get("_custom_jobs"))],
    }


def _name(node: Resource) -> str:
    return str(node.spec.get("displayName") or node.id)


def _jobs(transaction: Transaction, recorded: Any) -> Iterator[dict[str, str]]:
    """Yield the jobs of a run that are still here."""
    for each in recorded if isinstance(recorded, list) else ():
        name = str(_object(each).get("custom_job_resource_name", ""))
        job = transaction.jobs.get(name.rpartition("/")[2])
        if job is not None and job.name == name:
            yield {"id": job.id, "collection": job.kind.collection, "state": api_state(job)}


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _scalars(value: Any) -> dict[str, float | str]:
    """Return the numbers and texts of an object: what programs of any kind have written there."""
    return {key: each for key, each in _object(value).items() if isinstance(each, int | float | str)}


def _boards(transaction: Transaction, runs: Sequence[Resource]) -> dict[str, str]:
    """Return the run of a tensorboard that each of some runs has, by name."""
    artifacts = {run.name: run.name.replace("/contexts/", "/artifacts/") + _BOARD_RUN for run in runs}
    found = transaction.lineage.named(artifacts.values())
    metadata = {name: _object(node.spec.get("metadata")) for name, node in found.items()}
    boards = {run: metadata.get(artifact, {}).get("resourceName") for run, artifact in artifacts.items()}
    return {run: board for run, board in boards.items() if isinstance(board, str)}


def _last_values(transaction: Transaction, runs: Sequence[Resource]) -> dict[str, dict[str, float | str]]:
    """Return the last value of each time series of some runs, by the names of both."""
    boards = _boards(transaction, runs)
    last = transaction.tensorboards.last_scalars(boards.values())
    return {run: last[board] for run, board in boards.items() if board in last}


def _series(transaction: Transaction, board: str | None, curve_type: type[Curve]) -> Iterator[tuple[str, Curve]]:
    from vertex_api.events import Scalar

    for series in transaction.tensorboards.of(f"{board}/timeSeries") if board else ():
        if series.spec.get("valueType") != "SCALAR":
            continue
        curve = curve_type()
        for point in transaction.tensorboards.points(series):
            seconds = (parse_time(point.get("wallTime", "")) or 0) / 1e9
            tag = str(series.spec["displayName"])
            curve.add(Scalar(tag, int(point.get("step", 0)), seconds, float(point["scalar"].get("value", 0.0))))
        yield str(series.spec["displayName"]), curve
