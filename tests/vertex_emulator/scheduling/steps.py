"""What is done to an emulator on a machine in memory: jobs submitted, cancelled, looked at."""

import json
from pathlib import Path
from typing import Any

from tests.vertex_emulator.fakes import Emulator
from tests.vertex_emulator.jobs import LOCATION, custom_job_spec, tuning_job_spec
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB
from vertex_emulator.database.records import Replica
from vertex_emulator.faults import InjectedFault
from vertex_emulator.replicas.spec import ReplicaSpec

CHIEF, WORKER = Replica(0, 0), Replica(1, 0)


def submit(emulator: Emulator, spec: dict[str, Any] | None = None) -> str:
    created = emulator.jobs.create(CUSTOM_JOB, LOCATION, spec or custom_job_spec())
    return str(created["name"]).rpartition("/")[2]


def submit_study(emulator: Emulator, **fields: Any) -> str:
    created = emulator.jobs.create(HYPERPARAMETER_TUNING_JOB, LOCATION, tuning_job_spec(**fields))
    return str(created["name"]).rpartition("/")[2]


def cancel(emulator: Emulator, job_id: str) -> None:
    emulator.jobs.cancel(emulator.job(job_id).kind, LOCATION, job_id)


def mounted(spec: ReplicaSpec, target: str) -> Path | None:
    """The folder of this machine that a container has at a place."""
    return next((Path(mount.source) for mount in spec.mounts if mount.target == target), None)


def reports(spec: ReplicaSpec, value: float = 0.5) -> int:
    """A trainer that reports `acc` once."""
    line = {"timestamp": 1_700_000_100.0, "trial": "1", "acc": str(value), "global_step": "1"}
    folder = mounted(spec, "/tmp/hypertune")
    assert folder is not None
    (folder / "output.metrics").write_text(json.dumps(line) + "\n")
    return 0


def crashes_once(spec: ReplicaSpec) -> int:
    """A trainer that dies of SIGSEGV at its first attempt."""
    return 139 if spec.replica.attempt == 0 else 0


def inject(emulator: Emulator, kind: str, **fields: Any) -> None:
    with emulator.database.write() as transaction:
        transaction.faults.add(InjectedFault.parse({"kind": kind, **fields}))


def trials(emulator: Emulator, study: str) -> list[tuple[int, str]]:
    with emulator.database.read() as transaction:
        return [(trial.number, trial.state) for trial in transaction.trials.all(study)]


def log_texts(emulator: Emulator, job: str) -> list[str]:
    with emulator.database.read() as transaction:
        return [line.text for line in transaction.jobs.messages(job)]
