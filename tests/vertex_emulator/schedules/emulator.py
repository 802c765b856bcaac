"""The emulator in memory with schedules: a test moves their clock, and containers end at once."""

from pathlib import Path
from typing import Any

from tests.vertex_emulator.fakes import Clock, Emulator, Machine
from tests.vertex_emulator.jobs import LOCATION, custom_job_spec, tuning_job_spec
from tests.vertex_emulator.scheduling.steps import mounted, reports
from vertex_emulator.api.schedule_loop import ScheduleLoop
from vertex_emulator.api.schedules import ScheduleService
from vertex_emulator.database.records import Job
from vertex_emulator.replicas.spec import ReplicaSpec
from vertex_emulator.times import parse_time

OUTPUTS = "gs://bucket/nightly/${run.id}"


class SchedulingEmulator(Emulator):
    """An emulator whose loop of schedules has no thread."""

    def start(self) -> None:
        super().start()
        self.loop = ScheduleLoop(self.database, self.jobs)
        self.schedules = ScheduleService(self.database, self.jobs, lambda: None)

    def put(self, schedule: str = "nightly", **fields: Any) -> Any:
        body = {"cron": "0 2 * * *", "jobs": [scheduled_job("train")], **fields}
        return self.schedules.put(LOCATION, schedule, body)

    def get(self, schedule: str = "nightly") -> Any:
        return self.schedules.get(LOCATION, schedule)

    def runs(self, schedule: str = "nightly") -> list[tuple[str, str]]:
        """Time and state of each run, the oldest first."""
        return [(run["scheduleTime"], run["state"]) for run in reversed(self.get(schedule)["runs"])]

    def move_clock(self, time: str) -> None:
        self.schedules.set_clock({"time": time})

    def let_clock_pass_while_down(self, time: str) -> None:
        with self.database.write() as transaction:
            transaction.settings.set("schedules_clock", str(parse_time(time)))

    def finish_runs(self) -> None:
        """Let all runs come to their ends."""
        while True:
            self.loop.advance()
            self.run_jobs()
            with self.database.read() as transaction:
                if not transaction.schedules.unfinished_runs():
                    return

    def run_jobs(self) -> None:
        """Let all jobs come to their ends."""
        Emulator.run(self)

    def all_jobs(self) -> list[Job]:
        """All jobs but those of trials, the oldest first."""
        with self.database.read() as transaction:
            return [*transaction.jobs.created()][::-1]


def nights(first: int, last: int) -> list[tuple[str, str]]:
    """The runs of a schedule at 02:00 that have succeeded, from a day of November to another one."""
    return [(f"2026-11-{day}T02:00:00Z", "SUCCEEDED") for day in range(first, last + 1)]


def create_emulator(folder: Path, **machine: Any) -> SchedulingEmulator:
    return SchedulingEmulator(folder, Machine(Clock(), **machine))


def scheduled_job(name: str, **container: Any) -> dict[str, Any]:
    """A custom job of a schedule, with an output folder for each run."""
    spec = custom_job_spec(baseOutputDirectory={"outputUriPrefix": f"{OUTPUTS}/{name}"})
    spec["displayName"] = f"{name}-${{run.id}}"
    spec["jobSpec"]["workerPoolSpecs"][0]["containerSpec"] |= container
    return {"name": name, "collection": "customJobs", "body": spec}


def scheduled_search(name: str) -> dict[str, Any]:
    """A tuning job of a schedule."""
    spec = tuning_job_spec(trials=2)
    spec["trialJobSpec"]["baseOutputDirectory"] = {"outputUriPrefix": f"{OUTPUTS}/{name}"}
    return {"name": name, "collection": "hyperparameterTuningJobs", "body": spec}


def reports_if_trial(spec: ReplicaSpec) -> int:
    """A trainer that reports `acc` in trials."""
    return reports(spec) if mounted(spec, "/tmp/hypertune") else 0


def output_folder(job: Job) -> str:
    """The base output directory of a job."""
    field = job.spec.get("jobSpec") or job.spec["trialJobSpec"]
    return str(field["baseOutputDirectory"]["outputUriPrefix"])
