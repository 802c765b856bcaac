"""Runs of schedules with faults, in virtual time: no job twice, none left behind, each failure with its cause.

The training API is the emulator in memory: its own code, without HTTP and containers. What is drawn from a seed: the
schedule, faults of requests, an outage, a second delivery, later runs, jobs that fail or are cancelled by hand.
"""

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.components.workflow.schedules import PLACE, request, scheduled, workflow
from tests.standins.workflows.executions import MAX_STEPS, Execution, Timeline, Workflow
from tests.standins.workflows.faults import Faults
from tests.standins.workflows.training_api import MemoryApi
from tests.vertex_emulator.fakes import Clock, Emulator, Machine, use_clock
from tests.vertex_emulator.jobs import LOCATION, custom_job_spec, pool, tuning_job_spec
from tests.vertex_emulator.scheduling.steps import mounted, reports
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE
from vertex_api.pipelines import CUSTOM_TASK
from vertex_api.schedules import NAME_LABEL, SCHEDULE_LABEL, ScheduledJob
from vertex_emulator.api.lists import ListRequest
from vertex_emulator.replicas.spec import ReplicaSpec

SEEDS, SHARES = 200, 8
KINDS = (CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE)


@dataclass
class Night:
    """A delivered time: the executions that it started."""

    executions: list[Execution] = field(default_factory=list)


@dataclass
class World:
    """A schedule with its runs, drawn from a seed."""

    seed: int
    emulator: Emulator

    def __post_init__(self) -> None:
        self.draw = draw = random.Random(self.seed)
        self.id = f"seed-{self.seed}"
        self.timeline = Timeline(self.emulator.machine.clock(), on_turn=self._move_clock)
        self.overlap: Any = draw.choice(["skip", "skip", "allow"])
        self.jobs = self._draw_jobs()
        start = self.timeline.now + 60
        self.has_outage = draw.random() < 0.25
        outage = (start + draw.uniform(-60, 40_000), draw.choice([300, 3000, 10_000])) if self.has_outage else (0, 0)
        rate = draw.choice([0.0, 0.1, 0.2])
        self.faults = Faults(draw, self.timeline, rate, (outage[0], sum(outage)))
        self.api = MemoryApi(self.emulator, PLACE.region)
        self.api.lag = draw.uniform(0, 25)
        self.fails = draw.random() < 0.2
        self.emulator.machine.program = self._exit_code
        schedule = request(self.id, *self.jobs, overlap=self.overlap)
        self.workflow: Workflow = workflow(schedule, self.api, self.timeline)
        self.workflow.send = self.faults
        self.running_at_end: dict[str, set[str]] = {}
        self.nights = [Night() for _ in range(draw.randint(1, 3))]
        self.left = 0
        for night in self.nights:
            for _ in range(draw.choice([1, 1, 2])):
                self._deliver(night, start + draw.uniform(0, 300))
            start += draw.choice([3600, 30_000, 86_400])
        self.cancelled = False
        if draw.random() < 0.2:
            self.timeline.at(self.timeline.now + draw.uniform(60, 40_000), self._cancel_one)
        self.timeline.at(self.timeline.now, self._work)

    def _draw_jobs(self) -> list[ScheduledJob]:
        custom = scheduled(self.id, "train", {**custom_job_spec()})
        after = scheduled(self.id, "after", {**custom_job_spec(pool(args=["${jobs.first.name}"]))})
        tune = tuning_job_spec(trials=2)
        inputs = {"workerPoolSpecs": [pool()]}
        pipeline = {"displayName": "p", "trainingTaskDefinition": CUSTOM_TASK, "trainingTaskInputs": inputs}
        first = self.draw.choice(
            [
                scheduled(self.id, "first", {**custom_job_spec()}),
                scheduled(self.id, "first", tune, HYPERPARAMETER_TUNING_JOB),
                scheduled(self.id, "first", pipeline, TRAINING_PIPELINE),
            ]
        )
        if first.collection == HYPERPARAMETER_TUNING_JOB.collection:
            used = pool(args=["${jobs.first.bestTrial.parameters.x}", "${jobs.first.modelDir}"])
            after = scheduled(self.id, "after", custom_job_spec(used))
        return [first, after] if self.draw.random() < 0.7 else [custom]

    def _deliver(self, night: Night, time: float) -> None:
        def execute() -> None:
            execution = self.workflow.execute()
            night.executions.append(execution)
            self.running_at_end[execution.id] = {job["name"] for job in self.all_jobs() if "endTime" not in job}
            self.left -= 1

        self.left += 1
        self.timeline.at(time, execute)

    def _exit_code(self, spec: ReplicaSpec) -> int:
        if self.fails and self.draw.random() < 0.4:
            return 1
        return reports(spec) if mounted(spec, "/tmp/hypertune") else 0

    def _work(self) -> None:
        """Let containers end, one after another, as long as there is something to do."""
        while self.left or any("endTime" not in job for job in self.all_jobs()):
            self.emulator.run_ready_steps()
            self.timeline.sleep(self.draw.choice([60, 1800, 7000]))
            if ended := self.emulator.machine.finish_one():
                self.emulator.queue.add(ended)
            self.emulator.run_ready_steps()

    def _cancel_one(self) -> None:
        if running := [job for job in self.all_jobs() if "endTime" not in job]:
            _, collection, id_ = self.draw.choice(running)["name"].rsplit("/", 2)
            kind = next(kind for kind in KINDS if kind.collection == collection)
            self.emulator.jobs.cancel(kind, LOCATION, id_)
            self.cancelled = True

    def _move_clock(self) -> None:
        clock = self.emulator.machine.clock
        clock.nanoseconds = max(clock.nanoseconds, int(self.timeline.now * 10**9))

    def all_jobs(self) -> list[Any]:
        """The jobs that runs have submitted, without those that pipelines run."""
        query = ListRequest(f'labels.{SCHEDULE_LABEL}="{self.id}"')
        found = [self.emulator.jobs.list(kind, LOCATION, query).get(kind.collection, []) for kind in KINDS]
        return [job for jobs in found for job in jobs if self._find_execution(job)]

    def _find_execution(self, job: Any) -> Execution | None:
        suffix = job["displayName"].rpartition("-")[2]
        return next((each for each in self.workflow.executions if each.id.startswith(suffix)), None)


@pytest.fixture
def emulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    clock = Clock()
    use_clock(clock, monkeypatch)
    created = Emulator(tmp_path, Machine(clock), capacity=8)
    yield created
    created.database.close()


@pytest.mark.parametrize("share", range(SHARES))
def test_runs_with_faults_submit_each_job_once(emulator: Emulator, share: int) -> None:
    for seed in range(share, SEEDS, SHARES):
        world = World(seed, emulator)
        world.timeline.run()
        require_each_job_once(world)
        require_none_left(world)
        for execution in world.workflow.executions:
            require_cause(world, execution)


def require_each_job_once(world: World) -> None:
    jobs = world.all_jobs()
    assert max(Counter(job["displayName"] for job in jobs).values(), default=1) == 1, world.seed
    for night in world.nights:
        runs = {execution.id[:8] for execution in night.executions}
        for name in {job["labels"][NAME_LABEL] for job in jobs}:
            submitted = [
                job for job in jobs if job["labels"][NAME_LABEL] == name and job["displayName"].split("-")[-1] in runs
            ]
            assert len(submitted) <= 1, (world.seed, submitted)
    if world.overlap == "skip":
        spans = sorted((job["createTime"], job["endTime"]) for job in jobs)
        assert all(one[1] <= other[0] for one, other in pairwise(spans)), (world.seed, spans)


def require_none_left(world: World) -> None:
    """A job that goes on after its execution is one that the execution names."""
    for execution in world.workflow.executions:
        assert execution.state != "ACTIVE" and execution.steps < MAX_STEPS / 10, world.seed
        told = json.dumps(execution.result or execution.error)
        for job in world.all_jobs():
            if job["displayName"].endswith(execution.id[:8]) and job["name"] in world.running_at_end[execution.id]:
                is_unseen = "may be submitted" in told
                assert job["name"] in told or is_unseen, (world.seed, told)
    assert all("endTime" in job for job in world.all_jobs()), world.seed


def require_cause(world: World, execution: Execution) -> None:
    """A run fails by an outage, or as one of its jobs has not succeeded; single faults do not end it."""
    if execution.error is None:
        return
    told, place = json.dumps(execution.error), (world.seed, execution.error, world.faults.raised)
    if "has ended as" in told:
        states = {"FAILED": world.fails, "CANCELLED": world.cancelled}
        assert any(happened and f"_{state}" in told for state, happened in states.items()), place
    elif "has no best trial" in told:
        assert world.fails, place
    else:
        assert world.has_outage and "fault " in told, place
