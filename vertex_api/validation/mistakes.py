"""Rules for declarations beyond those of the service: settings that are very likely mistakes, and other regions."""

import re
from collections.abc import Iterator, Mapping
from functools import reduce
from operator import getitem
from typing import Any

from vertex_api.jobspec import REDUCTION_SERVER_POOL, is_reduction_server
from vertex_api.machines import accelerator_of
from vertex_api.messages import KeyPath
from vertex_api.names import HYPERPARAMETER_TUNING_JOB, Kind
from vertex_api.scalars import quote
from vertex_api.validation.formats import Violation
from vertex_api.validation.study import walk_parameters

_NO_PROGRESS = ("maxNumTrialsNoProgress", "maxDurationNoProgress")
_GOOGLE_REGISTRY = re.compile(r"[a-z0-9-]+-docker\.pkg\.dev/.+|([a-z]+\.)?gcr\.io/.+")


def likely_mistakes(kind: Kind, job: Mapping[str, Any]) -> Iterator[Violation]:
    """Find the likely mistakes in a canonical job."""
    spec, at = job[kind.spec_field], (kind.spec_field,)
    for index, pool in enumerate(spec["workerPoolSpecs"]):
        for task in ("containerSpec", "pythonPackageSpec"):
            yield from _repeated_variables(pool.get(task, {}), (*at, "workerPoolSpecs", index, task))
    yield from _useless_reduction_server(spec, at)
    if spec.get("experimentRun") and not spec.get("experiment"):
        yield (*at, "experiment"), "is required beside experimentRun: the experiment that it is a run of"
    if kind == HYPERPARAMETER_TUNING_JOB:
        yield from _parameter_mistakes(job["studySpec"]["parameters"], ("studySpec", "parameters"))
        yield from _useless_stopping(job["studySpec"], ("studySpec",))


def foreign_executors(kind: Kind, job: Mapping[str, Any]) -> Iterator[Violation]:
    """Find executor images outside Artifact Registry, which only the emulator takes (discovery document,
    PythonPackageSpec)."""
    for index, pool in enumerate(job[kind.spec_field]["workerPoolSpecs"]):
        image = pool.get("pythonPackageSpec", {}).get("executorImageUri")
        if image and not _GOOGLE_REGISTRY.fullmatch(image):
            message = f'"{image}" is not in Artifact Registry; use a prebuilt image for training of Google\'s'
            yield (kind.spec_field, "workerPoolSpecs", index, "pythonPackageSpec", "executorImageUri"), message


def missing_container(pipeline: Mapping[str, Any]) -> Iterator[Violation]:
    """Find a model without a serving container, which only AutoML models may lack (discovery document, Model)."""
    if "containerSpec" not in pipeline.get("modelToUpload", {"containerSpec": {}}):
        yield ("modelToUpload", "containerSpec"), "is required: the container that serves the model"


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


def region_mismatches(job: Mapping[str, Any], job_spec_path: KeyPath, region: str) -> Iterator[Violation]:
    """Find resources of a valid canonical job that are not in a region, with its CustomJobSpec at `job_spec_path`.

    Discovery document, EncryptionSpec ("the key needs to be in the same region") and, by Google's page on Private
    Service Connect interfaces, the network attachment; by its page on TensorBoard with custom training, the TensorBoard
    ("the same region"). TrainingPipeline: a model is "always uploaded into the …
    Location in which this pipeline is"; `protectedArtifactLocationId`: "only when the location is different".
    """
    yield from _check_region("model", job.get("parentModel", ""), region, ("parentModel",))
    key = job.get("encryptionSpec", {}).get("kmsKeyName", "")
    yield from _check_region("key", key, region, ("encryptionSpec", "kmsKeyName"))
    spec: Mapping[str, Any] = reduce(getitem, job_spec_path, job)  # type: ignore[arg-type]
    attachment = spec.get("pscInterfaceConfig", {}).get("networkAttachment", "")
    path: KeyPath = (*job_spec_path, "pscInterfaceConfig", "networkAttachment")
    yield from _check_region("attachment", attachment, region, path)
    board = spec.get("tensorboard", "")
    yield from _check_region("TensorBoard", board, region, (*job_spec_path, "tensorboard"))
    if spec.get("protectedArtifactLocationId") == region:
        yield (*job_spec_path, "protectedArtifactLocationId"), f"is the region of the jobs, {region}; leave it out"


def _check_region(noun: str, resource_name: str, region: str, at: KeyPath) -> Iterator[Violation]:
    parts = resource_name.split("/")
    if len(parts) > _REGION and parts[_REGION] != region:
        yield at, f'the {noun} is in "{parts[_REGION]}"; it must be in the region of the jobs, {region}'
