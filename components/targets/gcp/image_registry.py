"""ImageRegistry: the Docker repository in Artifact Registry that training images are pushed to and pulled from."""

from __future__ import annotations  # loads the provider's types only if they are used

from dataclasses import dataclass

import pulumi
from pulumi import ResourceOptions
from pulumi_gcp import artifactregistry, projects

from ...schema.shapes import Registry
from .account_emails import ServiceAgentMembers
from .key_access import grant_key_use
from .propagation_retries import create_retrying_options

UNTAGGED_SECONDS = 30 * 24 * 3600
"""How long an image without a tag is kept: no new job uses it, but a job that does may still be running."""


@dataclass(frozen=True)
class RepositoryName:
    """The name of a repository of Artifact Registry: `projects/{project}/locations/{location}/repositories/{name}`."""

    project: str
    location: str
    name: str

    @classmethod
    def parse(cls, resource_name: str) -> RepositoryName:
        """Parse a repository's resource name, whose form `stack_config_types.Registry` has validated."""
        return cls(*resource_name.split("/")[1::2])

    @property
    def image_prefix(self) -> str:
        """The prefix of the URIs of its images. A domain's project `d:p` is `d/p` there (Artifact Registry's page)."""
        return f"{self.location}-docker.pkg.dev/{self.project.replace(':', '/')}/{self.name}"


def get_google_repository_name_or_none(
    registry: Registry, *, project: str, region: str, default_name: str
) -> RepositoryName | None:
    """Return the name of the repository of a stack's `registry`; `None` for a registry that is not Google's.

    `default_name` is the name of a repository that is created here and not named.
    """
    if "url" in registry:
        return None
    if "existing" in registry:
        return RepositoryName.parse(registry["existing"])
    return RepositoryName(
        registry.get("project", project), registry.get("location", region), registry.get("repository", default_name)
    )


class ImageRegistry(pulumi.ComponentResource):
    """A Docker repository with immutable tags, or one that exists already.

    `image_prefix` is the prefix of its images' URIs, as plain text, so a preview shows it. `repository` is `None` for
    a registry that is not Google's.
    """

    def __init__(
        self,
        name: str,
        registry: Registry,
        *,
        project: str,
        project_number: str,
        region: str,
        opts: ResourceOptions | None = None,
    ) -> None:
        super().__init__("vertex:gcp:ImageRegistry", name, None, opts)
        self.repository = get_google_repository_name_or_none(
            registry, project=project, region=region, default_name=name
        )
        self.image_prefix = self.repository.image_prefix if self.repository else registry["url"]
        if self.repository and "existing" not in registry:
            self._create_repository_and_key_grant(name, self.repository, registry, project, project_number)
            _warn_of_keep_without_immutable_tags(registry)
        self.register_outputs({"images": self.image_prefix})

    def _create_repository_and_key_grant(
        self, name: str, repository: RepositoryName, registry: Registry, project: str, project_number: str
    ) -> None:
        key_grants = []
        # The number of another project is unknown here: its owner grants the use of the key there.
        if "kmsKey" in registry and repository.project == project:
            agent = projects.ServiceIdentity(
                f"{name}-agent",
                project=project,
                service="artifactregistry.googleapis.com",
                opts=create_retrying_options(self),
            )
            member = ServiceAgentMembers(project_number).artifact_registry
            options = create_retrying_options(self, [agent])
            key_grants.append(grant_key_use(f"{name}-key", registry["kmsKey"], member, options))
        artifactregistry.Repository(
            name,
            project=repository.project,
            location=repository.location,
            repository_id=repository.name,
            format="DOCKER",
            description="Training images, tagged with the digest of what they are built from",
            docker_config={"immutable_tags": registry.get("immutableTags", True)},
            cleanup_policies=build_cleanup_policies(registry),
            kms_key_name=registry.get("kmsKey"),
            labels=registry.get("labels"),
            opts=create_retrying_options(self, key_grants, protect=registry.get("protect")),
        )


def _warn_of_keep_without_immutable_tags(registry: Registry) -> None:
    if "keep" in registry and not registry.get("immutableTags", True) and pulumi.runtime.is_dry_run():
        pulumi.log.warn(
            f"registry.keep: without immutable tags, all but the newest {registry['keep']} versions of an image "
            "are deleted, also one whose digest another stack runs; raise keep, or remove immutableTags: false"
        )


def build_cleanup_policies(registry: Registry) -> list[artifactregistry.RepositoryCleanupPolicyArgsDict]:
    """Return what Artifact Registry deletes: untagged images after a while and, with `keep: N`, all but the newest N.

    A keep policy wins over a delete policy (Google's page on cleanup policies), so `keep` needs both.
    """
    age = registry.get("deleteUntaggedAfter", f"{UNTAGGED_SECONDS}s")
    policies: list[artifactregistry.RepositoryCleanupPolicyArgsDict] = [
        {"id": "delete-untagged", "action": "DELETE", "condition": {"tag_state": "UNTAGGED", "older_than": age}}
    ]
    if "keep" in registry:
        policies += [
            {"id": "delete-old", "action": "DELETE", "condition": {"tag_state": "ANY", "older_than": age}},
            {"id": "keep-newest", "action": "KEEP", "most_recent_versions": {"keep_count": registry["keep"]}},
        ]
    return policies
