"""ServiceAgentAccess: what Vertex AI's own agents may do, so that a first job does not fail for want of a grant.

Which identity needs what is the table of Google's page on access control for Vertex AI; docs/access.md repeats it.
"""

from dataclasses import dataclass

import pulumi
from pulumi_gcp import artifactregistry, projects, serviceaccount, storage

from .encryption import key_grant
from .propagation import until_known
from .registry import Repository
from .service_agents import ServiceAgents

READER = "roles/artifactregistry.reader"
OBJECT_VIEWER = "roles/storage.objectViewer"
TOKEN_CREATOR = "roles/iam.serviceAccountTokenCreator"
DNS_PEER = "roles/dns.peer"


@dataclass(frozen=True)
class Grants:
    """What the agents need beyond a project of their own.

    `repository` holds the images, `kms_key` encrypts jobs, `legacy_buckets` hold images of Container Registry
    (`artifacts.P.appspot.com`), `dns_projects` own zones that jobs resolve names in, `foreign_account` is the e-mail
    of an account of another project that jobs run as.
    """

    repository: Repository | None
    kms_key: str | None = None
    legacy_buckets: tuple[str, ...] = ()
    dns_projects: tuple[str, ...] = ()
    foreign_account: str | None = None


class ServiceAgentAccess(pulumi.ComponentResource):
    """The Vertex AI service agent of a project, and every grant that it and its kin need for this stack's jobs.

    All members are computed from the project's number, so that a preview shows them.
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
        # The custom-code agent appears with a project's first custom job; this makes at least the other one exist.
        identity = projects.ServiceIdentity(
            name, project=project, service="aiplatform.googleapis.com", opts=pulumi.ResourceOptions(parent=self)
        )
        granted = pulumi.ResourceOptions(parent=self, depends_on=[identity])
        self._options = pulumi.ResourceOptions.merge(granted, pulumi.ResourceOptions(hooks=until_known()))
        if grants.repository:
            self._pull(name, grants.repository, agents)
        if grants.kms_key:
            for agent, member in agents.pullers.items():
                key_grant(f"{name}-key-{agent}", grants.kms_key, member, granted)
        self._elsewhere(name, grants, agents)
        self.register_outputs({})

    def _pull(self, name: str, repository: Repository, agents: ServiceAgents) -> None:
        for agent, member in agents.pullers.items():
            artifactregistry.RepositoryIamMember(
                f"{name}-pull-{agent}",
                project=repository.project,
                location=repository.location,
                repository=repository.name,
                role=READER,
                member=member,
                opts=self._options,
            )

    def _elsewhere(self, name: str, grants: Grants, agents: ServiceAgents) -> None:
        for bucket in grants.legacy_buckets:
            for agent, member in {**agents.pullers, "legacy": agents.legacy}.items():
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
