"""TrainingIdentity: the service account that training code runs as, with the least privileges it needs."""

from collections.abc import Sequence

import pulumi
from pulumi import ResourceOptions
from pulumi_gcp import projects, serviceaccount

from .grant_creation_retries import create_grant_options

ROLES = {"logs": "roles/logging.logWriter", "vertex": "roles/aiplatform.user"}
"""In its own project: without logWriter a job has no logs; aiplatform.user is for experiments and models."""
ACT_AS = "roles/iam.serviceAccountUser"


class TrainingIdentity(pulumi.ComponentResource):
    """A service account for jobs. `submitters` are the IAM members that may submit jobs with it (`actAs`).

    `email` and `member` are plain text, so a preview shows them.
    """

    def __init__(
        self,
        name: str,
        account: str,
        *,
        project: str,
        submitters: Sequence[str] = (),
        opts: ResourceOptions | None = None,
    ) -> None:
        super().__init__("vertex:gcp:TrainingIdentity", name, None, opts)
        self.email = f"{account}@{project}.iam.gserviceaccount.com"
        self.member = f"serviceAccount:{self.email}"
        options = ResourceOptions(parent=self)
        self.resource = serviceaccount.Account(
            name, project=project, account_id=account, display_name="Vertex AI training", opts=options
        )
        options = create_grant_options(self, [self.resource])
        for suffix, role in ROLES.items():
            projects.IAMMember(f"{name}-{suffix}", project=project, role=role, member=self.member, opts=options)
        resource_name = f"projects/{project}/serviceAccounts/{self.email}"
        for submitter in submitters:
            serviceaccount.IAMMember(
                f"{name}-{submitter}", service_account_id=resource_name, role=ACT_AS, member=submitter, opts=options
            )
        self.register_outputs({"email": self.email})
