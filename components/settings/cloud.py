"""The rules for the keys of a stack file that are for the target `gcp`."""

import re
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from typing import Any

from vertex_api.estimates import prices
from vertex_api.estimates.availability import REGIONS
from vertex_api.messages import KeyPath, value_at
from vertex_api.names import closest_name, did_you_mean
from vertex_api.scalars import to_seconds
from vertex_api.validation import formats, pools
from vertex_api.validation.formats import Violation

from ..plan import job_rules
from ..plan.plan import resource_pools
from ..schema import shapes
from . import builders

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
    "bucket": ("deleteAfterDays", "softDelete", "kmsKey", "labels", "protect"),
    "tensorboard": ("labels", "protect"),
}
_LABELLED = [key for key, fields in _ONLY_IF_CREATED.items() if "labels" in fields]
"""The parts of a stack file that have labels of their own, which win over those of the stack."""
_CREATING_KEYS = {"peering": "prefixLength", "attachment": "subnetwork"}

_DAY_SECONDS = 86_400
_MAX_LEAD = timedelta(days=1)
"""How far ahead of this machine's date another time zone may be."""
_REGIONAL_RESOURCES: dict[KeyPath, str] = {
    ("kmsKey",): "key",
    ("bucket", "kmsKey"): "key",
    ("network", "attachment", "existing"): "attachment",
    ("tensorboard", "existing"): "TensorBoard",
}
"""By path, what a resource name there is the name of."""


def violations(stack_values: Mapping[str, Any]) -> Iterator[Violation]:
    """Find the rules of the target `gcp` that a stack breaks, whose values are a `shapes.Stack`."""
    for key in _REQUIRED:
        if key not in stack_values:
            default = f"; set it, or gcp:{key}" if key != "projectNumber" else ""
            yield (key,), f"is required by the target gcp{default}"
    yield from check_place(stack_values)
    paths: list[KeyPath] = [("labels",), *((part, "labels") for part in _LABELLED)]
    for path in paths:
        yield from formats.check_labels(value_at(stack_values, path) or {}, path)
    reserved = job_rules.labels(stack_values.get("labels", {}))
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
    yield from _soft_delete(stack_values.get("bucket", {}).get("softDelete", "0s"))
    if "tensorboard" in stack_values and stack_values.get("identity", {}).get("useVertexAi") is False:
        message = "must be true with tensorboard: the account uploads to it as a user of Vertex AI"
        yield ("identity", "useVertexAi"), message
    yield from builders.stack_violations(stack_values)
    yield from _network(stack_values.get("network"))
    for at, pool in resource_pools(stack_values):
        yield from _pool(pool, at)
    yield from _regions(stack_values)
    if "prices" in stack_values:
        for path, message in _prices(stack_values["prices"], stack_values.get("region")):
            yield ("prices", *path), message


def check_place(values: Mapping[str, Any]) -> Iterator[Violation]:
    """Find a `project` and a `region` that none can be: they are parts of every URL, and the region of its host."""
    project, region = values.get("project"), values.get("region")
    if project is not None and not _PROJECT.fullmatch(project):
        form = "6 to 30 lower-case letters, digits and hyphens, as `gcloud projects list` says"
        yield ("project",), f'"{project}" is not the id of a project: {form}'
    if region is not None and not _REGION.fullmatch(region):
        yield ("region",), f'"{region}" is not the name of a region, such as us-central1'


def _soft_delete(retention: str) -> Iterator[Violation]:
    """Cloud Storage's page "Soft delete": at least 7 days and at most 90, or 0 for none."""
    seconds = to_seconds(retention)
    if seconds % 1 or (seconds and not 7 * _DAY_SECONDS <= seconds <= 90 * _DAY_SECONDS):
        yield ("bucket", "softDelete"), f'"{retention}" is neither "0s" nor whole seconds from "604800s" to "7776000s"'


def _network(network_config: Mapping[str, Any] | None) -> Iterator[Violation]:
    if network_config is None:
        return
    if ("peering" in network_config) == ("attachment" in network_config):
        yield ("network",), "needs exactly one of peering and attachment"
    attachment = network_config.get("attachment")
    if "grant" in (attachment or {}) and not {"subnetwork", "dnsPeering"} & (attachment or {}).keys():
        yield ("network", "attachment", "grant"), "has no effect without subnetwork or dnsPeering; remove it"
    if attachment is not None and ("existing" in attachment) == ("subnetwork" in attachment):
        yield ("network", "attachment"), "needs exactly one of existing and subnetwork"
    for part, creating_key in _CREATING_KEYS.items():
        if "name" in network_config.get(part, {}) and creating_key not in network_config[part]:
            yield ("network", part, "name"), f"has no effect without {creating_key}: the stack creates nothing to name"
    length = network_config.get("peering", {}).get("prefixLength")
    if length is not None and not 8 <= length <= 24:
        yield ("network", "peering", "prefixLength"), f"{length} is not between 8 and 24"


def _pool(pool: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
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


def _regions(values: Mapping[str, Any]) -> Iterator[Violation]:
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


def _prices(declared_prices: shapes.Prices, own_region: str | None = None) -> Iterator[Violation]:
    """Find unknown names and regions, negative prices and wrong dates in a stack's prices. `own_region` is valid."""
    try:
        if date.fromisoformat(declared_prices["asOf"]) > date.today() + _MAX_LEAD:
            yield ("asOf",), f'"{declared_prices["asOf"]}" must not be in the future'
    except ValueError:
        yield ("asOf",), f'"{declared_prices["asOf"]}" is not a date, such as 2026-07-30'
    if not declared_prices["source"].strip():
        yield ("source",), "is empty; write where the prices come from"
    known_regions = REGIONS | {own_region}
    for kind, known in prices.price_names().items():
        for name, regions in declared_prices.get(kind, {}).items():  # type: ignore[attr-defined]
            if name not in known:
                yield (kind, name), f"is not a name that has a price{did_you_mean(name, known)}"
            for region, usd in regions.items():
                if region not in known_regions:
                    closest = closest_name(region, REGIONS)
                    hint = f"; did you mean {closest}?" if closest else ", such as us-central1"
                    yield (kind, name, region), f"is not a known region{hint}"
                if usd < 0:
                    yield (kind, name, region), f"{usd} is below zero"
