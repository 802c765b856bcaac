"""ServiceAgentAccess: the grants that Vertex AI's service agents need to run jobs.

Source: the table on Google's page on access control for Vertex AI, which docs/access.md repeats.
"""

from __future__ import annotations  # loads the provider's types only if they are used

from dataclasses import dataclass

import pulumi
from pulumi import ResourceOptions
from pulumi_gcp import artifactregistry, iam, projects, serviceaccount, storage

from .account_emails import ServiceAgentMembers
from .image_registry import RepositoryName
from .key_access import grant_key_use
from .propagation_retries import create_retrying_options

READER = "roles/artifactregistry.reader"
OBJECT_VIEWER = "roles/storage.objectViewer"
TOKEN_CREATOR = "roles/iam.serviceAccountTokenCreator"
DNS_PEER = "roles/dns.peer"
AGENT_ROLES = {"vertex": "roles/aiplatform.serviceAgent", "custom-code": "roles/aiplatform.customCodeServiceAgent"}
"""The roles of Vertex AI's agents in their own project, by the names of `image_readers_by_name`."""
ATTACHMENT_PERMISSIONS = (
    "compute.networkAttachments.get",
    "compute.networkAttachments.update",
    "compute.regionOperations.get",
)
"""What Vertex AI needs to join an attachment's accepted projects: Google's page on Private Service Connect interfaces
has these as the narrow alternative to roles/compute.networkAdmin. roles/compute.networkUser lacks the second."""


@dataclass(frozen=True)
class Grants:
    """What the agents need access to.

    `repository` has the images, `kms_key` encrypts jobs, `legacy_buckets` have images of Container Registry
    (`artifacts.P.appspot.com`), which with `has_legacy_agent` the agent of AI Platform Training reads too.
    `dns_projects` own zones that jobs resolve names in, `foreign_account` is the e-mail of the account that jobs run
    as, if it belongs to another project. `attachment_role_id` names the role to create for the network attachment of
    jobs, if it is in the project itself. Without `has_agent_roles`, the agents' own roles are somebody else's to grant.
    """

    repository: RepositoryName | None
    kms_key: str | None = None
    legacy_buckets: tuple[str, ...] = ()
    has_legacy_agent: bool = False
    dns_projects: tuple[str, ...] = ()
    foreign_account: str | None = None
    attachment_role_id: str | None = None
    has_agent_roles: bool = True


class ServiceAgentAccess(pulumi.ComponentResource):
    """The Vertex AI service agents of a project, and every grant that Google's agents need for this stack's jobs.

    All members are computed from the project's number, so a preview shows them. The agents and their own roles stay
    when the stack is destroyed: they belong to the project.
    """

    def __init__(
        self, name: str, grants: Grants, *, project: str, project_number: str, opts: ResourceOptions | None = None
    ) -> None:
        agents = ServiceAgentMembers(project_number)
        super().__init__("vertex:gcp:ServiceAgentAccess", name, None, opts)
        agents_resource = self._create_agents(name, agents, project, with_roles=grants.has_agent_roles)
        options = create_retrying_options(self, [agents_resource])
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
            # Google's page on customer-managed keys asks for this agent alone. The other one is what every job of the
            # project runs as that has no account of its own.
            grant_key_use(f"{name}-key-vertex", grants.kms_key, agents.vertex, options)
        bucket_readers = dict(agents.image_readers_by_name)
        if grants.has_legacy_agent:
            bucket_readers["legacy"] = agents.legacy_ai_platform_training
        for bucket in grants.legacy_buckets:
            for agent, member in bucket_readers.items():
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
        if grants.attachment_role_id:
            role = self._create_attachment_role(f"{name}-attachment", grants.attachment_role_id, project)
            projects.IAMMember(
                f"{name}-attachment",
                project=project,
                role=f"projects/{project}/roles/{grants.attachment_role_id}",
                member=agents.vertex,
                opts=create_retrying_options(self, [role, agents_resource]),
            )
        self.register_outputs({})

    def _create_agents(
        self, name: str, agents: ServiceAgentMembers, project: str, *, with_roles: bool
    ) -> iam.WorkloadIdentityServiceAgent:
        """Create all agents of Vertex AI now, as Google's page "Create and grant roles to service agents" describes.

        Without this, only the first agent is certain to exist before the first job (cloud-foundation-fabric #3209,
        #3788, terraform-provider-google #10469), while jobs wait for the grants to both. Agents that are created on
        request do not get their roles automatically, says the page, and in a project where nobody has used Vertex AI
        nobody else grants them; if they have them, these grants change nothing.
        """
        parent = f"projects/{agents.project_number}/locations/global/serviceProducers/aiplatform.googleapis.com"
        kept = ResourceOptions(retain_on_delete=True)
        options = ResourceOptions.merge(create_retrying_options(self), kept)
        resource = iam.WorkloadIdentityServiceAgent(name, parent=parent, opts=options)
        options = ResourceOptions.merge(create_retrying_options(self, [resource]), kept)
        for agent, member in agents.image_readers_by_name.items() if with_roles else ():
            projects.IAMMember(
                f"{name}-role-{agent}", project=project, role=AGENT_ROLES[agent], member=member, opts=options
            )
        return resource

    def _create_attachment_role(self, name: str, role_id: str, project: str) -> projects.IAMCustomRole:
        return projects.IAMCustomRole(
            name,
            project=project,
            role_id=role_id,
            title="Vertex AI training on a network attachment",
            permissions=list(ATTACHMENT_PERMISSIONS),
            opts=create_retrying_options(self),
        )
