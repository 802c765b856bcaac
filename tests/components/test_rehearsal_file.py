"""The file of a rehearsal: what is read of it, and what is said of files that are none."""

import json
from pathlib import Path
from typing import Any

import pytest
from vertex_training.rehearsal_file import RehearsalUnreadable, load, to_json

WHOLE: dict[str, Any] = {
    "version": 1,
    "project": "demo",
    "stack": "dev",
    "commit": "0" * 40,
    "base": "main.json",
    "inputs": "samples",
    "jobs": [
        {
            "name": "digits",
            "kind": "CustomJob",
            "outcome": "succeeded",
            "seconds": 41.2,
            "replicas": [
                {
                    "name": "workerpool0-0",
                    "machineType": "n1-standard-4",
                    "peakMemoryBytes": 2254857830,
                    "memoryBytes": 16106127360,
                    "cpuSeconds": 38.1,
                    "vcpus": 4,
                }
            ],
            "files": {"count": 3, "bytes": 12034, "names": ["model/model.joblib"]},
            "metrics": {"accuracy": 0.952, "epochs": 1},
            "missingMetrics": ["loss"],
            "missingInputs": ["gs://acme-data/train.csv"],
            "env": ["HF_TOKEN"],
            "newEnv": ["HF_TOKEN"],
            "buckets": ["acme-data"],
            "hosts": ["models.acme.dev"],
            "permissions": ["storage.objects.get on gs://acme-data"],
            "newPermissions": ["storage.objects.get on gs://acme-data"],
            "notGranted": ["storage.objects.get on gs://acme-data/train/"],
            "remedies": ["vertex-training:data: {acme-data: {uri: gs://acme-data/, grant: true}}"],
            "base": {"outcome": "succeeded", "seconds": 40, "metrics": {"accuracy": 0.941}},
            "drills": [{"fault": "preempt", "resumed": True, "fromStep": 40, "lostSteps": 3, "sameEnd": True}],
        }
    ],
}


def write(folder: Path, value: Any) -> Path:
    (folder / "r.json").write_text(value if isinstance(value, str) else json.dumps(value))
    return folder / "r.json"


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    found = load(write(tmp_path, WHOLE))
    assert found == WHOLE
    assert json.loads(to_json(found)) == WHOLE


def test_keys_without_a_value_are_left_out(tmp_path: Path) -> None:
    job: Any = {"name": "a", "outcome": "skipped", "base": None, "hosts": [], "of a later release": 7}
    found = load(write(tmp_path, {"version": 1, "commit": None, "jobs": [job]}))
    assert found == {"version": 1, "jobs": [{"name": "a", "outcome": "skipped"}]}
    assert json.loads(to_json({**found, "commit": None, "jobs": []})) == {"version": 1, "jobs": []}


def with_job(**fields: Any) -> dict[str, Any]:
    return {"version": 1, "jobs": [{"name": "a", "outcome": "failed", **fields}]}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("", "is not the file of a rehearsal"),
        ("[]", "is not the file of a rehearsal"),
        ('{"version": 1}', "is not the file of a rehearsal"),
        ("[" * 100_000, "is not the file of a rehearsal"),
        ({"version": 2, "jobs": []}, "has version 2, and this release reads 1"),
        ({"version": 1, "jobs": {}}, "jobs: must be a valid list ({})"),
        ({"version": 1, "jobs": [{"name": "a"}]}, "jobs[0].outcome: is missing"),
        (with_job(outcome="maybe"), """jobs[0].outcome: must be 'succeeded', 'failed' or 'skipped' ("maybe")"""),
        (with_job(metrics={"loss": float("nan")}), "jobs[0].metrics.loss: must be a finite number (nan)"),
        (with_job(metrics={"loss": "1"}), 'jobs[0].metrics.loss: must be a valid number ("1")'),
        (with_job(seconds=True), "jobs[0].seconds: must be a valid number (true)"),
        (with_job(files={"count": -1, "bytes": 0}), "jobs[0].files.count: must be greater than or equal to 0 (-1)"),
        (with_job(drills=[{"resumed": True}]), "jobs[0].drills[0].fault: is missing"),
    ],
)
def test_a_broken_file_has_one_error(value: Any, reason: str, tmp_path: Path) -> None:
    file = write(tmp_path, value)
    with pytest.raises(RehearsalUnreadable) as refusal:
        load(file)
    assert str(refusal.value) == f"{file}: {reason}; make it with `vertex-training rehearse --save {file}`"
