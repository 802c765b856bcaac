"""Generation of names, from those of project and stack, for what a stack creates in its Google Cloud project."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, cast

from ..schema import shapes

_DIGEST_LENGTH = 8
"""Hex digits of the digest at the end of a truncated name."""


def with_defaults(pulumi_project: str, stack: str, values: Mapping[str, Any]) -> shapes.Cloud:
    """Return the keys of `shapes.Cloud` in valid `values`, with default names."""
    cloud = {key: values[key] for key in shapes.Cloud.__annotations__ if key in values}
    registry, identity, bucket = (dict(values.get(key, {})) for key in ("registry", "identity", "bucket"))
    board = dict(values.get("tensorboard", {}))
    if _is_created(registry):
        registry.setdefault("repository", _letter_first(pulumi_project, stack))
    if _is_created(identity):
        identity.setdefault("account", _account_id(pulumi_project, stack))
    if _is_created(bucket):
        bucket.setdefault("name", _name(63, values["project"], pulumi_project, stack))
    if _is_created(board):
        board.setdefault("displayName", f"{pulumi_project}-{stack}")
    if "alerts" in values:
        cloud["alerts"] = {"displayName": f"{pulumi_project}-{stack}: failed training jobs", **values["alerts"]}
    network = _network(pulumi_project, stack, values)
    if "tensorboard" in values:
        cloud["tensorboard"] = board
    cloud["scheduling"] = dict(values.get("scheduling", {}))
    for key in ("scheduler", "workflow"):
        default = {"account": _account_id(pulumi_project, stack, key)}
        cloud["scheduling"][key] = cloud["scheduling"].get(key) or default
    cloud |= {**network, "registry": registry, "identity": identity, "bucket": bucket}
    return cast(shapes.Cloud, cloud)


def role_id(project: str, pulumi_project: str, stack: str, *purpose: str) -> str:
    """Return the id of a custom role of the stack: letters, digits and underscores, at most 64 (IAM's page on roles).

    `purpose` tells several ones of a stack apart.
    """
    return _name(63, "vertex-training", project, pulumi_project, stack, *purpose).replace("-", "_")


def builder_account(pulumi_project: str, stack: str) -> str:
    """Return the id of the stack's account for builds."""
    return _account_id(pulumi_project, stack, "build")


def _network(pulumi_project: str, stack: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the key `network` by itself, if there is one, with names of a range and an attachment to create.

    A network is often shared by several projects, so the range's name has the project's.
    """
    network = dict(values.get("network", {}))
    if "prefixLength" in network.get("peering", {}):
        default = _letter_first(values["project"], pulumi_project, stack)
        network["peering"] = {"name": default, **network["peering"]}
    if "subnetwork" in network.get("attachment", {}):
        default = _letter_first(pulumi_project, stack)
        network["attachment"] = {"name": default, **network["attachment"]}
    return {"network": network} if network else {}


def _is_created(config_part: Mapping[str, Any]) -> bool:
    """Whether the stack creates the registry, account, bucket or TensorBoard that these keys describe."""
    return not config_part.keys() & {"existing", "url"}


def _slug(*parts: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")


def _name(max_length: int, *parts: str, prefix: str = "") -> str:
    """Return a name of at most this length. A digest of all parts keeps truncated names apart."""
    name = prefix + _slug(*parts)
    if len(name) <= max_length:
        return name
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{name[: max_length - _DIGEST_LENGTH - 1].strip('-')}-{digest}"


def _letter_first(*parts: str) -> str:
    """Repositories, ranges and attachments have at most 63 characters and begin with a letter."""
    return _name(63, *parts, prefix="" if _slug(*parts)[:1].isalpha() else "train-")


def _account_id(*parts: str) -> str:
    """A service account's id has 6 to 30 characters and begins with a letter."""
    slug = _slug(*parts)
    return _name(30, *parts, prefix="" if len(slug) >= 6 and slug[0].isalpha() else "train-")


def slug(name: str) -> str:
    """Return a name with the characters only that image repositories and buckets allow."""
    return re.sub(r"[^a-z0-9-]+", "-", name.lower()).strip("-")
