from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from vertex_emulator.database.jobs import QueuedJob
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
