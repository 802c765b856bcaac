"""What is very likely wrong in a job that the service's own rules allow: likely mistakes, and resources elsewhere."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.job import Job
from vertex_api.jobspec import REDUCTION_SERVER_POOL, is_reduction_server
from vertex_api.machines import accelerator_of
from vertex_api.messages import KeyPath, value_at
from vertex_api.scalars import quote
from vertex_api.validation.formats import Violation
from vertex_api.validation.study import walk_parameters

_NO_PROGRESS = ("maxNumTrialsNoProgress", "maxDurationNoProgress")
_GOOGLE_REGISTRY = re.compile(r"[a-z0-9-]+-docker\.pkg\.dev/.+|([a-z]+\.)?gcr\.io/.+")


def likely_mistakes(job: Job, *, on_google_cloud: bool) -> Iterator[Violation]:
    """Find the settings of a declared job that are very likely mistakes, or that only the emulator takes.

    They do not apply to requests of clients, because Google does not say that the service rejects them.
    """
    spec, at = job.job_spec, job.job_spec_path
    for index, pool in enumerate(spec["workerPoolSpecs"]):
        path: KeyPath = (*at, "workerPoolSpecs", index)
        for task in ("containerSpec", "pythonPackageSpec"):
            yield from _repeated_variables(pool.get(task, {}), (*path, task))
        if on_google_cloud:
            yield from _foreign_executor(pool, path)
    yield from _useless_reduction_server(spec, at)
    if spec.get("experimentRun") and not spec.get("experiment"):
        yield (*at, "experiment"), "is required beside experimentRun: the experiment that it is a run of"
    if study := job.study_spec:
        at = job.own_path(("studySpec",))
        yield from _parameter_mistakes(study["parameters"], (*at, "parameters"))
        yield from _useless_stopping(study, at)
    if "containerSpec" not in job.fields.get("modelToUpload", {"containerSpec": {}}):
        # Only AutoML models may lack one (discovery document, Model).
        yield ("modelToUpload", "containerSpec"), "is required: the container that serves the model"


def _foreign_executor(pool: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Find an executor image outside Artifact Registry (discovery document, PythonPackageSpec)."""
    image = pool.get("pythonPackageSpec", {}).get("executorImageUri")
    if image and not _GOOGLE_REGISTRY.fullmatch(image):
        message = f'"{image}" is not in Artifact Registry; use a prebuilt image for training of Google\'s'
        yield (*at, "pythonPackageSpec", "executorImageUri"), message


def _repeated_variables(task: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """A variable has one value; the API does not say which of two."""
    seen: set[str] = set()
    for index, entry in enumerate(task.get("env", ())):
        if entry["name"] in seen:
            yield (*at, "env", index, "name"), f"{quote(entry['name'])} is there twice"
        seen.add(entry["name"])


def _useless_reduction_server(spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Google's page on distributed training: Reduction Server serves the GPUs of the first and the second pool."""
    pools, last = spec["workerPoolSpecs"], REDUCTION_SERVER_POOL
    if len(pools) <= last or not is_reduction_server(pools[last]):
        return
    for index, pool in enumerate(pools[:last]):
        path: KeyPath = (*at, "workerPoolSpecs", index)
        if not pool:
            yield path, "is empty; Reduction Server is for the GPUs of this pool and the first"
        elif "machineSpec" in pool and accelerator_of(pool["machineSpec"]) == (None, 0):
            yield (*path, "machineSpec", "acceleratorType"), "Reduction Server is for pools with GPUs"


def _parameter_mistakes(specs: list[Mapping[str, Any]], at: KeyPath) -> Iterator[Violation]:
    """A parameter reaches the trainer as the flag --id=value; a category that is there twice is tried twice. Discovery
    document: both ends of a range are required, but clients leave out zeros."""
    for spec, path, _ in walk_parameters(specs, at):
        if "=" in spec["parameterId"]:
            message = f"{quote(spec['parameterId'])} must not contain =: trials get it as the flag --id=value"
            yield (*path, "parameterId"), message
        for name in ("doubleValueSpec", "integerValueSpec"):
            if not spec.get(name, {"minValue": 0}).keys() & {"minValue", "maxValue"}:
                yield (*path, name), "needs minValue and maxValue; one that is left out is zero"
        seen: set[str] = set()
        for index, value in enumerate(spec.get("categoricalValueSpec", {}).get("values", ())):
            if value in seen:
                yield (*path, "categoricalValueSpec", "values", index), f"{quote(value)} is there twice"
            seen.add(value)


def _useless_stopping(study: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, StudyStoppingConfig: "effective only for single-objective studies"."""
    objectives = [metric for metric in study["metrics"] if "safetyConfig" not in metric]
    for field in _NO_PROGRESS:
        if len(objectives) > 1 and field in study.get("studyStoppingConfig", {}):
            message = f"has no effect with {len(objectives)} objectives, only with one; use maxNumTrials or none"
            yield (*at, "studyStoppingConfig", field), message


_REGION = 3  # projects/P/locations/R/… and projects/P/regions/R/…


def region_mismatches(job: Job, region: str) -> Iterator[Violation]:
    """Find resources that a job uses and that are not in its region, where they must be.

    Discovery document, EncryptionSpec ("the key needs to be in the same region") and, by Google's page on Private
    Service Connect interfaces, the network attachment; by its page on TensorBoard with custom training, the TensorBoard
    ("the same region"). TrainingPipeline: a model is "always uploaded into the …
    Location in which this pipeline is"; `protectedArtifactLocationId`: "only when the location is different".
    """
    fields, at = job.fields, job.job_spec_path
    used: tuple[tuple[str, KeyPath], ...] = (
        ("model", ("parentModel",)),
        ("key", ("encryptionSpec", "kmsKeyName")),
        ("attachment", (*at, "pscInterfaceConfig", "networkAttachment")),
        ("TensorBoard", (*at, "tensorboard")),
    )
    for noun, path in used:
        parts = (value_at(fields, path) or "").split("/")
        if len(parts) > _REGION and parts[_REGION] != region:
            yield path, f'the {noun} is in "{parts[_REGION]}"; it must be in the region of the jobs, {region}'
    if job.job_spec.get("protectedArtifactLocationId") == region:
        yield (*at, "protectedArtifactLocationId"), f"is the region of the jobs, {region}; leave it out"
