"""TrainingIdentity: the service account that training code runs as, with the least privileges it needs."""

from collections.abc import Sequence

import pulumi
from pulumi_gcp import projects, serviceaccount

from .propagation import create_retry_hook

ROLES = {"logs": "roles/logging.logWriter", "vertex": "roles/aiplatform.user"}
"""In its own project: without logWriter a job has no logs; aiplatform.user is for experiments and models."""
ACT_AS = "roles/iam.serviceAccountUser"


def get_account_email(account: str, project: str) -> str:
    """Return the e-mail of a service account, which is known before the account exists."""
    return f"{account}@{project}.iam.gserviceaccount.com"


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
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("vertex:gcp:TrainingIdentity", name, None, opts)
        self.email = get_account_email(account, project)
        self.member = f"serviceAccount:{self.email}"
        self.resource = serviceaccount.Account(
            name,
            project=project,
            account_id=account,
            display_name="Vertex AI training",
            opts=pulumi.ResourceOptions(parent=self),
        )
        granted = pulumi.ResourceOptions(parent=self, depends_on=[self.resource], hooks=create_retry_hook())
        for short, role in ROLES.items():
            projects.IAMMember(f"{name}-{short}", project=project, role=role, member=self.member, opts=granted)
        for submitter in submitters:
            serviceaccount.IAMMember(
                f"{name}-{submitter}",
                service_account_id=f"projects/{project}/serviceAccounts/{self.email}",
                role=ACT_AS,
                member=submitter,
                opts=granted,
            )
        self.register_outputs({"email": self.email})
