"""BuilderIdentity: the service account that Cloud Build builds images as, with the least privileges it needs."""

from __future__ import annotations  # loads the provider's types only if they are used

from collections.abc import Sequence

import pulumi
from pulumi import ResourceOptions
from pulumi_gcp import artifactregistry, projects, serviceaccount, storage

from .account_emails import build_account_email
from .image_registry import RepositoryName
from .propagation_retries import create_retrying_options
from .secret_access import SecretAccess
from .service_agent_access import OBJECT_VIEWER
from .training_identity import ACT_AS, LOG_WRITER

WRITER = "roles/artifactregistry.writer"


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
        created = [] if existing else [self._create_service_account(name, account, project)]
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

    def _create_service_account(self, name: str, account_id: str, project: str) -> serviceaccount.Account:
        return serviceaccount.Account(
            name,
            project=project,
            account_id=account_id,
            display_name="Vertex AI training image builds",
            opts=create_retrying_options(self),
        )
