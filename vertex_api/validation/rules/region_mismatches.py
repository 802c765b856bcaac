"""Rules for the region of a job: other resources that it uses must be there too."""

from collections.abc import Iterator, Mapping
from functools import reduce
from operator import getitem
from typing import Any

from vertex_api.validation.rules.violation_type import KeyPath, Violation

_REGION = 3  # projects/P/locations/R/… and projects/P/regions/R/…


def find_region_mismatches(job: Mapping[str, Any], job_spec_path: KeyPath, region: str) -> Iterator[Violation]:
    """Find resources of a valid canonical job that are not in a region, with its CustomJobSpec at `job_spec_path`.

    Discovery document, EncryptionSpec ("the key needs to be in the same region") and, by Google's page on Private
    Service Connect interfaces, the network attachment; by its page on TensorBoard with custom training, the TensorBoard
    ("the same region"). TrainingPipeline: a model is "always uploaded into the …
    Location in which this pipeline is"; `protectedArtifactLocationId`: "only when the location is different".
    """
    yield from _find_region_violations("model", job.get("parentModel", ""), region, ("parentModel",))
    key = job.get("encryptionSpec", {}).get("kmsKeyName", "")
    yield from _find_region_violations("key", key, region, ("encryptionSpec", "kmsKeyName"))
    spec: Mapping[str, Any] = reduce(getitem, job_spec_path, job)  # type: ignore[arg-type]
    attachment = spec.get("pscInterfaceConfig", {}).get("networkAttachment", "")
    path: KeyPath = (*job_spec_path, "pscInterfaceConfig", "networkAttachment")
    yield from _find_region_violations("attachment", attachment, region, path)
    board = spec.get("tensorboard", "")
    yield from _find_region_violations("TensorBoard", board, region, (*job_spec_path, "tensorboard"))
    if spec.get("protectedArtifactLocationId") == region:
        yield (*job_spec_path, "protectedArtifactLocationId"), f"is the region of the jobs, {region}; leave it out"


def _find_region_violations(noun: str, resource_name: str, region: str, at: KeyPath) -> Iterator[Violation]:
    parts = resource_name.split("/")
    if len(parts) > _REGION and parts[_REGION] != region:
        yield at, f'the {noun} is in "{parts[_REGION]}"; it must be in the region of the jobs, {region}'
