"""A mixed load: what is submitted, what its client does with it, and what must have come of it in the end."""

import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.client import PatientClient
from tests.vertex_emulator.running import ENDED, IMAGE
from tests.vertex_emulator.test_pipelines import ENDED as PIPELINE_ENDED
from tests.vertex_emulator.test_pipelines import model, pipeline

_HOSTNAME = re.compile(r"cmle-training-(workerpool\d)-\w+-(\d+)-\w+")
# Each start of a container leaves one line: what item, which trial, which replica.
_BEGIN = 'echo "$ITEM trial=$CLOUD_ML_TRIAL_ID $HOSTNAME" >> /gcs/faults/starts; '
_SCORE = (
    _BEGIN + "sleep 0.5; N=${0#--n=}; echo $N >> /gcs/faults/$ITEM-$CLOUD_ML_TRIAL_ID; "
    'printf \'{"timestamp": %s, "trial": "1", "global_step": "1", "score": "%s"}\\n\' $(date +%s) $N'
    " > $CLOUD_ML_HP_METRIC_FILE"
)
_WRITE = "echo done >> /gcs/faults/$ITEM-"
# A shell that is a container's first process would sit out the time between SIGTERM and SIGKILL.
_FOREVER = _BEGIN + "trap 'exit 143' TERM; sleep 600 & wait"
# The job ends with its first replica, and the other one must have written by then.
_MEET = "until [ $(ls /gcs/faults/$ITEM-* | wc -l) -ge 2 ]; do sleep 0.1; done"
_PROGRAMS = {
    "succeeds": _BEGIN + "sleep 0.7; " + _WRITE,
    "runs long": _BEGIN + "sleep 4; " + _WRITE,
    "fails": _BEGIN + "sleep 0.3; exit 3",
    "times out": _FOREVER,
    "is cancelled": _FOREVER,
    "is deleted": _BEGIN + _WRITE,
    "has two replicas": _BEGIN + "sleep 1; " + _WRITE + "$HOSTNAME; " + _MEET,
    "study": _SCORE,
    "study is cancelled": _FOREVER,
    "pipeline": _BEGIN
    + "sleep 0.5; mkdir -p /gcs/${AIP_MODEL_DIR#gs://}; echo 1 > /gcs/${AIP_MODEL_DIR#gs://}weights; "
    + _WRITE,
    "pipeline is cancelled": _FOREVER,
}
_WEIGHTS = (4, 2, 2, 1, 2, 2, 2, 3, 1, 2, 1)


@dataclass
class Item:
    """One thing of the load. `outcome` is filled in when nothing more comes of it."""

    name: str
    kind: str
    resource: str | None = None
    was_cancelled: bool = False
    outcome: dict[str, Any] = field(default_factory=dict)

    def step(self, client: PatientClient, files: Path) -> bool:
        """Do what a user does next; whether that was all."""
        if self.resource is None:
            self.resource = client.create(self.collection, self.body())
            return False
        job = client.get(self.resource)
        if job is None:
            raise AssertionError(f"{self.name}: {self.resource} is lost")
        if job["state"] in ENDED | PIPELINE_ENDED:
            self.outcome = _outcome(job, "cancelled" in self.kind)
            if self.kind == "pipeline":
                uploaded = client.get(job["modelToUpload"]["name"]) or {}
                self.outcome["model"] = (uploaded.get("displayName"), uploaded.get("versionId"))
            if self.kind == "is deleted":
                client.delete(self.resource)
                self.outcome["deleted"] = client.get(self.resource) is None
            return True
        has_begun = f"{self.name} " in _text(files / "starts")
        if "cancelled" in self.kind and has_begun and not self.was_cancelled:
            client.cancel(self.resource)
            self.was_cancelled = True
        return False

    @property
    def collection(self) -> str:
        by_kind = {"study": "hyperparameterTuningJobs", "pipeline": "trainingPipelines"}
        return by_kind.get(self.kind.split()[0], "customJobs")

    def body(self) -> dict[str, Any]:
        container = {
            "imageUri": IMAGE,
            "command": ["sh", "-c", _PROGRAMS[self.kind]],
            "env": [{"name": "ITEM", "value": self.name}],
        }
        pool = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 1, "containerSpec": container}
        spec: dict[str, Any] = {"workerPoolSpecs": [pool] * (2 if self.kind == "has two replicas" else 1)}
        if self.kind == "times out":
            spec["scheduling"] = {"timeout": "2s"}
        common = {"displayName": self.name, "labels": {"item": self.name}}
        if self.collection == "customJobs":
            return {**common, "jobSpec": spec}
        if self.collection == "trainingPipelines":
            spec["baseOutputDirectory"] = {"outputUriPrefix": f"gs://models/{self.name}"}
            return pipeline(spec, **common, modelToUpload=model(self.name), modelId=self.name)
        study = {
            "algorithm": "GRID_SEARCH",
            "metrics": [{"metricId": "score", "goal": "MAXIMIZE"}],
            "parameters": [{"parameterId": "n", "integerValueSpec": {"minValue": 1, "maxValue": 3}}],
        }
        return {**common, "studySpec": study, "trialJobSpec": spec, "maxTrialCount": 3, "parallelTrialCount": 2}


def items(seed: int) -> Iterator[Item]:
    """The load, without end: every kind once, then at random."""
    dice = random.Random(seed)
    kinds = list(_PROGRAMS)
    dice.shuffle(kinds)
    number = 0
    while True:
        kind = kinds[number] if number < len(kinds) else dice.choices(list(_PROGRAMS), _WEIGHTS)[0]
        yield Item(f"item-{number:04d}", kind)
        number += 1


def traces(files: Path) -> dict[str, Any]:
    """What containers left: how often each replica was started, and all that they wrote."""
    starts = [_HOSTNAME.sub(r"\1-\2", line) for line in _lines(files / "starts")]
    outputs = {_HOSTNAME.sub(r"\1-\2", path.name): path.read_text() for path in sorted(files.glob("item-*"))}
    return {"starts": Counter(starts), "outputs": outputs}


def _outcome(job: dict[str, Any], was_cancelled: bool) -> dict[str, Any]:
    message = re.sub(r" To find out more .*", "", job.get("error", {}).get("message", ""))
    # How many trials a study had when it was cancelled is a matter of moments.
    trials = [] if was_cancelled else job.get("trials", [])
    return {
        "state": job["state"],
        "message": message,
        "trials": [
            (trial["id"], trial["state"], trial["parameters"], trial.get("finalMeasurement", {}).get("metrics"))
            for trial in trials
        ],
    }


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _lines(path: Path) -> list[str]:
    return _text(path).splitlines()
