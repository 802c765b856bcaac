"""The rules for the keys of a stack file that are for the target `gcp`."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.messages import KeyPath, value_at
from vertex_api.validation import formats, pools
from vertex_api.validation.formats import Violation

from ..jobs.identity import label_violations
from .image_builder_rules import find_stack_builder_violations

PERSISTENT_RESOURCE = "persistentResource"
"""The key of the persistent resource. It is also its name among costs: names of jobs are in lower case."""
_PROJECT = re.compile(r"([a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]")
"""Resource Manager's page on projects. Older projects belong to a domain: example.com:project."""
_REGION = re.compile(r"[a-z]+(-[a-z]+)+[0-9]+")
_REQUIRED = ("project", "projectNumber", "region")
_CHOICES = {
    "registry": ("existing", "url", "repository"),
    "identity": ("existing", "account"),
    "bucket": ("existing", "name"),
    "tensorboard": ("existing", "displayName"),
}
_ONLY_IF_CREATED = {
    "registry": ("project", "location", "immutableTags", "keep", "deleteUntaggedAfter", "kmsKey", "labels", "protect"),
    "identity": ("submitters", "useVertexAi"),
    "bucket": ("deleteAfterDays", "kmsKey", "labels", "protect"),
    "tensorboard": ("labels", "protect"),
}
_CREATING_KEYS = {"peering": "prefixLength", "attachment": "subnetwork"}

_REGIONAL_RESOURCES: dict[KeyPath, str] = {
    ("kmsKey",): "key",
    ("bucket", "kmsKey"): "key",
    ("network", "attachment", "existing"): "attachment",
    ("tensorboard", "existing"): "TensorBoard",
}
"""By path, what a resource name there is the name of."""


def find_stack_violations(stack_values: Mapping[str, Any]) -> Iterator[Violation]:
    """Find the rules of the target `gcp` that a stack breaks, whose values are a `stack_config_types.Stack`."""
    for key in _REQUIRED:
        if key not in stack_values:
            yield (key,), "is required by the target gcp"
    yield from _find_project_and_region_format_violations(stack_values)
    for path in (("labels",), *((part, "labels") for part in ("registry", "bucket", "tensorboard"))):
        yield from formats.check_labels(value_at(stack_values, path) or {}, path)
    reserved = label_violations(stack_values.get("labels", {}))
    yield from ((("labels", *path), message) for path, message in reserved)
    for key, choices in _CHOICES.items():
        part, name_key = stack_values.get(key, {}), choices[-1]
        chosen = [choice for choice in choices if choice in part]
        if len(chosen) > 1:
            yield (key,), f"takes one of {', '.join(choices)}, not {' and '.join(chosen)}"
        if chosen and name_key not in chosen:
            message = f"has no effect on an existing resource; remove it, or name the resource with {name_key}"
            yield from (((key, field), message) for field in _ONLY_IF_CREATED[key] if field in part)
    scheduling = stack_values.get("scheduling", {})
    for key in ("scheduler", "workflow"):
        if len(scheduling.get(key, {})) > 1:
            yield ("scheduling", key), "takes one of existing and account, not both"
    if not _REGION.fullmatch(scheduling.get("region", "us-central1")):
        yield ("scheduling", "region"), f'"{scheduling["region"]}" is not the name of a region, such as us-central1'
    if stack_values.get("registry", {}).get("legacyAgent") and "legacyBuckets" not in stack_values["registry"]:
        yield ("registry", "legacyAgent"), "has no effect without legacyBuckets; remove it"
    if "tensorboard" in stack_values and stack_values.get("identity", {}).get("useVertexAi") is False:
        message = "must be true with tensorboard: the account uploads to it as a user of Vertex AI"
        yield ("identity", "useVertexAi"), message
    yield from find_stack_builder_violations(stack_values)
    yield from _find_network_config_violations(stack_values.get("network"))
    for at, pool in iterate_resource_pools_with_paths(stack_values):
        yield from _find_resource_pool_violations(pool, at)
    yield from _find_region_mismatches(stack_values)


def iterate_resource_pools_with_paths(values: Mapping[str, Any]) -> Iterator[tuple[KeyPath, Mapping[str, Any]]]:
    """Iterate over the persistent resource's pools and their paths. `values` are a `stack_config_types.Cloud`."""
    for index, pool in enumerate(values.get(PERSISTENT_RESOURCE, {}).get("resourcePools", ())):
        yield (PERSISTENT_RESOURCE, "resourcePools", index), pool


def _find_project_and_region_format_violations(values: Mapping[str, Any]) -> Iterator[Violation]:
    """The project and the region are parts of every URL, so a mistake in them would fail every call."""
    project, region = values.get("project"), values.get("region")
    if project is not None and not _PROJECT.fullmatch(project):
        form = "6 to 30 lower-case letters, digits and hyphens, as `gcloud projects list` says"
        yield ("project",), f'"{project}" is not the id of a project: {form}'
    if region is not None and not _REGION.fullmatch(region):
        yield ("region",), f'"{region}" is not the name of a region, such as us-central1'


def _find_network_config_violations(network_config: Mapping[str, Any] | None) -> Iterator[Violation]:
    if network_config is None:
        return
    if ("peering" in network_config) == ("attachment" in network_config):
        yield ("network",), "needs exactly one of peering and attachment"
    attachment = network_config.get("attachment")
    if attachment is not None and ("existing" in attachment) == ("subnetwork" in attachment):
        yield ("network", "attachment"), "needs exactly one of existing and subnetwork"
    for part, creating_key in _CREATING_KEYS.items():
        if "name" in network_config.get(part, {}) and creating_key not in network_config[part]:
            yield ("network", part, "name"), f"has no effect without {creating_key}: the stack creates nothing to name"
    length = network_config.get("peering", {}).get("prefixLength")
    if length is not None and not 8 <= length <= 24:
        yield ("network", "peering", "prefixLength"), f"{length} is not between 8 and 24"


def _find_resource_pool_violations(pool: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    machine = pool["machineSpec"]
    yield from pools.check_machine(machine, (*at, "machineSpec"))
    message = "is not supported for a persistent resource by Pulumi's Google Cloud provider; remove it"
    for field in sorted(machine.keys() - {"machineType", "acceleratorType", "acceleratorCount"}):
        yield (*at, "machineSpec", field), message
    yield from pools.check_disk(pool.get("diskSpec", {}), (*at, "diskSpec"))
    if scaling := pool.get("autoscalingSpec"):
        # The service's own client says so of AutoscalingSpec.
        minimum, maximum = scaling["minReplicaCount"], scaling["maxReplicaCount"]
        count = pool.get("replicaCount", minimum)
        if minimum >= maximum:
            yield (*at, "autoscalingSpec", "minReplicaCount"), f"{minimum} must be below maxReplicaCount, {maximum}"
        elif not minimum <= count <= maximum:
            yield (*at, "replicaCount"), f"{count} must be from {minimum} to {maximum}, the limits of autoscalingSpec"


def _find_region_mismatches(values: Mapping[str, Any]) -> Iterator[Violation]:
    """A job's bucket, keys, attachment and TensorBoard are in its own region.

    Sources: python-aiplatform#885, Google's pages on CMEK and on TensorBoard with custom training.
    """
    region = values.get("region")
    if region is None or not _REGION.fullmatch(region):
        return
    location = values.get("bucket", {}).get("location", region).lower()
    if location != region:
        yield ("bucket", "location"), f'"{location}" must be the region of the jobs, {region}: Vertex AI refuses others'
    registry = values.get("registry", {})
    if "kmsKey" in registry and not registry.keys() & {"existing", "url"}:
        # Artifact Registry's page on customer-managed keys: a repository in a multi-region needs a key of that one.
        location, key_location = registry.get("location", region).lower(), registry["kmsKey"].split("/")[3]
        if key_location != location:
            message = f'the key is in "{key_location}"; it must be in the location of the repository, {location}'
            yield ("registry", "kmsKey"), message
    if "tensorboard" in values and "existing" in (bucket := values.get("bucket", {})) and "location" not in bucket:
        message = f"is required with tensorboard, whose bucket must be in the region of the jobs, {region}"
        yield ("bucket", "location"), message
    for path, noun in _REGIONAL_RESOURCES.items():
        name = value_at(values, path)
        if name and (location := name.split("/")[3]) != region:
            yield path, f'the {noun} is in "{location}"; it must be in the region of the jobs, {region}'
