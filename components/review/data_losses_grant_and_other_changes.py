"""What a preview does with resources that hold data, with grants of roles, and with all others."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .changed_images_and_packages import IMAGE_TYPE, PACKAGE_TYPE
from .changed_jobs_and_causes import KINDS_BY_TYPE
from .changed_schedules_and_causes import is_part_of_schedule
from .input_changes import find_input_changes, format_short_value_or_none
from .preview_document import Step

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
_GRANT_SUFFIXES = ("iammember", "iambinding", "iampolicy", "iammemberremove")
_GRANT_FIELDS = ("role", "member", "members", "condition", "policyData")
_LOCATION_FIELDS = ("project", "location")
_BOOKKEEPING_TYPES = {f"pulumi-python:dynamic/vertex:{name}" for name in ("Completion", "Ledger")}
_OWN_TYPES = {IMAGE_TYPE, PACKAGE_TYPE, *KINDS_BY_TYPE, *_BOOKKEEPING_TYPES}
_OPERATIONS_WITHOUT_CHANGE = ("same", "read", "refresh")


@dataclass(frozen=True)
class DataLoss:
    """A resource that holds data and is deleted: `action` is `delete` or `replace`. `id` names it in the cloud."""

    name: str
    type: str
    action: str
    id: str
    data: str


@dataclass(frozen=True)
class Grant:
    """A role that appears (`is_new`) or goes. `target` is what it is granted on."""

    is_new: bool
    role: str
    member: str
    target: str


@dataclass(frozen=True)
class OtherChange:
    """A change of a resource that no other finding describes; `fields` are the inputs that differ."""

    op: str
    type: str
    name: str
    fields: tuple[str, ...]


def find_data_losses(steps: Iterable[Step]) -> list[DataLoss]:
    """Find the resources with data that a preview deletes or replaces, without those that the cloud keeps."""
    return [
        DataLoss(step.name, step.type, step.op, _get_cloud_name(step), DATA_BY_TYPE[step.type])
        for step in steps
        if step.type in DATA_BY_TYPE and step.op in ("delete", "replace") and not step.is_retained
    ]


def find_grant_changes(steps: Iterable[Step]) -> list[Grant]:
    """Find the roles that a preview grants or revokes. A changed grant is one that goes and one that appears."""
    grants: list[Grant] = []
    for step in steps:
        if not _is_grant(step) or step.op == "same":
            continue
        sides = (step.old_inputs, False), (step.new_inputs, True)
        described = [_build_grant(inputs, is_new) for inputs, is_new in sides if inputs is not None]
        if len({(each.role, each.member, each.target) for each in described}) == len(described):
            grants += described
    return grants


def find_changes_of_other_resources(steps: Iterable[Step]) -> list[OtherChange]:
    """Find the changes of resources that no other finding describes, and that are more than a group of others."""
    return [
        OtherChange(
            step.op,
            step.type,
            step.name,
            tuple(sorted({str(change.path[0]) for change in find_input_changes(step)})),
        )
        for step in steps
        if step.op not in _OPERATIONS_WITHOUT_CHANGE and step.type not in _OWN_TYPES and not _is_grant(step)
        if not step.is_component and not is_part_of_schedule(step)
    ]


def _is_grant(step: Step) -> bool:
    return step.type.lower().endswith(_GRANT_SUFFIXES)


def _build_grant(inputs: Any, is_new: bool) -> Grant:
    members = inputs.get("member") or inputs.get("members") or inputs.get("policyData")
    targets = [key for key in sorted(inputs) if key not in (*_GRANT_FIELDS, *_LOCATION_FIELDS)]
    target_text = " ".join(str(format_short_value_or_none(inputs[key])) for key in targets)
    target = target_text or str(format_short_value_or_none(inputs.get("project")))
    condition = f" if {format_short_value_or_none(inputs['condition'])}" if inputs.get("condition") else ""
    role = str(format_short_value_or_none(inputs.get("role")) or "a policy")
    return Grant(is_new, role + condition, str(format_short_value_or_none(members)), target)


def _get_cloud_name(step: Step) -> str:
    inputs = step.old_inputs or {}
    keys = ("name", "repositoryId", "secretId", "datasetId", "tableId", "displayName")
    return next((text for key in keys if (text := format_short_value_or_none(inputs.get(key)))), step.name)
