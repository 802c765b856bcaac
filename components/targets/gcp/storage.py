"""ImageRegistry and StagingBucket: where images are pushed to and pulled from, and where jobs write."""

from __future__ import annotations  # loads the provider's types only if they are used

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Required, TypedDict

import pulumi
from pulumi import ResourceOptions
from pulumi_gcp import artifactregistry, projects, storage

from vertex_api.scalars import to_seconds

from ...plan.folders import WHOLE_BUCKET, WritableFolders
from ...schema import shapes
from .project import Component, ServiceAgents, grant_key

_UNTAGGED_SECONDS = 30 * 24 * 3600
"""How long an image without a tag is kept: no new job uses it, but a job that does may still be running."""


@dataclass(frozen=True)
class RepositoryName:
    """The name of a repository of Artifact Registry: `projects/{project}/locations/{location}/repositories/{name}`."""

    project: str
    location: str
    name: str

    @classmethod
    def parse(cls, resource_name: str) -> RepositoryName:
        """Parse a repository's resource name, whose form `shapes.Registry` has validated."""
        return cls(*resource_name.split("/")[1::2])

    @property
    def image_prefix(self) -> str:
        """The prefix of the URIs of its images. A domain's project `d:p` is `d/p` there (Artifact Registry's page)."""
        return f"{self.location}-docker.pkg.dev/{self.project.replace(':', '/')}/{self.name}"


class ImageRegistryArgs(TypedDict):
    """`registry` is that of a stack file; what it does not say of its place is that of the project and its region."""

    project: str
    project_number: str
    region: str
    registry: shapes.Registry


class ImageRegistry(Component):
    """A Docker repository with immutable tags, or one that exists already.

    `image_prefix` is the prefix of its images' URIs, as plain text, so a preview shows it. `repository` is `None` for
    a registry that is not Google's.
    """

    def __init__(self, name: str, args: ImageRegistryArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        registry = args["registry"]
        self.repository: RepositoryName | None = None
        if "existing" in registry:
            self.repository = RepositoryName.parse(registry["existing"])
        elif "url" not in registry:
            self.repository = RepositoryName(
                registry.get("project", args["project"]),
                registry.get("location", args["region"]),
                registry.get("repository", name),
            )
            self._create(name, self.repository, args)
            _warn_of_keep(registry)
        self.image_prefix = self.repository.image_prefix if self.repository else registry["url"]
        self.register_outputs({"images": self.image_prefix})

    def _create(self, name: str, repository: RepositoryName, args: ImageRegistryArgs) -> None:
        registry, key_grants = args["registry"], []
        # The number of another project is unknown here: its owner grants the use of the key there.
        if "kmsKey" in registry and repository.project == args["project"]:
            agent = projects.ServiceIdentity(
                f"{name}-agent",
                project=args["project"],
                service="artifactregistry.googleapis.com",
                opts=self.retrying(),
            )
            member = ServiceAgents(args["project_number"]).artifact_registry
            key_grants.append(grant_key(f"{name}-key", registry["kmsKey"], member, self.retrying(agent)))
        artifactregistry.Repository(
            name,
            project=repository.project,
            location=repository.location,
            repository_id=repository.name,
            format="DOCKER",
            description="Training images, tagged with the digest of what they are built from",
            docker_config={"immutable_tags": registry.get("immutableTags", True)},
            cleanup_policies=_cleanup_policies(registry),
            kms_key_name=registry.get("kmsKey"),
            labels=registry.get("labels"),
            opts=self.retrying(*key_grants, protect=registry.get("protect")),
        )


def _warn_of_keep(registry: shapes.Registry) -> None:
    if "keep" in registry and not registry.get("immutableTags", True) and pulumi.runtime.is_dry_run():
        pulumi.log.warn(
            f"registry.keep: without immutable tags, all but the newest {registry['keep']} versions of an image "
            "are deleted, also one whose digest another stack runs; raise keep, or remove immutableTags: false"
        )


def _cleanup_policies(registry: shapes.Registry) -> list[artifactregistry.RepositoryCleanupPolicyArgsDict]:
    """Return what Artifact Registry deletes: untagged images after a while and, with `keep: N`, all but the newest N.

    A keep policy wins over a delete policy (Google's page on cleanup policies), so `keep` needs both.
    """
    age = registry.get("deleteUntaggedAfter", f"{_UNTAGGED_SECONDS}s")
    policies: list[artifactregistry.RepositoryCleanupPolicyArgsDict] = [
        {"id": "delete-untagged", "action": "DELETE", "condition": {"tag_state": "UNTAGGED", "older_than": age}}
    ]
    if "keep" in registry:
        policies += [
            {"id": "delete-old", "action": "DELETE", "condition": {"tag_state": "ANY", "older_than": age}},
            {"id": "keep-newest", "action": "KEEP", "most_recent_versions": {"keep_count": registry["keep"]}},
        ]
    return policies


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


class StagingBucketArgs(TypedDict, total=False):
    """`bucket` is that of a stack file. `member` is the account that jobs run as.

    It writes in its `folders`; `other_folders` are those outside the stack's own.
    """

    project: Required[str]
    project_number: Required[str]
    region: Required[str]
    bucket: Required[shapes.Bucket]
    member: Required[str]
    folders: Required[WritableFolders]
    other_folders: Sequence[str]


class StagingBucket(Component):
    """A regional bucket with public access prevented, or one that exists already (`bucket.existing`).

    `uri` is `gs://name`, plain text. `member` may read its objects, and write those in its folders.
    """

    def __init__(self, name: str, args: StagingBucketArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        bucket, member, folders = args["bucket"], args["member"], args["folders"]
        others = args.get("other_folders", ())
        self.name = bucket.get("existing") or bucket["name"]
        self.uri = f"gs://{self.name}"
        self.resource = None if "existing" in bucket else self._create(name, args)
        options = self.retrying(*([self.resource] if self.resource else []))
        for suffix, role in READER_ROLES.items():
            storage.BucketIAMMember(f"{name}-{suffix}", bucket=self.name, role=role, member=member, opts=options)
        conditions: dict[str, storage.BucketIAMMemberConditionArgsDict | None]
        conditions = {f"{name}-write": inside(self.name, folders.own, folders.closed)}
        conditions |= {f"{name}-write-{folder}": inside(self.name, folder) for folder in others}
        if WHOLE_BUCKET in others:
            conditions = {f"{name}-write": None}
        for grant, condition in conditions.items():
            storage.BucketIAMMember(
                grant, bucket=self.name, role=WRITER_ROLE, member=member, condition=condition, opts=options
            )
        self.register_outputs({"uri": self.uri})

    def _create(self, name: str, args: StagingBucketArgs) -> storage.Bucket:
        bucket, key_grants = args["bucket"], []
        days, key, kept = bucket.get("deleteAfterDays"), bucket.get("kmsKey"), bucket.get("softDelete")
        if key:
            agent = self._storage_agent(args["project"], args["project_number"])
            key_grants.append(grant_key(f"{name}-key", key, agent, self.retrying()))
        return storage.Bucket(
            name,
            name=self.name,
            project=args["project"],
            location=bucket.get("location", args["region"]).upper(),
            uniform_bucket_level_access=True,
            public_access_prevention="enforced",
            # Without a policy, Cloud Storage keeps what is deleted for seven days (its page "Soft delete").
            soft_delete_policy={"retention_duration_seconds": int(to_seconds(kept))} if kept else None,
            lifecycle_rules=[{"action": {"type": "Delete"}, "condition": {"age": days}}] if days else None,
            encryption={"default_kms_key_name": key} if key else None,
            labels=bucket.get("labels"),
            # Models outlive the stack, unless someone empties the bucket first.
            force_destroy=False,
            opts=self.retrying(*key_grants, protect=bucket.get("protect")),
        )

    def _storage_agent(self, project: str, project_number: str) -> pulumi.Input[str]:
        """Return the member for Cloud Storage's agent, which exists once someone has asked for its e-mail.

        Source: the provider's page on `get_project_service_account` (terraform-provider-google #9730, #9969). A preview
        does not ask: the API may not be enabled yet, and the e-mail is known.
        """
        member = ServiceAgents(project_number).storage
        if pulumi.runtime.is_dry_run():
            return member
        options = pulumi.InvokeOutputOptions(parent=self)

        async def ask() -> str:
            # Known when this component is registered, which is after what it depends on: the enabled API. `apply` would
            # make the grant wait for the component, and with it for itself.
            await self.urn.future()
            await storage.get_project_service_account_output(project=project, opts=options).future()
            return member

        return ask()


def inside(bucket: str, folder: str, closed: Iterable[str] = ()) -> storage.BucketIAMMemberConditionArgsDict:
    """Return the condition that a request concerns an object in a folder, but in none of its `closed` folders.

    The empty objects that stand for the folders above it (`a/` of `a/b/`) are allowed too: gcsfuse and TensorFlow
    create them with a folder, where nothing is there yet.
    """

    def literal(path: str) -> str:
        return json.dumps(f"projects/_/buckets/{bucket}/objects/{path}", ensure_ascii=False)

    rules = [f"resource.name.startsWith({literal(folder)})"]
    rules += [f"!resource.name.startsWith({literal(each)})" for each in closed]
    whole = f"({' && '.join(rules)})" if len(rules) > 1 else rules[0]
    expression = " || ".join([whole, *(f"resource.name == {literal(parent)}" for parent in parents(folder))])
    return {"title": "outputs of training", "expression": expression}


def parents(folder: str) -> list[str]:
    """Return the folders above a folder whose empty objects may be written with it."""
    parts = folder.split("/")[:-1]
    return ["/".join([*parts[:count], ""]) for count in range(1, len(parts))][:_MAX_PARENTS]
