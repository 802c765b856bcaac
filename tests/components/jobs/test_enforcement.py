"""Enforcement: what a provider is asked to submit is within the limits, whatever the program has judged."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from vertex_training.errors import SubmitFailed
from vertex_training.jobs import covering, enforcement
from vertex_training.jobs.covering import LedgerRecord
from vertex_training.jobs.provider import CustomJobProvider
from vertex_training.plan.shared import VARIABLE
from vertex_training.runtime.resource import Provider
from vertex_training.schedules.provider import EmulatorScheduleProvider

from tests.components.fakes import FakeClient, start_new_process
from tests.vertex_api.jobs import custom_job, edited
from vertex_api.job import Job
from vertex_api.names import CUSTOM_JOB

HERE = "projects/local/locations/us-central1"
LOCAL, CLOUD = f"//local/{HERE}", "//aiplatform.googleapis.com/projects/acme-dev/locations/us-central1"
POOL = ("jobSpec", "workerPoolSpecs", 0)
A100 = {"machineType": "a2-highgpu-1g", "acceleratorType": "NVIDIA_TESLA_A100", "acceleratorCount": 1}
N1 = {"machineType": "n1-standard-4"}
AT = "spec.jobSpec.workerPoolSpecs[0].machineSpec.machineType"
custom = CustomJobProvider()


@pytest.fixture(autouse=True)
def _new_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    start_new_process()
    yield
    start_new_process()


def configure(monkeypatch: pytest.MonkeyPatch, **rules: Any) -> None:
    """Let the engine pass the guardrails of a stack file."""
    monkeypatch.setattr(Provider, "setting", {"guardrails": json.dumps(rules)}.get)


def inputs(machine: dict[str, Any], name: str = "train", parent: str = LOCAL, image: str = "python") -> dict[str, Any]:
    spec = edited(custom_job(), *POOL, "machineSpec", to=machine)
    spec = edited(spec, *POOL, "containerSpec", "imageUri", to=image)
    return {"owner": f"team/dev/{name}", "parent": parent, "spec": spec}


def refused(props: dict[str, Any]) -> list[str]:
    failures = custom.check({}, props).failures
    return [f"{each.property}: {each.reason}" for each in failures]


def beyond(machine: dict[str, Any], name: str) -> list[str]:
    """Why a job of Google Cloud is not submitted."""
    job = Job(CUSTOM_JOB, inputs(machine)["spec"])
    return [message for _, message in enforcement.violations(job, CLOUD, name)]


def test_a_machine_that_a_transform_brings_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, machineTypes=["n1-*"])
    assert refused(inputs(N1)) == []
    assert refused(inputs(A100)) == [
        f'{AT}: guardrails.machineTypes: "a2-highgpu-1g" is not allowed here; allowed: n1-*'
    ]


def test_nothing_beyond_the_limits_is_sent(api: FakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, machineTypes=["n1-*"])
    with pytest.raises(SubmitFailed, match=r'^train: not submitted: .*machineType: guardrails.machineTypes: "a2-high'):
        custom.create(inputs(A100))
    assert "create" not in api.calls
    custom.create(inputs(N1))
    assert "create" in api.calls


def test_limits_from_outside_hold_in_the_provider(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The program cannot take them away: it is another process."""
    configure(monkeypatch, machineTypes=["*"])
    (tmp_path / "limits.yaml").write_text("machineTypes: [n1-*]")
    monkeypatch.setenv(VARIABLE, "limits.yaml")
    (message,) = refused(inputs(A100))
    assert message.startswith(f"{AT}: guardrails.machineTypes (limits.yaml): ")
    (tmp_path / "limits.yaml").unlink()
    monkeypatch.setenv(VARIABLE, "gone.yaml")
    with pytest.raises(SubmitFailed, match=r"^guardrails cannot be read: gone\.yaml: cannot be read: No such file"):
        refused(inputs(N1))


def test_limits_of_a_shared_file_hold_in_the_provider(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "shared.yaml").write_text("guardrails: {machineTypes: [n1-*]}")
    monkeypatch.setattr(Provider, "setting", {"extends": "shared.yaml"}.get)
    (message,) = refused(inputs(A100))
    assert message.startswith(f"{AT}: guardrails.machineTypes (shared.yaml): ")


def cover(settings: dict[str, Any], *names: str, id_: str = "led", parent: str = LOCAL) -> None:
    covering.cover(LedgerRecord(id_, "acme/team/dev", frozenset(names), frozenset(), parent, settings))


def test_limits_of_an_argument_hold_for_its_own_jobs() -> None:
    argument = {"source": 'TrainingStack "west"', "rules": {"maxReplicas": 1.0, "machineTypes": ["n1-*"]}, "own": True}
    cover({"prefix": "west-", "guardrails": [argument]}, "west-train")
    (message,) = refused(inputs(A100, "west-train"))
    assert 'guardrails.machineTypes (TrainingStack "west")' in message
    # What has no name in a ledger is a job of the program, on the only stack that is here.
    assert refused(inputs(A100, "of-program"))
    cover({"prefix": ""}, "train", id_="other")
    assert refused(inputs(A100)) == [] and refused(inputs(A100, "west-train"))


def test_own_images_are_of_an_allowed_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, registries=["registry.test/team"])
    # With `--target`, there is no ledger to say what the stack builds.
    assert refused(inputs(N1, image="localhost/team/trainer:1")) == []
    cover({"registry": "localhost/team"}, "train")
    assert refused(inputs(N1, image="localhost/team/trainer:1")) == []
    assert refused(inputs(N1, image="registry.test/team/trainer:1")) == []
    (message,) = refused(inputs(N1, image="localhost/team-b/trainer:1"))
    assert "guardrails.registries: " in message


def test_limits_of_cost_count_the_jobs_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """An n1-standard-4 is 0.25 USD an hour; a transform has made both jobs larger than the program knows."""
    configure(monkeypatch, maxHourlyCost=0.6)
    assert beyond(N1, "one") == beyond(N1, "two") == []
    # An update follows its preview in the same process.
    assert beyond(N1, "one") == []
    (message,) = beyond(N1, "three")
    assert message == (
        "guardrails.maxHourlyCost: 0.74 USD an hour by list price; allowed: 0.60 for all jobs; most expensive: "
        "one 0.25, two 0.25, three 0.25"
    )
    (message,) = beyond({"machineType": "n1-standard-32"}, "two")
    assert message.startswith("guardrails.maxHourlyCost: 1.")


def test_a_job_without_limits_costs_no_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enforcement, "_Sums", None)
    assert refused(inputs(A100, parent=CLOUD)) == []


def test_jobs_of_a_schedule_are_within_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, machineTypes=["n1-*"])
    job = {"name": "train", "collection": "customJobs", "body": inputs(A100)["spec"]}
    (failure,) = EmulatorScheduleProvider().check({}, {"parent": LOCAL, "jobs": [job]}).failures
    assert failure.property == f"jobs[0].body.{AT.removeprefix('spec.')}"
    assert "guardrails.machineTypes" in failure.reason


def test_an_adopted_job_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is submitted; the program has judged what is declared of it."""
    configure(monkeypatch, machineTypes=["n1-*"])
    assert refused({**inputs(A100), "adopt": f"{HERE}/customJobs/1"}) == []
