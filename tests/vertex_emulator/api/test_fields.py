"""Every field that a client may set is kept as it was sent, or refused by its name: nothing is dropped silently."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.vertex_emulator.api.requests import GOOD, MODEL, PARENT_MODEL, Names, fields_of, input_fields, is_set
from tests.vertex_emulator.running import PARENT, RunningEmulator
from vertex_api import pipelines
from vertex_api.jobspec import with_boot_disks as spec_with_boot_disks
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE, Kind
from vertex_api.validation.check import validate_job
from vertex_emulator.http.responses import to_snake_case
from vertex_emulator.scheduling.lifecycle import REJECTED_FIELDS

SPEC_FIELDS = {CUSTOM_JOB: "jobSpec", HYPERPARAMETER_TUNING_JOB: "trialJobSpec"}
# What only an emulated service behind the field could honour, besides what coverage.REFUSED names.
PIPELINE_REFUSED = {"inputDataConfig.bigqueryDestination"}


def refused_by(kind: Kind, path: Names) -> str | None:
    """The name under which the emulator says that it refuses a field, or one that the field lies in."""
    known = PIPELINE_REFUSED if kind == TRAINING_PIPELINE else REJECTED_FIELDS.keys()
    name = ".".join(path).removeprefix(f"{SPEC_FIELDS.get(kind)}.")
    return next((each for each in known if name == each or name.startswith(f"{each}.")), None)


def request_with(kind: Kind, path: Names) -> Any:
    """A good request that sets a field, and no refused one unless the field is."""
    found = [body for body in GOOD[kind] if is_set(body, path)]
    if refused_by(kind, path) is None:
        refused = [each for each, _ in input_fields(kind.typed_dict) if refused_by(kind, each)]
        found = [body for body in found if not any(is_set(body, each) for each in refused)]
    assert found, f"no good request sets {path}"
    return found[0]


def canonical(kind: Kind, body: Any) -> Any:
    if kind == TRAINING_PIPELINE:
        return pipelines.validate_pipeline(body, output_only="drop").spec
    return validate_job(kind, body, output_only="drop")[0]


def with_boot_disks(kind: Kind, job: Any) -> Any:
    """The job as the service holds it; it keeps a pipeline's inputs as they are sent."""
    return job if kind == TRAINING_PIPELINE else job | {kind.spec_field: spec_with_boot_disks(job[kind.spec_field])}


@dataclass
class Submitting:
    """Sends each request once, however many fields it sets."""

    emulator: RunningEmulator
    replies: dict[str, tuple[int, Any]] = field(default_factory=dict)

    def __call__(self, kind: Kind, body: Any) -> tuple[int, Any]:
        """The status of the reply; and the job as it is got afterwards, or the refusal."""
        key = json.dumps([kind.collection, body])
        if key not in self.replies:
            url = f"{self.emulator.url}/v1/{PARENT}/{kind.collection}"
            reply = self.emulator.http.post(url, json=body)
            held = reply.json()
            if reply.status_code == 200:
                # A pipeline that has failed meanwhile cannot be cancelled.
                self.emulator.http.post(f"{self.emulator.url}/v1/{held['name']}:cancel")
                held = self.emulator.get(held["name"])
            self.replies[key] = reply.status_code, held
        return self.replies[key]


@pytest.fixture(scope="module")
def submit(shared: RunningEmulator) -> Submitting:
    (shared.data / "gcs/bucket/model").mkdir(parents=True)
    (shared.data / "gcs/bucket/model/weights").touch()
    shared.call("POST", f"v1/{PARENT}/models:upload", {"modelId": PARENT_MODEL, "model": MODEL})
    return Submitting(shared)


@pytest.mark.parametrize("kind", GOOD, ids=lambda kind: kind.collection)
def test_fields_are_returned_or_rejected_by_name(submit: Submitting, kind: Kind) -> None:
    for path, _ in fields_of(kind):
        body, refusal = request_with(kind, path), refused_by(kind, path)
        status, held = submit(kind, body)
        if refusal is None:
            assert status == 200, (path, held)
            assert is_set(held, path), path
            assert canonical(kind, held) == with_boot_disks(kind, canonical(kind, body)), path
        else:
            assert status == 400, (path, held)
            violations = held["error"]["details"][0]["fieldViolations"]
            fields = [re.sub(r"\[\d+\]", "", each["field"]) for each in violations]
            assert any(each.endswith(to_snake_case(refusal)) for each in fields), path
