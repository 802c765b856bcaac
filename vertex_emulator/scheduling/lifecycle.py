"""How jobs enter the queue, which leave it next (admission), and how they are asked to end: each in one transaction.

A field that the emulator does not support keeps a job out, or is approximated with a warning in the job's log.
docs/fidelity.md lists every field with its status.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from vertex_api.jobspec import is_reduction_server, replica_count, with_boot_disks
from vertex_api.messages import KeyPath
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE, Kind
from vertex_api.validation.shape import FieldProblem
from vertex_emulator.database import Transaction
from vertex_emulator.database.jobs import LAUNCH_TEXTS, PROVISIONING_TEXTS, QueuedJob
from vertex_emulator.database.lineage import CHILD
from vertex_emulator.database.records import CANCELLED, CANCELLING, PENDING, QUEUED, SUCCEEDED, Ending, Job
from vertex_emulator.names import Location, with_number
from vertex_emulator.times import now_ns

_CODE_CANCELLED = 1
MAX_REPLICAS = 100
REJECTED_FIELDS = {
    "models": "the emulator runs no Google-provided jobs that take models",
}
_NO_REDUCTION_SERVER = "on this machine Reduction Server is not started, and the workers reduce among themselves"
APPROXIMATED_FIELDS = {
    "network": "containers use a network of this machine",
    "pscInterfaceConfig": "containers use a network of this machine",
    "reservedIpRanges": "containers use a network of this machine",
    "serviceAccount": "containers act as this account for the emulator alone, which checks no permissions of it",
    "tensorboard": "scalars alone are uploaded, and only to a tensorboard of the emulator",
    "enableWebAccess": "a shell runs in a terminal: `vertex-emulator shell`, as pages at webAccessUris say",
    "enableDashboardAccess": "there is no dashboard",
    "persistentResourceId": "the job runs on this machine, not on the persistent resource",
    "protectedArtifactLocationId": "artifacts stay on this machine",
    "encryptionSpec": "nothing is encrypted",
    "workerPoolSpecs.nfsMounts": "folders of this machine are mounted: nfs/SERVER/PATH in the emulator's data folder",
    "workerPoolSpecs.lustreMounts": "folders of this machine are mounted: lustre/IP/FILESYSTEM in its data folder",
}


def enqueue(
    transaction: Transaction,
    job_id: str,
    kind: Kind,
    location: Location,
    spec: Mapping[str, Any],
    warnings: Iterable[str] = (),
) -> Job:
    """Add a job to the queue and log its first messages: a warning per approximated field, then `warnings`.

    As on the service, the job has boot disks from now on.
    """
    if kind != TRAINING_PIPELINE:
        spec = {**spec, kind.spec_field: with_boot_disks(spec[kind.spec_field])}
    job = transaction.jobs.add(job_id, kind, location, spec)
    if kind == CUSTOM_JOB and (board := spec["jobSpec"].get("tensorboard")):
        board = with_number(board)
        if transaction.tensorboards.get(board) is not None:  # where the job's scalars go, see api/uploads.py
            experiment = {"displayName": spec["displayName"], "source": job.name}
            transaction.tensorboards.add(f"{board}/experiments/{job_id}", experiment)
    warnings = [*warnings, *(record(transaction, job) if kind == CUSTOM_JOB else ())]
    transaction.jobs.log(job_id, "Waiting for job to be provisioned.")
    if kind == HYPERPARAMETER_TUNING_JOB:
        transaction.jobs.log(job_id, "Vertex AI is setting up this job.")
    notes = approximations(kind, spec) if kind != TRAINING_PIPELINE else []
    for text in [*notes, *warnings]:
        transaction.jobs.log(job_id, text, "WARNING")
    return job


def record(transaction: Transaction, job: Job) -> Iterator[str]:
    """Record a custom job in the run of its experiment, which is made if it is not there; yield a warning without one.

    Without an `experimentRun`, the job has a run of its own, called as its number: replicas/environment.py tells it so.
    The metadata is what Google's SDK reads: `ExperimentRun.get_logged_custom_jobs` knows a run's jobs by it.
    """
    spec = job.spec["jobSpec"]
    if "experiment" not in spec:
        return
    name = with_number(spec["experiment"])
    is_own = name.startswith(f"projects/{job.location.project_number}/")
    experiment = transaction.lineage.get(name) if is_own else None
    name = with_number(spec.get("experimentRun") or f"{name}-{job.id}")
    if experiment is None or not name.startswith(f"{experiment.name}-"):
        yield (
            f"experiment: on this machine the job's project has no {spec['experiment']}, or not with this run, so the "
            "job is in no experiment; aiplatform.init(experiment=…) of a program that uses the emulator makes it."
        )
        return
    run = transaction.lineage.get(name)
    if run is None:
        fields = {
            "displayName": name.removeprefix(f"{experiment.name}-"),
            "schemaTitle": "system.ExperimentRun",
            "schemaVersion": "0.0.1",
            "metadata": {"_params": {}, "_metrics": {}, "_state": "RUNNING"},
        }
        run = transaction.lineage.add(name, fields)
        assert run is not None
        transaction.lineage.connect(experiment, run, CHILD)
    metadata = run.spec.get("metadata", {})
    jobs = [*metadata.get("_custom_jobs", []), {"custom_job_resource_name": job.name}]
    transaction.lineage.set_spec(run, {**run.spec, "metadata": {**metadata, "_custom_jobs": jobs}})


def admit(transaction: Transaction, capacity: int) -> list[str]:
    """Let the jobs out of the queue for which there is room; return their ids.

    `capacity` is the maximum number of running replicas.
    """
    admitted = select(
        transaction.queue.candidates(capacity),
        transaction.queue.occupied(),
        capacity,
    )
    for queued in admitted:
        job = transaction.jobs.get(queued.id)
        assert job is not None
        transaction.queue.record_admission(job)
        transaction.jobs.update(job, state=PENDING)
        for text in (*PROVISIONING_TEXTS, *LAUNCH_TEXTS):
            transaction.jobs.log(job.id, text)
    return [queued.id for queued in admitted]


def select(queued: Iterable[QueuedJob], running: Mapping[str, int], capacity: int) -> list[QueuedJob]:
    """The queued jobs to start now, in order; `running` counts replicas by owner, `capacity` is the most of them.

    A study with all its trials is one owner, and so is each other job. The owner with the fewest running replicas comes
    first. Among equals it is the one that has waited longest: a job since its creation, a study since its last trial
    left the queue. No job overtakes: if the first job does not fit, its room is reserved for it. A job that is larger
    than the machine runs alone.

    So no job starves. While an owner runs nothing, only owners that have waited longer go before it, each study once.
    Neither a stream of small jobs nor the new trials of a study delay a large job.
    """
    remaining = list(queued)  # `min` returns the first of equal jobs, so their order is kept
    replicas = dict(running)
    admitted = []
    while remaining:
        first = min(remaining, key=lambda job: (replicas.get(job.owner, 0), job.since))
        total = sum(replicas.values())
        if total and total + first.slots > capacity:
            break
        remaining.remove(first)
        replicas[first.owner] = replicas.get(first.owner, 0) + first.slots
        admitted.append(first)
    return admitted


def cancel(transaction: Transaction, job_id: str) -> None:
    """Request a job's cancellation. A queued custom job ends at once; a job whose ending is decided keeps it.

    A study that has stopped and waits for its last trials can still be cancelled.
    """
    _request(transaction, job_id, Ending(CANCELLED, _CODE_CANCELLED, "CANCELED", now_ns()))


def stop_early(transaction: Transaction, trial_job_id: str) -> bool:
    """Request that a trial's job ends early and succeeds. Return False if its ending is decided already.

    While its containers are being stopped, the job's state is CANCELLING and the trial's is STOPPING.
    """
    return _request(transaction, trial_job_id, Ending(SUCCEEDED, 0, "", now_ns()))


def _request(transaction: Transaction, job_id: str, ending: Ending) -> bool:
    """Record the request, which the reconcilers carry out."""
    job = transaction.jobs.get(job_id)
    if job is None or job.is_terminal or not (job.ending is None or job.is_stopped_study):
        return False
    # A custom job in the queue has no containers yet.
    if job.state == QUEUED and job.kind == CUSTOM_JOB:
        transaction.jobs.end(job, ending)
    else:
        transaction.jobs.update(job, state=CANCELLING, ending=ending)
    return True


def violations(kind: Kind, job: Mapping[str, Any]) -> list[FieldProblem]:
    """Return the fields of a canonical job that the emulator rejects, and the pools with more replicas than it runs."""
    field = kind.spec_field
    rejected = [
        FieldProblem(path, REJECTED_FIELDS[name]) for name, path, _ in _fields(kind, job) if name in REJECTED_FIELDS
    ]
    return rejected + [
        FieldProblem(
            (field, "workerPoolSpecs", index, "replicaCount"),
            f"{pool['replicaCount']} replicas: the emulator runs 1 to {MAX_REPLICAS} in a pool",
        )
        for index, pool in enumerate(job[field]["workerPoolSpecs"])
        if not 1 <= replica_count(pool) <= MAX_REPLICAS
    ]


def approximations(kind: Kind, job: Mapping[str, Any]) -> list[str]:
    """A warning for each field that is only approximated, in the order of the table."""
    present = {name: value for name, _, value in _fields(kind, job)}
    found = [f"{name}: on this machine {note}." for name, note in APPROXIMATED_FIELDS.items() if present.get(name)]
    pools = enumerate(job[kind.spec_field]["workerPoolSpecs"])
    return found + [
        f"workerPoolSpecs[{index}]: {_NO_REDUCTION_SERVER}." for index, pool in pools if is_reduction_server(pool)
    ]


def _fields(kind: Kind, job: Mapping[str, Any]) -> Iterator[tuple[str, KeyPath, Any]]:
    """Yield name, path and value of the fields that are set, named as in the tables: relative to the job's spec."""

    def walk(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
        children: Iterable[tuple[str | int, Any]]
        children = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
        for key, child in children:
            if not isinstance(key, int):
                yield (*path, key), child
            yield from walk(child, (*path, key))

    for path, value in walk(job, ()):
        name = ".".join(str(part) for part in path if not isinstance(part, int))
        yield name.removeprefix(f"{kind.spec_field}."), path, value
