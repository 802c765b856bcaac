"""Every field of every kind, from YAML and from Python: what is sent is field for field what was declared."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from vertex_training.jobs.job import as_submitted
from vertex_training.jobs.provider import drifted_spec
from vertex_training.runtime import target
from vertex_training.runtime.target import EmulatorLinks

from tests.components.fakes import Ground
from tests.components.jobs.test_provider import PARENT, PROVIDERS, engine_s, inputs
from tests.components.projects import INCLUDING, load
from tests.vertex_api.test_client import Api, server
from tests.vertex_emulator.api.requests import GOOD, L4, fields_of, is_set, of_spec, pool
from vertex_api.client import Client, Endpoint
from vertex_api.job import parse_job, stored_job
from vertex_api.machines import MACHINES
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, KINDS, TRAINING_PIPELINE, Kind
from vertex_api.pipelines import CUSTOM_TASK, TUNING_TASK

__all__ = ["server"]  # the fixture

SPOT = of_spec(pool(machineSpec=L4), scheduling={"strategy": "SPOT", "timeout": "3600s"})
ANY_RESERVATION = {"reservationAffinityType": "ANY_RESERVATION"}
RESERVED = of_spec(pool(machineSpec={**L4, "reservationAffinity": ANY_RESERVATION}))
CUSTOM = (*GOOD[CUSTOM_JOB], SPOT, RESERVED)
TUNING = GOOD[HYPERPARAMETER_TUNING_JOB]
ENDED = ("displayName", "labels", "encryptionSpec")


def declared(kind: Kind) -> list[dict[str, Any]]:
    """Good bodies: of tuning jobs with every spec of a trial, of pipelines with every job as the inputs of a task."""
    specs = [body["jobSpec"] for body in CUSTOM]
    trials = [spec for spec in specs if not any(map(_has_tpus, spec["workerPoolSpecs"]))]
    tuning = [*TUNING, *({**TUNING[0], "trialJobSpec": spec} for spec in trials)]
    if kind == CUSTOM_JOB:
        return [*CUSTOM]
    if kind == HYPERPARAMETER_TUNING_JOB:
        return tuning
    of_tuning = ({name: value for name, value in body.items() if name not in ENDED} for body in tuning)
    tasks = [*((CUSTOM_TASK, spec) for spec in specs), *((TUNING_TASK, body) for body in of_tuning)]
    named = ({"trainingTaskDefinition": name, "trainingTaskInputs": given} for name, given in tasks)
    return [*GOOD[TRAINING_PIPELINE], *({"displayName": "good", **task} for task in named)]


def _has_tpus(pool: dict[str, Any]) -> bool:
    found = MACHINES.get(pool.get("machineSpec", {}).get("machineType", ""))
    return found is not None and found.is_tpu


@pytest.fixture
def service(server: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    """A server that Google's client sends its requests to, and that takes them all."""
    api = server.api = Api(server.server_port)
    url = f"http://127.0.0.1:{api.port}"
    at = target.Target(Client(Endpoint.for_server(url)), PARENT, EmulatorLinks(url))
    monkeypatch.setattr(target, "resolve", lambda parent: at)
    monkeypatch.setattr("sys.argv", ["pytest"])
    yield api


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.collection)
def test_what_is_sent_is_what_was_declared(service: Api, tmp_path: Path, kind: Kind) -> None:
    bodies = {f"good-{number}": body for number, body in enumerate(declared(kind))}
    jobs = load(tmp_path, INCLUDING, jobs=yaml.safe_dump({kind.collection: bodies})).jobs
    assert len(jobs) == len(bodies)
    service.replies({"name": f"{PARENT}/{kind.collection}/7", "state": 2})  # pending, of either enum
    for job in jobs:
        spec = as_submitted(job.job, Ground().defaults, job.name).fields
        assert parse_job(kind, bodies[job.name]) == (
            job.job,
            [],
        )  # from Python
        assert drifted_spec(job.job.fields, spec, {}) == job.job.fields
        checked = PROVIDERS[kind].check({}, engine_s(inputs(dict(spec))))
        assert checked.failures == []
        PROVIDERS[kind].create(engine_s(checked.inputs))
        method, path, _, body = service.asked[-1]
        assert (method, path) == ("POST", f"/v1/{PARENT}/{kind.collection}")
        sent = stored_job(kind, body).fields
        own = {name: value for name, value in sent["labels"].items() if not name.startswith("pulumi_")}
        sent = {name: value for name, value in {**sent, "labels": own}.items() if value}
        assert drifted_spec(spec, sent, {}) == spec
        assert drifted_spec(sent, spec, {}) == sent  # and nothing besides
    assert [path for path, _ in fields_of(kind) if not any(is_set(job.job.fields, path) for job in jobs)] == []
