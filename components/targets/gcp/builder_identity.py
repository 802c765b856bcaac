"""BuilderIdentity: the service account that Cloud Build builds images as, with the least privileges it needs."""

from __future__ import annotations  # loads the provider's types only if they are used

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pulumi
from pulumi import ResourceOptions
from pulumi_gcp import artifactregistry, projects, serviceaccount, storage

from ...schema import config_types
from .image_registry import RepositoryName
from .propagation_retries import create_retrying_options
from .secret_access import SecretAccess
from .service_agents import OBJECT_VIEWER
from .training_identity_and_account_emails import ACT_AS, LOG_WRITER, build_account_email

WRITER = "roles/artifactregistry.writer"
_SOURCE_FOLDER = "build-sources"


class BuilderIdentity(pulumi.ComponentResource):
    """The account of builds: one to create by its id `account`, or the e-mail of an `existing` one.

    It may write images to `repository`, read sources in `bucket`, and read `secrets` of Secret Manager. One that is
    created here may also write logs, and `submitters` may start builds as it (`actAs`). `email` is plain text.
    """

    def __init__(
        self,
        name: str,
        *,
        account: str,
        existing: str | None,
        project: str,
        repository: RepositoryName | None,
        bucket: str,
        secrets: Sequence[str] = (),
        submitters: Sequence[str] = (),
        opts: ResourceOptions | None = None,
    ) -> None:
        super().__init__("vertex:gcp:BuilderIdentity", name, None, opts)
        self.email = existing or build_account_email(account, project)
        member = f"serviceAccount:{self.email}"
        created = [] if existing else [self._create_account(name, account, project)]
        options = create_retrying_options(self, created)
        if created:
            projects.IAMMember(f"{name}-logs", project=project, role=LOG_WRITER, member=member, opts=options)
            resource_name = f"projects/{project}/serviceAccounts/{self.email}"
            for submitter in submitters:
                serviceaccount.IAMMember(
                    f"{name}-{submitter}", service_account_id=resource_name, role=ACT_AS, member=submitter, opts=options
                )
        if repository:
            artifactregistry.RepositoryIamMember(
                f"{name}-push",
                project=repository.project,
                location=repository.location,
                repository=repository.name,
                role=WRITER,
                member=member,
                opts=options,
            )
        storage.BucketIAMMember(f"{name}-sources", bucket=bucket, role=OBJECT_VIEWER, member=member, opts=options)
        if secrets:
            access_options = ResourceOptions(parent=self, depends_on=created)
            SecretAccess(f"{name}-secrets", secrets, project=project, member=member, opts=access_options)
        self.register_outputs({"email": self.email})

    def _create_account(self, name: str, account: str, project: str) -> serviceaccount.Account:
        return serviceaccount.Account(
            name,
            project=project,
            account_id=account,
            display_name="Vertex AI training image builds",
            opts=create_retrying_options(self),
        )


def build_image_builder_config(
    cloud_build: config_types.CloudBuild, project: str, defaults: Mapping[str, str], staging_folder_uri: str
) -> dict[str, Any]:
    """Return the `image_builder_config` of a foundation. `defaults` are those of `region` and `serviceAccount`."""
    options = {**defaults, **cloud_build}
    options |= {"project": project, "sourceFolder": f"{staging_folder_uri}/{_SOURCE_FOLDER}"}
    return {"cloudBuild": options}


def list_build_secret_names(cloud_build: config_types.CloudBuild, images: Iterable[config_types.Image]) -> list[str]:
    """Return the secrets of Secret Manager that builds read, `projects/P/secrets/NAME`."""
    own = (image.get("builder", {}).get("cloudBuild", {}) for image in images)
    versions = [version for options in (cloud_build, *own) for version in options.get("secrets", {}).values()]
    return sorted({version.partition("/versions/")[0] for version in versions})
