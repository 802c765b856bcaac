"""TrainingIdentity: the service account that training code runs as, with the least privileges it needs."""

from collections.abc import Sequence

import pulumi
from pulumi import ResourceOptions
from pulumi_gcp import projects, serviceaccount

from .account_emails import build_account_email
from .propagation_retries import create_retrying_options

LOG_WRITER = "roles/logging.logWriter"
"""In its own project: without it a job has no logs."""
VERTEX_USER = "roles/aiplatform.user"
"""In its own project: for experiments, TensorBoard and models, and with it for changes of jobs."""
ACT_AS = "roles/iam.serviceAccountUser"


class TrainingIdentity(pulumi.ComponentResource):
    """A service account for jobs. `submitters` are the IAM members that may submit jobs with it (`actAs`).

    With `uses_vertex_ai` training code may call Vertex AI itself. `email` and `member` are plain text, so a preview
    shows them.
    """

    def __init__(
        self,
        name: str,
        account: str,
        *,
        project: str,
        submitters: Sequence[str] = (),
        uses_vertex_ai: bool = True,
        opts: ResourceOptions | None = None,
    ) -> None:
        super().__init__("vertex:gcp:TrainingIdentity", name, None, opts)
        self.email = build_account_email(account, project)
        self.member = f"serviceAccount:{self.email}"
        options = create_retrying_options(self)
        self.resource = serviceaccount.Account(
            name, project=project, account_id=account, display_name="Vertex AI training", opts=options
        )
        options = create_retrying_options(self, [self.resource])
        roles = {"logs": LOG_WRITER, **({"vertex": VERTEX_USER} if uses_vertex_ai else {})}
        for suffix, role in roles.items():
            projects.IAMMember(f"{name}-{suffix}", project=project, role=role, member=self.member, opts=options)
        resource_name = f"projects/{project}/serviceAccounts/{self.email}"
        for submitter in submitters:
            serviceaccount.IAMMember(
                f"{name}-{submitter}", service_account_id=resource_name, role=ACT_AS, member=submitter, opts=options
            )
        self.register_outputs({"email": self.email})
