"""What Google's documents say of a declared job and what the service does not say of a request; resources elsewhere.

What is likely to be a mistake and has no source that refuses it is in `vertex_api.advice`: that is a warning.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.job import Job
from vertex_api.messages import KeyPath, value_at
from vertex_api.validation.formats import Violation
from vertex_api.validation.study import walk_parameters

_GOOGLE_REGISTRY = re.compile(r"[a-z0-9-]+-docker\.pkg\.dev/.+|([a-z]+\.)?gcr\.io/.+")


def likely_mistakes(job: Job, *, on_google_cloud: bool) -> Iterator[Violation]:
    """Find what is left out though it is required, or taken by the emulator alone.

    Discovery document, Model: its container is "not required for AutoML Models" alone. They do not apply to requests of
    clients, because Google does not say that the service rejects them.
    """
    spec, at = job.job_spec, job.job_spec_path
    if on_google_cloud:
        for index, pool in enumerate(spec["workerPoolSpecs"]):
            yield from _foreign_executor(pool, (*at, "workerPoolSpecs", index))
    if study := job.study_spec:
        yield from _unlimited(study["parameters"], job.own_path(("studySpec", "parameters")))
    if "containerSpec" not in job.fields.get("modelToUpload", {"containerSpec": {}}):
        yield ("modelToUpload", "containerSpec"), "is required: the container that serves the model"


def _foreign_executor(pool: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, `executorImageUri`: "a container image in Artifact Registry"."""
    image = pool.get("pythonPackageSpec", {}).get("executorImageUri")
    if image and not _GOOGLE_REGISTRY.fullmatch(image):
        message = f'"{image}" is not in Artifact Registry; use a prebuilt image for training of Google\'s'
        yield (*at, "pythonPackageSpec", "executorImageUri"), message


def _unlimited(specs: list[Mapping[str, Any]], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, DoubleValueSpec and IntegerValueSpec: `minValue` and `maxValue` are "required". Clients leave
    out zeros, so one of both is enough."""
    for spec, path, _ in walk_parameters(specs, at):
        for name in ("doubleValueSpec", "integerValueSpec"):
            if not spec.get(name, {"minValue": 0}).keys() & {"minValue", "maxValue"}:
                yield (*path, name), "needs minValue and maxValue; one that is left out is zero"


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
