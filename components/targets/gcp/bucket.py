"""StagingBucket: the bucket that jobs write to, in their region."""

import pulumi
from pulumi import ResourceOptions
from pulumi_gcp import storage

from ...schema import config_types
from .grant_creation_retries import create_grant_options
from .service_agents import ServiceAgentMembers, grant_key_use

OBJECT_ADMIN = "roles/storage.objectAdmin"


class StagingBucket(pulumi.ComponentResource):
    """A regional bucket with public access prevented, or one that exists already (`bucket.existing`).

    `uri` is `gs://name`, plain text. `member` (the account that jobs run as) may read and write its objects.
    """

    def __init__(
        self,
        name: str,
        bucket: config_types.Bucket,
        *,
        project: str,
        project_number: str,
        region: str,
        member: str,
        opts: ResourceOptions | None = None,
    ) -> None:
        super().__init__("vertex:gcp:StagingBucket", name, None, opts)
        self.name = bucket.get("existing") or bucket["name"]
        self.uri = f"gs://{self.name}"
        self.resource = None
        if "existing" not in bucket:
            self.resource = self._create_bucket_and_key_grant(name, bucket, project, project_number, region)
        options = create_grant_options(self, [self.resource] if self.resource else [])
        storage.BucketIAMMember(f"{name}-write", bucket=self.name, role=OBJECT_ADMIN, member=member, opts=options)
        self.register_outputs({"uri": self.uri})

    def _create_bucket_and_key_grant(
        self, name: str, bucket: config_types.Bucket, project: str, project_number: str, region: str
    ) -> storage.Bucket:
        days, key = bucket.get("deleteAfterDays"), bucket.get("kmsKey")
        agent = ServiceAgentMembers(project_number).storage
        key_grants = [grant_key_use(f"{name}-key", key, agent, create_grant_options(self, []))] if key else []
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
            opts=ResourceOptions(parent=self, depends_on=key_grants, protect=bucket.get("protect")),
        )
