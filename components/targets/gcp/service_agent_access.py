"""ServiceAgentAccess: the grants that Vertex AI's service agents need to run jobs.

Source: the table on Google's page on access control for Vertex AI, which docs/access.md repeats.
"""

from dataclasses import dataclass

import pulumi
from pulumi import ResourceOptions
from pulumi_gcp import artifactregistry, projects, serviceaccount, storage

from .grant_creation_retries import create_grant_options
from .registry import RepositoryName
from .service_agents import ServiceAgentMembers, grant_key_use

READER = "roles/artifactregistry.reader"
OBJECT_VIEWER = "roles/storage.objectViewer"
TOKEN_CREATOR = "roles/iam.serviceAccountTokenCreator"
DNS_PEER = "roles/dns.peer"


@dataclass(frozen=True)
class Grants:
    """What the agents need access to.

    `repository` has the images, `kms_key` encrypts jobs, `legacy_buckets` have images of Container Registry
    (`artifacts.P.appspot.com`), `dns_projects` own zones that jobs resolve names in, `foreign_account` is the e-mail
    of the account that jobs run as, if it belongs to another project.
    """

    repository: RepositoryName | None
    kms_key: str | None = None
    legacy_buckets: tuple[str, ...] = ()
    dns_projects: tuple[str, ...] = ()
    foreign_account: str | None = None


class ServiceAgentAccess(pulumi.ComponentResource):
    """The Vertex AI service agent of a project, and every grant that Google's agents need for this stack's jobs.

    All members are computed from the project's number, so a preview shows them.
    """

    def __init__(
        self, name: str, grants: Grants, *, project: str, project_number: str, opts: ResourceOptions | None = None
    ) -> None:
        agents = ServiceAgentMembers(project_number)
        super().__init__("vertex:gcp:ServiceAgentAccess", name, None, opts)
        # Google creates the custom-code agent with a project's first custom job; this creates the other one.
        identity = projects.ServiceIdentity(
            name, project=project, service="aiplatform.googleapis.com", opts=ResourceOptions(parent=self)
        )
        options = create_grant_options(self, [identity])
        for agent, member in agents.image_readers_by_name.items():
            if grants.repository:
                artifactregistry.RepositoryIamMember(
                    f"{name}-pull-{agent}",
                    project=grants.repository.project,
                    location=grants.repository.location,
                    repository=grants.repository.name,
                    role=READER,
                    member=member,
                    opts=options,
                )
            if grants.kms_key:
                grant_key_use(f"{name}-key-{agent}", grants.kms_key, member, options)
        for bucket in grants.legacy_buckets:
            for agent, member in {**agents.image_readers_by_name, "legacy": agents.legacy_ai_platform_training}.items():
                storage.BucketIAMMember(
                    f"{name}-{bucket}-{agent}", bucket=bucket, role=OBJECT_VIEWER, member=member, opts=options
                )
        for owner in grants.dns_projects:
            projects.IAMMember(f"{name}-dns-{owner}", project=owner, role=DNS_PEER, member=agents.vertex, opts=options)
        if grants.foreign_account:
            account = f"projects/-/serviceAccounts/{grants.foreign_account}"
            serviceaccount.IAMMember(
                f"{name}-tokens", service_account_id=account, role=TOKEN_CREATOR, member=agents.vertex, opts=options
            )
        self.register_outputs({})
