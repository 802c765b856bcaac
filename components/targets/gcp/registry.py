"""ImageRegistry: the Docker repository in Artifact Registry that training images are pushed to and pulled from."""

from dataclasses import dataclass

import pulumi
from pulumi_gcp import artifactregistry, projects

from ...schema import shapes
from .encryption import key_grant
from .service_agents import ServiceAgents

UNTAGGED_SECONDS = 30 * 24 * 3600
"""How long an image without a tag is left: no job names it any more, but one may still be running."""


@dataclass(frozen=True)
class Repository:
    """Where a repository is: `projects/{project}/locations/{location}/repositories/{name}`."""

    project: str
    location: str
    name: str

    @classmethod
    def parse(cls, resource_name: str) -> "Repository":
        """The parts of a repository's resource name, whose form `shapes.Registry` has checked."""
        _, project, _, location, _, name = resource_name.split("/")
        return cls(project, location, name)

    @property
    def images(self) -> str:
        """What the URIs of its images begin with."""
        return f"{self.location}-docker.pkg.dev/{self.project}/{self.name}"


def repository_of(registry: shapes.Registry, *, project: str, region: str, default: str) -> Repository | None:
    """The repository that a stack's `registry` means, None for a registry that is not Google's.

    `default` names one that is made here and not named.
    """
    if "url" in registry:
        return None
    if "existing" in registry:
        return Repository.parse(registry["existing"])
    return Repository(
        registry.get("project", project), registry.get("location", region), registry.get("repository", default)
    )


class ImageRegistry(pulumi.ComponentResource):
    """A Docker repository with tags that stay what they are, or one that exists already.

    `images` is what URIs begin with, as plain text: a preview shows it. `repository` says where it is, None for a
    registry that is not Google's.
    """

    def __init__(
        self,
        name: str,
        registry: shapes.Registry,
        *,
        project: str,
        project_number: str,
        region: str,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("vertex:gcp:ImageRegistry", name, None, opts)
        self.repository = repository_of(registry, project=project, region=region, default=name)
        self.images = self.repository.images if self.repository else registry["url"]
        if self.repository and "existing" not in registry:
            self._made(name, self.repository, registry, project, project_number)
        self.register_outputs({"images": self.images})

    def _made(
        self, name: str, repository: Repository, registry: shapes.Registry, project: str, project_number: str
    ) -> None:
        encrypted: list[pulumi.Resource] = []
        # The number of another project is not known here: there, its owner grants the right to the key.
        if "kmsKey" in registry and repository.project == project:
            agent = projects.ServiceIdentity(
                f"{name}-agent",
                project=project,
                service="artifactregistry.googleapis.com",
                opts=pulumi.ResourceOptions(parent=self),
            )
            member = ServiceAgents(project_number).artifact_registry
            options = pulumi.ResourceOptions(parent=self, depends_on=[agent])
            encrypted.append(key_grant(f"{name}-key", registry["kmsKey"], member, options))
        artifactregistry.Repository(
            name,
            project=repository.project,
            location=repository.location,
            repository_id=repository.name,
            format="DOCKER",
            description="Training images, tagged with the digest of what they are built from",
            docker_config={"immutable_tags": registry.get("immutableTags", True)},
            cleanup_policies=cleanup_policies(registry),
            kms_key_name=registry.get("kmsKey"),
            labels=registry.get("labels"),
            opts=pulumi.ResourceOptions(parent=self, depends_on=encrypted, protect=registry.get("protect")),
        )


def cleanup_policies(
    registry: shapes.Registry,
) -> list[artifactregistry.RepositoryCleanupPolicyArgs]:
    """What Artifact Registry removes by itself: untagged images after a while and, if asked for, all but the newest N.

    A keep policy wins over a delete policy (Google's page on cleanup policies), so "keep 20" is the two of them.
    """
    seconds = registry.get("deleteUntaggedAfter", f"{UNTAGGED_SECONDS}s")
    policies = [_delete("delete-untagged", "UNTAGGED", seconds)]
    if "keep" in registry:
        newest = artifactregistry.RepositoryCleanupPolicyMostRecentVersionsArgs(keep_count=registry["keep"])
        policies += [
            _delete("delete-old", "ANY", seconds),
            artifactregistry.RepositoryCleanupPolicyArgs(id="keep-newest", action="KEEP", most_recent_versions=newest),
        ]
    return policies


def _delete(id_: str, tag_state: str, older_than: str) -> artifactregistry.RepositoryCleanupPolicyArgs:
    condition = artifactregistry.RepositoryCleanupPolicyConditionArgs(tag_state=tag_state, older_than=older_than)
    return artifactregistry.RepositoryCleanupPolicyArgs(id=id_, action="DELETE", condition=condition)
