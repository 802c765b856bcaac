"""Jobs as the page shows them: the list of all, of every project, region and kind, and each one by itself."""

import json
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from starlette.datastructures import QueryParams

from vertex_api import metrics
from vertex_api.jobspec import image_name, output_folders
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, KINDS, TRAINING_PIPELINE
from vertex_api.pipelines import backing_kind
from vertex_emulator import event_files, usage
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database, Transaction
from vertex_emulator.database.records import CANCELLED, FAILED, SUCCEEDED, Job, Replica
from vertex_emulator.database.usage import Usage
from vertex_emulator.errors import ApiError, ExecutorUnavailable
from vertex_emulator.gcs.files import BucketTree
from vertex_emulator.page import plots
from vertex_emulator.replicas.executor import Executor
from vertex_emulator.representation import api_state, job_json, pipeline_json, time_fields

PAGE_SIZE = 100
_MAX_SCANNED = 2000  # of a search that finds little, so that the database is not held for long
_MAX_RUNS = 10
_MAX_MEASURED = 1000  # jobs that have ended, whose metrics are read once
_ENDED_GROUPS = {"succeeded": SUCCEEDED, "failed": FAILED, "cancelled": CANCELLED}
STATE_GROUPS = ("active", *_ENDED_GROUPS)


@dataclass(frozen=True)
class Query:
    """Which jobs: `text` in the display name or id (or a whole resource name), a group of states, older than the job
    `before`, or only those of `ids`.
    """

    text: str = ""
    state_group: str = ""
    before: int | None = None
    ids: tuple[str, ...] = ()

    @classmethod
    def parse(cls, parameters: QueryParams) -> "Query":
        """Return the query of a URL: `text`, `state`, `before`, and `id` any number of times. Raises ApiError."""
        state_group, before = parameters.get("state", ""), parameters.get("before", "")
        if state_group and state_group not in STATE_GROUPS:
            raise ApiError("INVALID_ARGUMENT", f'state is "{state_group}"; it must be one of {", ".join(STATE_GROUPS)}')
        if before and not (before.isascii() and before.isdecimal() and len(before) < 19):
            raise ApiError("INVALID_ARGUMENT", f'before is "{before}"; it must be the `next` of an earlier answer')
        return cls(
            parameters.get("text", "").casefold(),
            state_group,
            int(before) if before else None,
            tuple(parameters.getlist("id")),
        )

    def matches(self, job: Job) -> bool:
        """Return whether a job is in the group of states and has the text."""
        group = next((group for group, state in _ENDED_GROUPS.items() if job.state == state), "active")
        if self.state_group not in ("", group):
            return False
        known = (str(job.spec["displayName"]).casefold(), job.id)
        return any(self.text in text for text in known) or job.name.casefold().endswith(self.text)


def search(database: Database, query: Query) -> dict[str, Any]:
    """Return `jobs`, the newest first, and `next`, the `before` of the next page, null if there is none."""
    found: list[dict[str, Any]] = []
    last = None
    with database.read() as transaction:
        jobs: Iterator[Job] = transaction.jobs.created(before_sequence=query.before)
        if query.ids:
            named = (transaction.jobs.get(id_) for id_ in query.ids)
            jobs = (job for job in named if job is not None and job.study is None)
        for job in islice(jobs, _MAX_SCANNED):
            if len(found) == PAGE_SIZE and not query.ids:
                break
            last = job.sequence
            if query.matches(job):
                found.append(_summary(transaction, job))
        else:
            last = last if next(jobs, None) is not None else None
    return {"jobs": found, "next": last}


def _summary(transaction: Transaction, job: Job) -> dict[str, Any]:
    summary: dict[str, Any] = {
        "sequence": job.sequence,
        "id": job.id,
        "collection": job.kind.collection,
        "kind": job.kind.type,
        "displayName": job.spec["displayName"],
        "state": api_state(job),
        "project": job.location.project,
        "region": job.location.region,
        **time_fields(createTime=job.created, startTime=job.started, endTime=job.ended),
    }
    if job.kind == HYPERPARAMETER_TUNING_JOB:
        summary["trials"] = {"ended": transaction.trials.count_ended(job.id), "most": job.spec["maxTrialCount"]}
    return summary


@dataclass(frozen=True)
class JobViews:
    """The views of single jobs: their records in the database, and the states of their containers.

    `measured` are the metrics of ended jobs, by id.
    """

    database: Database
    executor: Executor
    data: DataFolder
    trials: plots.TrialCache = field(default_factory=plots.TrialCache)
    measured: dict[str, dict[str, float]] = field(default_factory=dict)

    def get(self, collection: str, job_id: str) -> dict[str, Any] | None:
        """Return all that the page shows of a job, None if there is no job of this kind and id.

        The fields are `job` as the API returns it (without a study's trials, with exact times), `kind`, `place`
        (`project`, `region`), `outputs` (`label`, `uri`, `path`), `replicas`, `metrics` by name, `permissions` that its
        calls needed, `runs` (the newest of this name: `id`, `state`, times and `metrics`), `log` (the `job`, `trial` or
        null, and `tasks` of its entries), `declared` (its `name`, `place`, `folder` and `stack`, null if no stack has
        told), and `commands`, each with its `purpose`. A tuning job also has `study` (see `plots.study`), a trial's job
        has `parent` (`collection`, `id`, `trial`), and a running pipeline has `task` (`collection` and `id` of its job,
        its `model` or null).
        """
        with self.database.read() as transaction:
            job = transaction.jobs.get(job_id)
            is_study = job is not None and job.kind == HYPERPARAMETER_TUNING_JOB
            trials = self.trials.read(transaction, job_id) if is_study else []
            progress = transaction.pipelines.get(job_id)
            used = transaction.usage.of(job_id)
            needs = {(each.permission, each.resource) for each in transaction.permissions.of(job_id)}
            runs = [] if job is None or job.study is not None else self._runs(transaction, job)
        if job is None or job.kind != KINDS.get(collection):
            return None
        kind, visible_id = job.owner
        tasks = [replica.task_name for replica in job.requested_replicas]
        declared = self._declared(job)
        body = job_json(job) if job.kind != TRAINING_PIPELINE else pipeline_json(job, progress)
        view: dict[str, Any] = {
            "job": body | time_fields(startTime=job.started, endTime=job.ended),
            "kind": job.kind.type,
            "place": {"project": job.location.project, "region": job.location.region},
            "outputs": [*self._outputs(job)],
            "replicas": [*self._replicas(job, used)],
            "metrics": self._metrics(job),
            "permissions": [f"{permission} on {resource}" for permission, resource in sorted(needs)],
            "runs": [_run(each) | {"metrics": self._metrics(each)} for each in runs],
            "log": {"job": visible_id, "trial": job.trial, "tasks": ["service", *tasks]},
            "declared": declared,
            "commands": [*self._commands(job, declared)],
        }
        if job.study is not None:
            view["parent"] = {"collection": kind.collection, "id": job.study, "trial": job.trial}
        if progress is not None:
            task_collection = backing_kind(job.spec).collection
            view["task"] = {"collection": task_collection, "id": progress.job, "model": progress.model}
        if is_study:
            view["study"] = plots.study(job, trials)
        return view

    def _declared(self, job: Job) -> dict[str, str] | None:
        """Return where a job is declared by what stacks have told at their last update; None if not just one has."""
        labels = job.spec.get("labels", {})
        found = []
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):  # the file of another version
            for stack in json.loads(self.data.declarations.read_text()).values():
                for each in stack["jobs"]:
                    if each["labels"].items() <= labels.items() and each["name"].startswith(job.kind.collection):
                        declared = {key: str(each[key]) for key in ("name", "place", "stack")}
                        found.append({**declared, "folder": str(stack["folder"])})
        return found[0] if len(found) == 1 and job.study is None else None

    def _commands(self, job: Job, declared: Mapping[str, str] | None) -> Iterator[dict[str, str]]:
        """Yield what to type in a terminal; the first two in the project's folder."""
        if declared:
            stack, name = ["--stack", declared["stack"]], declared["name"].partition(".")[2]
            yield _command("Run it again by hand", "vertex-training", "run", name, *stack)
            yield _command("Review what an edit would run again", "pulumi", "preview", *stack)
        trial = ["--trial", str(job.trial)] if job.trial else []
        log = ["logs", job.owner[1], *trial, "--follow", "--data", str(self.data.root)]
        yield _command("Print the log", "vertex-emulator", *log)

    def _outputs(self, job: Job) -> Iterator[dict[str, str]]:
        """Yield the base output directory and, for a custom job, the folders in it that its environment names."""
        spec = job.spec.get("jobSpec") or job.spec.get("trialJobSpec") or {}
        base = spec.get("baseOutputDirectory", {}).get("outputUriPrefix")
        if not base:
            return
        folders = {"Base output directory": base}
        if job.kind == CUSTOM_JOB:
            folders |= output_folders(spec)
        for label, uri in folders.items():
            yield {"label": label, "uri": uri, "path": str(BucketTree(self.data.buckets).path(uri))}

    def _runs(self, transaction: Transaction, job: Job) -> list[Job]:
        """Return the newest `_MAX_RUNS` jobs of a job's kind, place and display name, the newest first.

        There are none if it is the only one.
        """
        name = job.spec["displayName"]
        known = transaction.jobs.created(job.kind, job.location, string_in_spec=name)
        runs = [*islice((each for each in known if each.spec["displayName"] == name), _MAX_RUNS)]
        return runs if len(runs) > 1 else []

    def _metrics(self, job: Job) -> dict[str, float]:
        """Return the metrics that a custom job has left in files: none of a trial, whose study has them."""
        if job.kind != CUSTOM_JOB or job.state != SUCCEEDED or job.study is not None:
            return {}
        if job.id not in self.measured:
            files = event_files.Files(BucketTree(self.data.buckets))
            found: dict[str, float] = {}
            with suppress(ValueError):  # `pulumi up` has said so
                found = metrics.of_run(files, job.spec["jobSpec"], job.created / 1e9)
            if len(self.measured) >= _MAX_MEASURED:
                self.measured.clear()
            self.measured[job.id] = found
        return self.measured[job.id]

    def _replicas(self, job: Job, used: Mapping[Replica, Usage]) -> Iterator[dict[str, Any]]:
        pools = job.spec.get("jobSpec", {}).get("workerPoolSpecs", [])
        statuses = self._statuses(job)
        usages = {each["task"]: each for each in usage.describe(job, used)}
        for replica in job.requested_replicas:
            status = statuses.get(replica.task_name, {})
            pool = pools[replica.pool]
            yield {
                "task": replica.task_name,
                "image": image_name(pool) or "",
                "machine": pool.get("machineSpec", {}).get("machineType", ""),
                "state": _replica_state(status, job),
                "exitCode": status["exit_code"] if status.get("phase") == "exited" else None,
                "attempt": status.get("attempt", 0) + 1,
                "used": usages.get(replica.task_name),
            }

    def _statuses(self, job: Job) -> dict[str, Mapping[str, Any]]:
        """Return the status of each task's latest attempt, recorded or live, as far as it is known."""
        if job.is_terminal:
            latest = sorted(job.replica_outcomes, key=lambda outcome: int(outcome.get("attempt", 0)))
            return {f"workerpool{each['pool']}-{each['index']}": {"phase": "exited", **each} for each in latest}
        try:
            statuses = self.executor.statuses(job.id)
        except ExecutorUnavailable:
            return {}
        return {
            replica.task_name: {"attempt": replica.attempt, "phase": status.phase, "exit_code": status.exit_code}
            for replica, status in sorted(statuses.items())
        }


def _command(purpose: str, *words: str) -> dict[str, str]:
    return {"purpose": purpose, "command": shlex.join(words)}


def _run(job: Job) -> dict[str, Any]:
    times = time_fields(createTime=job.created, startTime=job.started, endTime=job.ended)
    return {"id": job.id, "state": api_state(job), **times}


def _replica_state(status: Mapping[str, Any], job: Job) -> str:
    match status.get("phase"):
        case "running":
            return "RUNNING"
        case "exited":
            return "SUCCEEDED" if status["exit_code"] == 0 else "FAILED"
        case "created":
            return "PENDING"
    return "NOT_STARTED" if job.is_terminal else "PENDING"
