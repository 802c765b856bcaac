"""ServiceAgentAccess: the grants that Vertex AI's service agents need to run jobs.

Source: the table on Google's page on access control for Vertex AI, which docs/access.md repeats.
"""

from dataclasses import dataclass

import pulumi
from pulumi_gcp import artifactregistry, projects, serviceaccount, storage

from .encryption import grant_key_use
from .propagation import create_retry_hook
from .registry import Repository
from .service_agents import ServiceAgents

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

    repository: Repository | None
    kms_key: str | None = None
    legacy_buckets: tuple[str, ...] = ()
    dns_projects: tuple[str, ...] = ()
    foreign_account: str | None = None


class ServiceAgentAccess(pulumi.ComponentResource):
    """The Vertex AI service agent of a project, and every grant that Google's agents need for this stack's jobs.

    All members are computed from the project's number, so a preview shows them.
    """

    def __init__(
        self,
        name: str,
        grants: Grants,
        *,
        project: str,
        project_number: str,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        agents = ServiceAgents(project_number)
        super().__init__("vertex:gcp:ServiceAgentAccess", name, None, opts)
        # Google creates the custom-code agent with a project's first custom job; this creates the other one.
        identity = projects.ServiceIdentity(
            name, project=project, service="aiplatform.googleapis.com", opts=pulumi.ResourceOptions(parent=self)
        )
        granted = pulumi.ResourceOptions(parent=self, depends_on=[identity])
        self._options = pulumi.ResourceOptions.merge(granted, pulumi.ResourceOptions(hooks=create_retry_hook()))
        if grants.repository:
            self._grant_pull(name, grants.repository, agents)
        if grants.kms_key:
            for agent, member in agents.image_readers.items():
                grant_key_use(f"{name}-key-{agent}", grants.kms_key, member, granted)
        self._grant_access_elsewhere(name, grants, agents)
        self.register_outputs({})

    def _grant_pull(self, name: str, repository: Repository, agents: ServiceAgents) -> None:
        for agent, member in agents.image_readers.items():
            artifactregistry.RepositoryIamMember(
                f"{name}-pull-{agent}",
                project=repository.project,
                location=repository.location,
                repository=repository.name,
                role=READER,
                member=member,
                opts=self._options,
            )

    def _grant_access_elsewhere(self, name: str, grants: Grants, agents: ServiceAgents) -> None:
        for bucket in grants.legacy_buckets:
            for agent, member in {**agents.image_readers, "legacy": agents.legacy}.items():
                storage.BucketIAMMember(
                    f"{name}-{bucket}-{agent}", bucket=bucket, role=OBJECT_VIEWER, member=member, opts=self._options
                )
        for project in grants.dns_projects:
            projects.IAMMember(
                f"{name}-dns-{project}", project=project, role=DNS_PEER, member=agents.vertex, opts=self._options
            )
        if grants.foreign_account:
            account = grants.foreign_account
            serviceaccount.IAMMember(
                f"{name}-tokens",
                service_account_id=f"projects/-/serviceAccounts/{account}",
                role=TOKEN_CREATOR,
                member=agents.vertex,
                opts=self._options,
            )
