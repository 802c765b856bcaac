"""The keys of a stack file for the target `gcp`: their rules, and default names for what the stack creates."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any, cast

from vertex_api.validation.rules import KeyPath, Violation, common_fields, machine_spec, worker_pools

from ..jobs.recovery.labels import find_own_label_conflicts
from ..schema import shapes

PERSISTENT_RESOURCE = "persistentResource"
"""The key of the persistent resource. It is also its name among costs: names of jobs are in lower case."""
_DIGEST_LENGTH = 8
"""Hex digits of the digest at the end of a truncated name."""
_PROJECT = re.compile(r"([a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]")
"""Resource Manager's page on projects. Older projects belong to a domain: example.com:project."""
_REGION = re.compile(r"[a-z]+(-[a-z]+)+[0-9]+")
_REQUIRED = ("project", "projectNumber", "region")
_CHOICES = {
    "registry": ("existing", "url", "repository"),
    "identity": ("existing", "account"),
    "bucket": ("existing", "name"),
}
_ONLY_IF_CREATED = {
    "registry": ("project", "location", "immutableTags", "keep", "deleteUntaggedAfter", "kmsKey", "labels", "protect"),
    "identity": ("submitters",),
    "bucket": ("deleteAfterDays", "kmsKey", "labels", "protect"),
}


def find_violations(values: Mapping[str, Any]) -> Iterator[Violation]:
    """Find every rule that the keys of the target `gcp` break. `values` have the shape of `shapes.Stack`."""
    for key in _REQUIRED:
        if key not in values:
            yield (key,), "is required by the target gcp"
    yield from _find_invalid_project_and_region(values)
    for path in (("labels",), ("registry", "labels"), ("bucket", "labels")):
        yield from common_fields.find_label_violations(reduce(lambda part, key: part.get(key, {}), path, values), path)
    yield from ((("labels", *path), message) for path, message in find_own_label_conflicts(values.get("labels", {})))
    for key, choices in _CHOICES.items():
        part, name_key = values.get(key, {}), choices[-1]
        chosen = [choice for choice in choices if choice in part]
        if len(chosen) > 1:
            yield (key,), f"takes one of {', '.join(choices)}, not {' and '.join(chosen)}"
        if chosen and name_key not in chosen:
            message = f"has no effect on an existing resource; remove it, or name the resource with {name_key}"
            yield from (((key, field), message) for field in _ONLY_IF_CREATED[key] if field in part)
    yield from _find_network_violations(values.get("network"))
    for at, pool in iterate_paths_and_pools(values):
        yield from _find_resource_pool_violations(pool, at)
    yield from _find_region_mismatches(values)


def iterate_paths_and_pools(values: Mapping[str, Any]) -> Iterator[tuple[KeyPath, Mapping[str, Any]]]:
    """Iterate over the pools of the persistent resource with their paths. `values` have the shape of `shapes.Cloud`."""
    for index, pool in enumerate(values.get(PERSISTENT_RESOURCE, {}).get("resourcePools", ())):
        yield (PERSISTENT_RESOURCE, "resourcePools", index), pool


def build_named_and_labelled_cloud(pulumi_project: str, stack: str, values: Mapping[str, Any]) -> shapes.Cloud:
    """Return the keys of `shapes.Cloud` in valid `values`, with default names for what the stack creates."""
    cloud = {key: values[key] for key in shapes.Cloud.__annotations__ if key in values}
    registry, identity, bucket = (dict(values.get(key, {})) for key in _CHOICES)
    if _is_created_here("registry", registry):
        registry.setdefault("repository", _generate_name(63, pulumi_project, stack))
    if _is_created_here("identity", identity):
        identity.setdefault("account", _generate_account_id(pulumi_project, stack))
    if _is_created_here("bucket", bucket):
        bucket.setdefault("name", _generate_name(63, values["project"], pulumi_project, stack))
    labels = values.get("labels", {})
    for key, part in (("registry", registry), ("bucket", bucket)):
        if labels and _is_created_here(key, part):
            part["labels"] = {**labels, **part.get("labels", {})}
    return cast(shapes.Cloud, {**cloud, "registry": registry, "identity": identity, "bucket": bucket})


def _is_created_here(key: str, part: Mapping[str, Any]) -> bool:
    """Whether the stack creates the resource of a key (`registry`, `identity`, `bucket`)."""
    return not any(choice in part for choice in _CHOICES[key][:-1])


def _find_invalid_project_and_region(values: Mapping[str, Any]) -> Iterator[Violation]:
    """The project and the region are parts of every URL, so a mistake in them would fail every call."""
    project, region = values.get("project"), values.get("region")
    if project is not None and not _PROJECT.fullmatch(project):
        form = "6 to 30 lower-case letters, digits and hyphens, as `gcloud projects list` says"
        yield ("project",), f'"{project}" is not the id of a project: {form}'
    if region is not None and not _REGION.fullmatch(region):
        yield ("region",), f'"{region}" is not the name of a region, such as us-central1'


def _find_network_violations(network: Mapping[str, Any] | None) -> Iterator[Violation]:
    if network is None:
        return
    if ("peering" in network) == ("attachment" in network):
        yield ("network",), "needs exactly one of peering and attachment"
    attachment = network.get("attachment")
    if attachment is not None and ("existing" in attachment) == ("subnetwork" in attachment):
        yield ("network", "attachment"), "needs exactly one of existing and subnetwork"
    length = network.get("peering", {}).get("prefixLength")
    if length is not None and not 8 <= length <= 24:
        yield ("network", "peering", "prefixLength"), f"{length} is not between 8 and 24"


def _find_resource_pool_violations(pool: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    machine = pool["machineSpec"]
    yield from machine_spec.find_machine_violations(machine, (*at, "machineSpec"))
    message = "is not supported for a persistent resource by Pulumi's Google Cloud provider; remove it"
    for field in sorted(machine.keys() - {"machineType", "acceleratorType", "acceleratorCount"}):
        yield (*at, "machineSpec", field), message
    yield from worker_pools.find_disk_violations(pool.get("diskSpec", {}), (*at, "diskSpec"))
    if scaling := pool.get("autoscalingSpec"):
        # The service's own client says so of AutoscalingSpec.
        minimum, maximum = scaling["minReplicaCount"], scaling["maxReplicaCount"]
        count = pool.get("replicaCount", minimum)
        if minimum >= maximum:
            yield (*at, "autoscalingSpec", "minReplicaCount"), f"{minimum} must be below maxReplicaCount, {maximum}"
        elif not minimum <= count <= maximum:
            yield (*at, "replicaCount"), f"{count} must be from {minimum} to {maximum}, the limits of autoscalingSpec"


def _find_region_mismatches(values: Mapping[str, Any]) -> Iterator[Violation]:
    """A job's bucket, keys and attachment are in its own region (python-aiplatform#885; Google's page on CMEK)."""
    region = values.get("region")
    if region is None or not _REGION.fullmatch(region):
        return
    location = values.get("bucket", {}).get("location", region).lower()
    if location != region:
        yield ("bucket", "location"), f'"{location}" must be the region of the jobs, {region}: Vertex AI refuses others'
    for path in (("kmsKey",), ("bucket", "kmsKey"), ("network", "attachment", "existing")):
        name: Any = reduce(lambda part, key: part.get(key, {}), path, values)
        if name and (location := name.split("/")[3]) != region:
            resource_type = "key" if path[-1] == "kmsKey" else "attachment"
            yield path, f'the {resource_type} is in "{location}"; it must be in the region of the jobs, {region}'


def _to_slug(*parts: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")


def _generate_name(max_length: int, *parts: str, prefix: str = "") -> str:
    """Return a name of at most this length. A digest of all parts keeps truncated names apart."""
    name = prefix + _to_slug(*parts)
    if len(name) <= max_length:
        return name
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{name[: max_length - _DIGEST_LENGTH - 1].strip('-')}-{digest}"


def _generate_account_id(*parts: str) -> str:
    """A service account's id has 6 to 30 characters and begins with a letter."""
    slug = _to_slug(*parts)
    return _generate_name(30, *parts, prefix="" if len(slug) >= 6 and slug[0].isalpha() else "train-")
