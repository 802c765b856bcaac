"""What a stack file says of its Google Cloud project, completed and checked as a whole."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from components import shapes
from vertex.rules import Finding

_REQUIRED = ("project", "projectNumber", "region")
_EITHER = {
    "registry": ("existing", "url", "repository"),
    "identity": ("existing", "account"),
    "bucket": ("existing", "name"),
}
_ONLY_WHEN_MADE = {
    "registry": ("project", "location", "immutableTags", "keep", "deleteUntaggedAfter", "kmsKey", "labels", "protect"),
    "identity": ("submitters",),
    "bucket": ("deleteAfterDays", "kmsKey", "labels", "protect"),
}


def broken(values: Mapping[str, Any]) -> Iterator[Finding]:
    """Every rule that the keys of the target `gcp` break; `values` have the shape of `shapes.Stack`."""
    for key in _REQUIRED:
        if key not in values:
            yield (key,), "is required by the target gcp"
    for key, choices in _EITHER.items():
        part = values.get(key, {})
        made = choices[-1]
        if len(given := [choice for choice in choices if choice in part]) > 1:
            yield (key,), f"takes one of {', '.join(choices)}, not {' and '.join(given)}"
        if is_made_here(key, part) or made in part:
            continue
        for field in _ONLY_WHEN_MADE[key]:
            if field in part:
                yield (key, field), f"has no effect on what exists already; leave it out, or name it by {made}"
    yield from _network(values.get("network"))
    yield from _regions(values)


def completed(pulumi_project: str, stack: str, values: Mapping[str, Any]) -> shapes.Cloud:
    """The keys of `shapes.Cloud` with names for what is made here; what they say has been checked."""
    cloud = {key: values[key] for key in shapes.Cloud.__annotations__ if key in values}
    registry, identity, bucket = (dict(values.get(key, {})) for key in _EITHER)
    if is_made_here("registry", registry):
        registry.setdefault("repository", _cut(f"{pulumi_project}-{stack}", 63))
    if is_made_here("identity", identity):
        identity.setdefault("account", _account(f"{pulumi_project}-{stack}"))
    if is_made_here("bucket", bucket):
        bucket.setdefault("name", _cut(f"{values['project']}-{pulumi_project}-{stack}", 63))
    labels = values.get("labels", {})
    for key, part in (("registry", registry), ("bucket", bucket)):
        if labels and is_made_here(key, part):
            part["labels"] = {**labels, **part.get("labels", {})}
    return cast(shapes.Cloud, {**cloud, "registry": registry, "identity": identity, "bucket": bucket})


def is_made_here(key: str, part: Mapping[str, Any]) -> bool:
    """Whether what a key (`registry`, `identity`, `bucket`) means is made by the stack, and not only named by it."""
    return not any(choice in part for choice in _EITHER[key][:-1])


def _network(network: Mapping[str, Any] | None) -> Iterator[Finding]:
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


def _regions(values: Mapping[str, Any]) -> Iterator[Finding]:
    """A job's bucket, keys and attachment are in its own region (python-aiplatform#885; Google's page on CMEK)."""
    region = values.get("region")
    if region is None:
        return
    location = values.get("bucket", {}).get("location", region).lower()
    if location != region:
        yield ("bucket", "location"), f'"{location}" must be the region of the jobs, {region}: Vertex AI refuses others'
    keys = {("kmsKey",): values.get("kmsKey"), ("bucket", "kmsKey"): values.get("bucket", {}).get("kmsKey")}
    for path, key in keys.items():
        if key is not None and key.split("/")[3] != region:
            yield path, f'the key is in "{key.split("/")[3]}"; it must be in the region of the jobs, {region}'
    attachment = values.get("network", {}).get("attachment", {}).get("existing")
    if attachment is not None and attachment.split("/")[3] != region:
        message = f'the attachment is in "{attachment.split("/")[3]}"; it must be in the region of the jobs, {region}'
        yield ("network", "attachment", "existing"), message


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _cut(name: str, length: int) -> str:
    return _slug(name)[:length].strip("-")


def _account(name: str) -> str:
    """A service account's id has 6 to 30 characters and begins with a letter."""
    account = _cut(name, 30)
    return account if len(account) >= 6 and account[0].isalpha() else _cut(f"train-{account}", 30)
