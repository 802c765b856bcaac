from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.vertex_emulator.jobs import LOCATION, custom_job_spec
from vertex_api.names import CUSTOM_JOB
from vertex_emulator.database import Database, Transaction
from vertex_emulator.database.jobs import QueuedJob
from vertex_emulator.database.records import Replica
from vertex_emulator.names import Location
from vertex_emulator.replicas.environment import service_variables
from vertex_emulator.scheduling import lifecycle


def waiting(*jobs: tuple[str, int]) -> list[QueuedJob]:
    """Jobs in order of age, each with its owner and the replicas it needs."""
    return [QueuedJob(f"{owner}-{i}", owner, i, slots) for i, (owner, slots) in enumerate(jobs)]


def chosen(jobs: list[QueuedJob], in_use: dict[str, int] | None = None, capacity: int = 4) -> list[str]:
    return [job.id for job in lifecycle.select(jobs, in_use or {}, capacity)]


def simulated(
    arrivals: Callable[[int], list[tuple[str, int]]], rounds: int, capacity: int = 4, lasts: int = 2
) -> list[list[str]]:
    """Owners of the jobs that begin in each round, when every job takes `lasts` rounds."""
    queue: list[tuple[int, QueuedJob]] = []
    running: list[tuple[int, QueuedJob]] = []
    served: dict[str, int] = {}
    begun = []
    moment = 0
    for now in range(rounds):
        for owner, slots in arrivals(now):
            moment += 1
            queue.append((moment, QueuedJob(f"{owner}-{moment}", owner, moment, slots)))
        running = [(end, job) for end, job in running if end > now]
        in_use: dict[str, int] = {}
        for _, job in running:
            in_use[job.owner] = in_use.get(job.owner, 0) + job.slots
        ranked = [replace(job, since=max(created, served.get(job.owner, 0))) for created, job in queue]
        started = lifecycle.select(sorted(ranked, key=lambda job: job.since), in_use, capacity)
        running += [(now + lasts, job) for job in started]
        for job in started:
            moment += 1
            served[job.owner] = moment
        left = {job.id for job in started}
        queue = [found for found in queue if found[1].id not in left]
        begun.append([job.owner for job in started])
        assert sum(job.slots for _, job in running) <= capacity or len(running) == 1
    return begun


def test_jobs_start_oldest_first_while_there_is_room() -> None:
    assert chosen(waiting(("a", 1), ("b", 2), ("c", 1), ("d", 1))) == ["a-0", "b-1", "c-2"]


def test_nobody_overtakes_job_that_does_not_fit() -> None:
    assert chosen(waiting(("large", 4), ("small", 1)), {"x": 1}) == []


def test_oversized_job_runs_alone() -> None:
    assert chosen(waiting(("huge", 9), ("small", 1))) == ["huge-0"]
    assert chosen(waiting(("huge", 9)), {"x": 1}) == []


def test_owner_with_least_room_is_next() -> None:
    trials = [("study", 1)] * 6
    assert chosen(waiting(*trials, ("late", 1)), {"study": 3}) == ["late-6"]
    assert chosen(waiting(*trials, ("late", 1))) == ["study-0", "late-6", "study-1", "study-2"]


def test_two_studies_share_machine_whichever_came_first() -> None:
    begun = simulated(lambda now: [("first", 1)] * 4 + ([("second", 1)] * 4 if now else []), 20)
    later = [owner for started in begun[4:] for owner in started]
    assert later.count("first") == later.count("second")


def test_large_study_does_not_starve_later_jobs() -> None:
    begun = simulated(lambda now: [("study", 1)] * 50 if now == 0 else [(f"job{now}", 1)] if now == 5 else [], 9)
    assert "job5" in [owner for started in begun[5:8] for owner in started]


def test_jobs_do_not_starve_study() -> None:
    stream = [[(f"job{now}.{i}", 1) for i in range(2)] for now in range(40)]  # as many as the machine can do
    begun = simulated(lambda now: stream[now] + ([("study", 1)] * 100 if now == 10 else []), 40)
    turns = [now for now, started in enumerate(begun) if "study" in started]
    assert len(turns) >= 5
    assert max(later - turn for turn, later in pairwise(turns)) <= 10


def test_small_jobs_and_studies_starve_no_large_job() -> None:
    def arrivals(now: int) -> list[tuple[str, int]]:
        if now == 0:
            return [("study", 1)] * 100
        return [("large", 4)] if now == 5 else [(f"job{now}", 1)]

    begun = simulated(arrivals, 12)
    assert ["large"] in begun[5:9]


STORE = f"{LOCATION.name}/metadataStores/default"
EXPERIMENT = f"{STORE}/contexts/tuning"


@pytest.fixture
def transaction(tmp_path: Path) -> Iterator[Transaction]:
    """The statements on a database with the experiment `tuning`."""
    database = Database(tmp_path / "emulator.db")
    with database.write() as transaction:
        transaction.lineage.add(STORE, {})
        transaction.lineage.add(EXPERIMENT, {"schemaTitle": "system.Experiment"})
        yield transaction
    database.close()


def run_of(transaction: Transaction, job_id: str, **fields: str) -> dict[str, Any] | None:
    """The fields of the run of a new job; None without one, and then the job's log says so."""
    spec = custom_job_spec(experiment=EXPERIMENT.replace(LOCATION.project_number, "my-project"), **fields)
    job = lifecycle.enqueue(transaction, job_id, CUSTOM_JOB, LOCATION, spec)
    name = f"{EXPERIMENT}-{service_variables(job, Replica(0, 0))['AIP_EXPERIMENT_RUN_NAME']}"
    run = transaction.lineage.get(name)
    said = [each for each in transaction.jobs.messages(job_id) if each.text.startswith("experiment: ")]
    assert bool(said) == (run is None)
    return None if run is None else {**run.spec, "parents": transaction.lineage.parents(run)}


def test_a_job_has_a_run_in_its_experiment(transaction: Transaction) -> None:
    assert run_of(transaction, "1") == {
        "displayName": "1",
        "schemaTitle": "system.ExperimentRun",
        "schemaVersion": "0.0.1",
        "metadata": {
            "_params": {},
            "_metrics": {},
            "_state": "RUNNING",
            "_custom_jobs": [{"custom_job_resource_name": f"{LOCATION.name}/customJobs/1"}],
        },
        "parents": [EXPERIMENT],
    }


def test_jobs_join_the_run_that_they_name(transaction: Transaction) -> None:
    first = transaction.lineage.add(f"{EXPERIMENT}-first", {"metadata": {"_params": {"rate": 0.1}}})
    assert first is not None
    for job_id in ("1", "2"):
        found = run_of(transaction, job_id, experimentRun=first.name)
    assert found is not None and found["metadata"]["_params"] == {"rate": 0.1}
    assert len(found["metadata"]["_custom_jobs"]) == 2
    changed = transaction.lineage.get(first.name)
    assert changed is not None and changed.etag != first.etag


def test_an_experiment_that_is_not_here_is_told(transaction: Transaction) -> None:
    transaction.lineage.delete(EXPERIMENT)
    assert run_of(transaction, "1") is None
    other = Location("other", "us-central1")
    transaction.lineage.add(f"{other.name}/metadataStores/default/contexts/theirs", {})
    spec = custom_job_spec(experiment=f"{other.name}/metadataStores/default/contexts/theirs")
    job = lifecycle.enqueue(transaction, "2", CUSTOM_JOB, LOCATION, spec)
    assert transaction.lineage.get(f"{other.name}/metadataStores/default/contexts/theirs-{job.id}") is None
