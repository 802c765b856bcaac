"""StagingBucket: the bucket that jobs write to, in their region."""

from __future__ import annotations  # loads the provider's types only if they are used

import json
from collections.abc import Iterable, Sequence

import pulumi
from pulumi import ResourceOptions
from pulumi_gcp import storage

from ...schema import shapes
from ...settings.writable_folders import WHOLE_BUCKET, WritableFolders
from .account_emails import ServiceAgentMembers
from .key_access import grant_key_use
from .propagation_retries import create_retrying_options

READER_ROLES = {"read": "roles/storage.legacyBucketReader", "view": "roles/storage.objectViewer"}
"""Of the account that jobs run as, on the whole bucket: its own properties, which clients read first
(`storage.buckets.get`), and its objects. A list is a request of the bucket, which no condition on the names of objects
allows (IAM's page "Attribute reference for IAM Conditions", resource names of Cloud Storage)."""
WRITER_ROLE = "roles/storage.objectUser"
"""Its right to write, change and delete objects, without their access lists, under a condition. A grant whose condition
changes is replaced without a gap: the provider's ID of a member has the condition in it (its iam_member.go), so both
are there until Pulumi deletes the old one at the end."""
_MAX_PARENTS = 12
"""A condition has at most twelve logical operators (IAM's page "Quotas and limits")."""


class StagingBucket(pulumi.ComponentResource):
    """A regional bucket with public access prevented, or one that exists already (`bucket.existing`).

    `uri` is `gs://name`, plain text. `member` (the account that jobs run as) may read its objects, and write those in
    its `folders`. `other_folders` are those outside the stack's own.
    """

    def __init__(
        self,
        name: str,
        bucket: shapes.Bucket,
        *,
        project: str,
        project_number: str,
        region: str,
        member: str,
        folders: WritableFolders,
        other_folders: Sequence[str] = (),
        opts: ResourceOptions | None = None,
    ) -> None:
        super().__init__("vertex:gcp:StagingBucket", name, None, opts)
        self.name = bucket.get("existing") or bucket["name"]
        self.uri = f"gs://{self.name}"
        self.resource = None
        if "existing" not in bucket:
            self.resource = self._create_bucket_and_key_grant(name, bucket, project, project_number, region)
        options = create_retrying_options(self, [self.resource] if self.resource else [])
        for suffix, role in READER_ROLES.items():
            storage.BucketIAMMember(f"{name}-{suffix}", bucket=self.name, role=role, member=member, opts=options)
        conditions: dict[str, storage.BucketIAMMemberConditionArgsDict | None]
        conditions = {f"{name}-write": build_condition(self.name, folders.own, folders.closed)}
        conditions |= {f"{name}-write-{folder}": build_condition(self.name, folder) for folder in other_folders}
        if WHOLE_BUCKET in other_folders:
            conditions = {f"{name}-write": None}
        for grant, condition in conditions.items():
            storage.BucketIAMMember(
                grant, bucket=self.name, role=WRITER_ROLE, member=member, condition=condition, opts=options
            )
        self.register_outputs({"uri": self.uri})

    def _create_bucket_and_key_grant(
        self, name: str, bucket: shapes.Bucket, project: str, project_number: str, region: str
    ) -> storage.Bucket:
        days, key = bucket.get("deleteAfterDays"), bucket.get("kmsKey")
        key_grants = []
        if key:
            agent = self._create_storage_agent_and_get_member(project, project_number)
            key_grants.append(grant_key_use(f"{name}-key", key, agent, create_retrying_options(self)))
        return storage.Bucket(
            name,
            name=self.name,
            project=project,
            location=bucket.get("location", region).upper(),
            uniform_bucket_level_access=True,
            public_access_prevention="enforced",
            lifecycle_rules=[{"action": {"type": "Delete"}, "condition": {"age": days}}] if days else None,
            encryption={"default_kms_key_name": key} if key else None,
            labels=bucket.get("labels"),
            # Models outlive the stack, unless someone empties the bucket first.
            force_destroy=False,
            opts=create_retrying_options(self, key_grants, protect=bucket.get("protect")),
        )

    def _create_storage_agent_and_get_member(self, project: str, project_number: str) -> pulumi.Input[str]:
        """Return the member for Cloud Storage's agent, which exists once someone has asked for its e-mail.

        Source: the provider's page on `get_project_service_account` (terraform-provider-google #9730, #9969). A preview
        does not ask: the API may not be enabled yet, and the e-mail is known.
        """
        member = ServiceAgentMembers(project_number).storage
        if pulumi.runtime.is_dry_run():
            return member
        options = pulumi.InvokeOutputOptions(parent=self)

        async def create_agent_and_get_member() -> str:
            # Known when this component is registered, which is after what it depends on: the enabled API. `apply` would
            # make the grant wait for the component, and with it for itself.
            await self.urn.future()
            await storage.get_project_service_account_output(project=project, opts=options).future()
            return member

        return create_agent_and_get_member()


def build_condition(bucket: str, folder: str, closed: Iterable[str] = ()) -> storage.BucketIAMMemberConditionArgsDict:
    """Return the condition that a request concerns an object in a folder, but in none of its `closed` folders.

    The empty objects that stand for the folders above it (`a/` of `a/b/`) are allowed too: gcsfuse and TensorFlow
    create them with a folder, where nothing is there yet.
    """
    parts = folder.split("/")[:-1]
    parents = ["/".join([*parts[:count], ""]) for count in range(1, len(parts))][:_MAX_PARENTS]

    def literal(path: str) -> str:
        return json.dumps(f"projects/_/buckets/{bucket}/objects/{path}", ensure_ascii=False)

    inside = [f"resource.name.startsWith({literal(folder)})"]
    inside += [f"!resource.name.startsWith({literal(each)})" for each in closed]
    whole = f"({' && '.join(inside)})" if len(inside) > 1 else inside[0]
    expression = " || ".join([whole, *(f"resource.name == {literal(parent)}" for parent in parents)])
    return {"title": "outputs of training", "expression": expression}
