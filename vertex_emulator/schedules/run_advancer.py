"""Advances a run: its jobs are submitted one after another, as the ones before succeed."""

import logging
from dataclasses import dataclass, replace

from vertex_api.names import KINDS, SUCCEEDED_STATES, ResourceName, short_state
from vertex_api.schedules import ScheduledJob
from vertex_emulator.database import Database, Transaction
from vertex_emulator.database.records import Job, RunState, Schedule, ScheduleRun, SubmittedJob
from vertex_emulator.errors import ApiError, ScheduleRunEnded
from vertex_emulator.schedules.job_methods_protocol import JobMethods
from vertex_emulator.schedules.result_reference_values import collect_values_by_result, find_model_dir_or_none

_log = logging.getLogger("vertex_emulator.schedules")


@dataclass(frozen=True)
class RunAdvancer:
    """Advances runs. A job and its record in the run are stored in one transaction, so each is submitted once."""

    database: Database
    jobs: JobMethods

    def advance_and_get_awaited_job_id_or_none(self, run_sequence: int) -> str | None:
        """Submit what a run can submit; return the id of the job that it then waits for, None if it has ended."""
        while True:
            with self.database.read() as transaction:
                run = transaction.schedules.get_run(run_sequence)
                schedule = None if run is None else transaction.schedules.of_run(run)
            if run is None or schedule is None or run.state != "RUNNING":
                return None
            unfinished = (job for job in run.jobs if not _has_succeeded(run, job))
            job = next(unfinished, None)
            if job is None:
                self._end_run(run, "SUCCEEDED")
            elif job.name not in run.submitted:
                self._submit_job_or_end_run(schedule, run, job)
            elif awaited := self._record_job_end_or_get_unfinished_job_id(run, job.name):
                return awaited

    def _submit_job_or_end_run(self, schedule: Schedule, run: ScheduleRun, job: ScheduledJob) -> None:
        # Imported here, as all that only an emulator with schedules needs.
        from vertex_api.schedules import fill_results, fill_run_id, result_references

        def record_submitted_job(transaction: Transaction, created: Job) -> None:
            current = transaction.schedules.get_run(run.sequence)
            if current is None or current.state != "RUNNING" or job.name in current.submitted:
                raise ScheduleRunEnded(f"the run {run.run_id} needs no {job.name} any more")
            transaction.schedules.set_submitted(current, job.name, SubmittedJob(created.name))

        try:
            body = fill_run_id(job.body, run.run_id)
            if result_references(body):
                body = fill_results(body, collect_values_by_result(self.jobs, run))
            if missing := result_references(body):
                names = ", ".join(f"${{jobs.{name}}}" for name in missing)
                self._end_run(run, "FAILED", f"{job.name} was not submitted: there is no {names}")
                return
            self.jobs.create(KINDS[job.collection], schedule.location, body, record_submitted_job)
        except ApiError as error:
            self._end_run(run, "FAILED", f"{job.name} was not submitted: {error.message.strip()}")
        except ScheduleRunEnded as error:
            _log.info("%s", error)

    def _record_job_end_or_get_unfinished_job_id(self, run: ScheduleRun, name: str) -> str | None:
        """Store how a submitted job of a run has ended; return its id if it has not."""
        submitted = run.submitted[name]
        job_id = ResourceName.parse(submitted.resource_name).id
        with self.database.read() as transaction:
            job = transaction.jobs.get(job_id)
        if job is None:
            self._end_run(run, "FAILED", f"{name} was deleted")
        elif not job.is_terminal:
            return job_id
        elif job.state not in SUCCEEDED_STATES:
            message = f": {job.ending.message}" if job.ending and job.ending.message else ""
            self._end_run(run, "FAILED", f"{name} is {short_state(job.state)}{message}")
        else:
            model_dir = find_model_dir_or_none(self.jobs, submitted.resource_name)
            with self.database.write() as transaction:
                ended = replace(submitted, has_succeeded=True, model_dir=model_dir)
                transaction.schedules.set_submitted(run, name, ended)
        return None

    def _end_run(self, run: ScheduleRun, state: RunState, reason: str | None = None) -> None:
        with self.database.write() as transaction:
            transaction.schedules.end_run(run, state, reason)
        if reason:
            _log.warning("the run %s has failed: %s", run.run_id, reason)


def _has_succeeded(run: ScheduleRun, job: ScheduledJob) -> bool:
    return job.name in run.submitted and run.submitted[job.name].has_succeeded
