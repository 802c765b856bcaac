"""What a preview changes of the cloud's resources: data that is lost, roles that are granted or revoked, and others."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..runtime import DYNAMIC_TYPE
from .changes import IMAGE_TYPE, KINDS_BY_TYPE, PACKAGE_TYPE, input_changes, is_part_of_schedule, is_unknown, show
from .document import Step

DATA_BY_TYPE = {
    "gcp:artifactregistry/repository:Repository": "images",
    "gcp:bigquery/dataset:Dataset": "tables",
    "gcp:bigquery/table:Table": "rows",
    "gcp:filestore/instance:Instance": "files",
    "gcp:kms/cryptoKey:CryptoKey": "key versions, without which what they encrypt is lost",
    "gcp:kms/keyRing:KeyRing": "keys",
    "gcp:logging/projectBucketConfig:ProjectBucketConfig": "logs",
    "gcp:pubsub/subscription:Subscription": "messages",
    "gcp:pubsub/topic:Topic": "messages",
    "gcp:secretmanager/secret:Secret": "secret versions",
    "gcp:secretmanager/secretVersion:SecretVersion": "a secret's value",
    "gcp:storage/bucket:Bucket": "objects: models, outputs and packages",
    "gcp:storage/bucketObject:BucketObject": "an object",
    "gcp:vertex/aiDataset:AiDataset": "data items",
    "gcp:vertex/aiPersistentResource:AiPersistentResource": "machines, with the jobs that run on them",
    "gcp:vertex/aiTensorboard:AiTensorboard": "experiments",
}
"""Types of resources that lose something when they are deleted, and what."""


@dataclass(frozen=True)
class DataLoss:
    """A resource that holds data and is deleted: `action` is `delete` or `replace`. `id` names it in the cloud."""

    name: str
    type: str
    action: str
    id: str
    data: str


def data_losses(steps: Iterable[Step]) -> list[DataLoss]:
    """Find the resources with data that a preview deletes or replaces, without those that the cloud keeps."""
    return [
        DataLoss(step.name, step.type, step.op, _cloud_name(step), DATA_BY_TYPE[step.type])
        for step in steps
        if step.type in DATA_BY_TYPE and step.op in ("delete", "replace") and not step.is_retained
    ]


def _cloud_name(step: Step) -> str:
    inputs = step.old_inputs or {}
    keys = ("name", "repositoryId", "secretId", "datasetId", "tableId", "displayName")
    return next((text for key in keys if (text := show(inputs.get(key)))), step.name)


_GRANT_SUFFIXES = ("iammember", "iambinding", "iampolicy", "iammemberremove")
_GRANT_FIELDS = ("role", "member", "members", "condition", "policyData")
_LOCATION_FIELDS = ("project", "location")


@dataclass(frozen=True)
class Grant:
    """A role that appears (`is_new`) or goes. `target` is what it is granted on."""

    is_new: bool
    role: str
    member: str
    target: str


def grants(steps: Iterable[Step]) -> list[Grant]:
    """Find the roles that a preview grants or revokes. A changed grant is one that goes and one that appears."""
    found: list[Grant] = []
    for step in steps:
        if not is_grant(step) or step.op == "same":
            continue
        sides = (step.old_inputs, False), (step.new_inputs, True)
        described = [_grant(inputs, is_new) for inputs, is_new in sides if inputs is not None]
        if len({(each.role, each.member, each.target) for each in described}) == len(described):
            found += described
    return found


def is_grant(step: Step) -> bool:
    """Return whether a step is of a resource that grants roles."""
    return step.type.lower().endswith(_GRANT_SUFFIXES)


def _grant(inputs: Any, is_new: bool) -> Grant:
    members = inputs.get("member") or inputs.get("members") or inputs.get("policyData")
    targets = [key for key in sorted(inputs) if key not in (*_GRANT_FIELDS, *_LOCATION_FIELDS)]
    target_text = " ".join(str(show(inputs[key])) for key in targets)
    target = target_text or str(show(inputs.get("project")))
    role = str(show(inputs.get("role")) or "a policy")
    condition = f" if {_condition(inputs['condition'])}" if inputs.get("condition") else ""
    return Grant(is_new, role + condition, str(show(members)), target)


def _condition(condition: Any) -> str:
    """Return a condition's expression, whole: what limits a grant may stand anywhere in it."""
    expression = condition.get("expression") if isinstance(condition, Mapping) else None
    if isinstance(expression, str) and not is_unknown(expression):
        return expression
    return str(show(condition))


_BOOKKEEPING_TYPES = {f"{DYNAMIC_TYPE}{name}" for name in ("Completion", "Ledger")}
_OWN_TYPES = {IMAGE_TYPE, PACKAGE_TYPE, *KINDS_BY_TYPE, *_BOOKKEEPING_TYPES}
_UNCHANGED = ("same", "read", "refresh")


@dataclass(frozen=True)
class OtherChange:
    """A change of a resource that no other finding describes; `fields` are the inputs that differ."""

    op: str
    type: str
    name: str
    fields: tuple[str, ...]


def others(steps: Iterable[Step]) -> list[OtherChange]:
    """Find the changes of resources that no other finding describes, and that are more than a group of others."""
    return [
        OtherChange(
            step.op,
            step.type,
            step.name,
            tuple(sorted({str(change.path[0]) for change in input_changes(step)})),
        )
        for step in steps
        if step.op not in _UNCHANGED and step.type not in _OWN_TYPES and not is_grant(step)
        if not step.is_component and not is_part_of_schedule(step)
    ]
