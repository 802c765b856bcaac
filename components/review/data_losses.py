"""The resources with data that a preview deletes or replaces."""

from collections.abc import Iterable
from dataclasses import dataclass

from .input_changes import format_short_value_or_none
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


@dataclass(frozen=True)
class DataLoss:
    """A resource that holds data and is deleted: `action` is `delete` or `replace`. `id` names it in the cloud."""

    name: str
    type: str
    action: str
    id: str
    data: str


def find_data_losses(steps: Iterable[Step]) -> list[DataLoss]:
    """Find the resources with data that a preview deletes or replaces, without those that the cloud keeps."""
    return [
        DataLoss(step.name, step.type, step.op, _get_cloud_name(step), DATA_BY_TYPE[step.type])
        for step in steps
        if step.type in DATA_BY_TYPE and step.op in ("delete", "replace") and not step.is_retained
    ]


def _get_cloud_name(step: Step) -> str:
    inputs = step.old_inputs or {}
    keys = ("name", "repositoryId", "secretId", "datasetId", "tableId", "displayName")
    return next((text for key in keys if (text := format_short_value_or_none(inputs.get(key)))), step.name)
