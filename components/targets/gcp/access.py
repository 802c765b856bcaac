"""Who may do what: the accounts that jobs and builds run as, Google's service agents, and readers of secrets."""

from __future__ import annotations  # loads the provider's types only if they are used

from collections.abc import Sequence
from typing import Required, TypedDict

from pulumi import ResourceOptions
from pulumi_gcp import artifactregistry, bigquery, iam, projects, secretmanager, serviceaccount, storage

from ...data.listing import BUCKET, TABLE
from .project import LOG_WRITER, Component, ServiceAgents, account_email, grant_act_as, grant_key
from .storage import READER_ROLES, RepositoryName

VERTEX_USER = "roles/aiplatform.user"
"""In an account's own project: for experiments, TensorBoard and models, and with it for changes of jobs."""
_IMAGE_READER, _IMAGE_WRITER = "roles/artifactregistry.reader", "roles/artifactregistry.writer"
_OBJECT_VIEWER = "roles/storage.objectViewer"
SECRET_ACCESSOR = "roles/secretmanager.secretAccessor"
_TOKEN_CREATOR = "roles/iam.serviceAccountTokenCreator"
_DNS_PEER = "roles/dns.peer"
_NETWORK_USER = "roles/compute.networkUser"
TABLE_VIEWER = "roles/bigquery.dataViewer"
TABLE_USER_ROLES = {"queries": "roles/bigquery.jobUser", "sessions": "roles/bigquery.readSessionUser"}
_AGENT_ROLES = {"vertex": "roles/aiplatform.serviceAgent", "custom-code": "roles/aiplatform.customCodeServiceAgent"}
"""The roles of Vertex AI's agents in their own project, by the names of `ServiceAgents.image_readers`."""
_ATTACHMENT_PERMISSIONS = (
    "compute.networkAttachments.get",
    "compute.networkAttachments.update",
    "compute.regionOperations.get",
)
"""What Vertex AI needs to join an attachment's accepted projects: Google's page on Private Service Connect interfaces
has these as the narrow alternative to roles/compute.networkAdmin. roles/compute.networkUser lacks the second."""


class TrainingIdentityArgs(TypedDict, total=False):
    """`account` is the account's id, `submitters` are the IAM members that may submit jobs with it (`actAs`).

    With `uses_vertex_ai`, the default, training code may call Vertex AI itself.
    """

    project: Required[str]
    account: Required[str]
    submitters: Sequence[str]
    uses_vertex_ai: bool


class TrainingIdentity(Component):
    """The service account that training code runs as, with the least privileges it needs.

    `email` and `member` are plain text, so a preview shows them.
    """

    def __init__(self, name: str, args: TrainingIdentityArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        project, account = args["project"], args["account"]
        self.email = account_email(account, project)
        self.member = f"serviceAccount:{self.email}"
        self.resource = serviceaccount.Account(
            name, project=project, account_id=account, display_name="Vertex AI training", opts=self.retrying()
        )
        options = self.retrying(self.resource)
        roles = {"logs": LOG_WRITER, **({"vertex": VERTEX_USER} if args.get("uses_vertex_ai", True) else {})}
        for suffix, role in roles.items():
            projects.IAMMember(f"{name}-{suffix}", project=project, role=role, member=self.member, opts=options)
        grant_act_as(name, self.email, args.get("submitters", ()), project, options)
        self.register_outputs({"email": self.email})


class BuilderIdentityArgs(TypedDict, total=False):
    """`account` is the id of an account to create, unless `existing` is the e-mail of one.

    It may write images to `repository`, read sources in `bucket`, and read `secrets` of Secret Manager. `submitters`
    may start builds as one that is created here (`actAs`).
    """

    project: Required[str]
    account: Required[str]
    existing: str | None
    repository: Required[RepositoryName | None]
    bucket: Required[str]
    secrets: Sequence[str]
    submitters: Sequence[str]


class BuilderIdentity(Component):
    """The service account that Cloud Build builds images as, with the least privileges it needs.

    One that is created here may write logs, too. `email` is plain text.
    """

    def __init__(self, name: str, args: BuilderIdentityArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        project, repository, existing = args["project"], args["repository"], args.get("existing")
        self.email = existing or account_email(args["account"], project)
        member, created = f"serviceAccount:{self.email}", []
        if not existing:
            created = [
                serviceaccount.Account(
                    name,
                    project=project,
                    account_id=args["account"],
                    display_name="Vertex AI training image builds",
                    opts=self.retrying(),
                )
            ]
        options = self.retrying(*created)
        if created:
            projects.IAMMember(f"{name}-logs", project=project, role=LOG_WRITER, member=member, opts=options)
            grant_act_as(name, self.email, args.get("submitters", ()), project, options)
        if repository:
            _grant_repository(f"{name}-push", repository, _IMAGE_WRITER, member, options)
        storage.BucketIAMMember(
            f"{name}-sources", bucket=args["bucket"], role=_OBJECT_VIEWER, member=member, opts=options
        )
        if secrets := args.get("secrets"):
            SecretAccess(
                f"{name}-secrets",
                {"project": project, "secrets": secrets, "member": member},
                ResourceOptions(parent=self, depends_on=created),
            )
        self.register_outputs({"email": self.email})


def _grant_repository(name: str, repository: RepositoryName, role: str, member: str, options: ResourceOptions) -> None:
    artifactregistry.RepositoryIamMember(
        name,
        project=repository.project,
        location=repository.location,
        repository=repository.name,
        role=role,
        member=member,
        opts=options,
    )


class SecretAccessArgs(TypedDict):
    """`secrets` exist, each by its name or as `projects/P/secrets/NAME`; `member` is an IAM member."""

    project: str
    secrets: Sequence[str]
    member: str


class SecretAccess(Component):
    """Grants to read secrets of Secret Manager."""

    def __init__(self, name: str, args: SecretAccessArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        options = self.retrying()
        for secret in dict.fromkeys(args["secrets"]):
            owner, secret_id = secret.split("/")[1::2] if "/" in secret else (args["project"], secret)
            secretmanager.SecretIamMember(
                f"{name}-{secret}",
                project=owner,
                secret_id=secret_id,
                role=SECRET_ACCESSOR,
                member=args["member"],
                opts=options,
            )
        self.register_outputs({})


class ServiceAgentAccessArgs(TypedDict, total=False):
    """What the agents need access to.

    `repository` has the images, and `other_repositories` have some of them. `kms_key` encrypts jobs. `legacy_buckets`
    have images of Container Registry (`artifacts.P.appspot.com`), which with `has_legacy_agent` the agent of AI
    Platform Training reads too. In `dns_projects` the agent peers the zones that jobs resolve names in, and
    `host_project` has the subnetwork of a Shared VPC that the network attachment is in. `foreign_account` is the e-mail
    of the account that jobs run as, if it belongs to another project. `attachment_role_id` names the role to create for
    the network attachment of jobs, if it is in the project itself. With `creates_agents` false, the agents are there
    already; with `has_agent_roles` false, their own roles are somebody else's to grant.
    """

    project: Required[str]
    project_number: Required[str]
    repository: RepositoryName | None
    other_repositories: Sequence[RepositoryName]
    kms_key: str | None
    legacy_buckets: Sequence[str]
    has_legacy_agent: bool
    dns_projects: Sequence[str]
    host_project: str | None
    foreign_account: str | None
    attachment_role_id: str | None
    creates_agents: bool
    has_agent_roles: bool


class ServiceAgentAccess(Component):
    """The Vertex AI service agents of a project, and every grant that Google's agents need for this stack's jobs.

    All members are computed from the project's number, so a preview shows them. The agents and their own roles stay
    when the stack is destroyed: they belong to the project. Source: the table on Google's page on access control for
    Vertex AI, which docs/access.md repeats.
    """

    def __init__(self, name: str, args: ServiceAgentAccessArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        project, agents = args["project"], ServiceAgents(args["project_number"])
        existing = self._create_agents(name, agents, args)
        options = self.retrying(*existing)
        for other in args.get("other_repositories", ()):
            path = f"{other.project}-{other.location}-{other.name}"
            for agent, member in agents.image_readers.items():
                _grant_repository(f"{name}-pull-{path}-{agent}", other, _IMAGE_READER, member, options)
        if repository := args.get("repository"):
            for agent, member in agents.image_readers.items():
                _grant_repository(f"{name}-pull-{agent}", repository, _IMAGE_READER, member, options)
        if key := args.get("kms_key"):
            # Google's page on customer-managed keys asks for this agent alone. The other one is what every job of the
            # project runs as that has no account of its own.
            grant_key(f"{name}-key-vertex", key, agents.vertex, options)
        readers = {**agents.image_readers, **({"legacy": agents.legacy} if args.get("has_legacy_agent") else {})}
        for bucket in args.get("legacy_buckets", ()):
            for agent, member in readers.items():
                storage.BucketIAMMember(
                    f"{name}-{bucket}-{agent}", bucket=bucket, role=_OBJECT_VIEWER, member=member, opts=options
                )
        for owner in args.get("dns_projects", ()):
            projects.IAMMember(f"{name}-dns-{owner}", project=owner, role=_DNS_PEER, member=agents.vertex, opts=options)
        if host := args.get("host_project"):
            # On the project, as Google's page "Set up a Private Service Connect interface" has it for a Shared VPC.
            projects.IAMMember(f"{name}-network", project=host, role=_NETWORK_USER, member=agents.vertex, opts=options)
        if email := args.get("foreign_account"):
            account = f"projects/-/serviceAccounts/{email}"
            serviceaccount.IAMMember(
                f"{name}-tokens", service_account_id=account, role=_TOKEN_CREATOR, member=agents.vertex, opts=options
            )
        if role_id := args.get("attachment_role_id"):
            role = projects.IAMCustomRole(
                f"{name}-attachment",
                project=project,
                role_id=role_id,
                title="Vertex AI training on a network attachment",
                permissions=list(_ATTACHMENT_PERMISSIONS),
                opts=self.retrying(),
            )
            projects.IAMMember(
                f"{name}-attachment",
                project=project,
                role=f"projects/{project}/roles/{role_id}",
                member=agents.vertex,
                opts=self.retrying(role, *existing),
            )
        self.register_outputs({})

    def _create_agents(
        self, name: str, agents: ServiceAgents, args: ServiceAgentAccessArgs
    ) -> list[iam.WorkloadIdentityServiceAgent]:
        """Create all agents of Vertex AI now, as Google's page "Create and grant roles to service agents" describes.

        Without this, only the first agent is certain to exist before the first job (cloud-foundation-fabric #3209,
        #3788, terraform-provider-google #10469), while jobs wait for the grants to both. The call makes no agent alone,
        and none that it makes gets its role automatically, says the page: so each is granted the role that the answer
        names for it. A preview knows those of jobs only. Roles that an agent has already stay as they are.
        """
        kept = ResourceOptions(retain_on_delete=True)
        existing: list[iam.WorkloadIdentityServiceAgent] = []
        if args.get("creates_agents", True):
            parent = f"projects/{agents.project_number}/locations/global/serviceProducers/aiplatform.googleapis.com"
            existing = [
                iam.WorkloadIdentityServiceAgent(name, parent=parent, opts=ResourceOptions.merge(self.retrying(), kept))
            ]
        if not args.get("has_agent_roles", True):
            return existing
        options = ResourceOptions.merge(self.retrying(*existing), kept)
        own = agents.image_readers
        for agent, member in own.items():
            projects.IAMMember(
                f"{name}-role-{agent}", project=args["project"], role=_AGENT_ROLES[agent], member=member, opts=options
            )

        def grant_others(made: Sequence[iam.outputs.WorkloadIdentityServiceAgentServiceAgent] | None) -> None:
            for each in made or ():
                # The principal of a resource's own identity comes without a role.
                if each.principal and each.role and each.principal not in own.values():
                    agent = each.principal.partition("@")[2].partition(".")[0]
                    projects.IAMMember(
                        f"{name}-role-{agent}",
                        project=args["project"],
                        role=each.role,
                        member=each.principal,
                        opts=options,
                    )

        for created in existing:
            created.service_agents.apply(grant_others)
        return existing


class DataAccessArgs(TypedDict):
    """`uris` are of data outside the stack's own bucket; `member` is the account that jobs run as, in `project`."""

    project: str
    uris: Sequence[str]
    member: str


class DataAccess(Component):
    """Grants to read the data of jobs: objects of buckets, and rows of BigQuery tables.

    A bucket is granted as a whole: a list is a request of the bucket, which no condition on names allows. To query a
    table, BigQuery also asks for jobs, and to read it fast, for read sessions, both in the project that pays (its page
    "IAM roles and permissions").
    """

    def __init__(self, name: str, args: DataAccessArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        options, member = self.retrying(), args["member"]
        places = [uri.removeprefix(BUCKET).partition("/")[0] for uri in args["uris"] if uri.startswith(BUCKET)]
        for bucket in dict.fromkeys(places):
            for suffix, role in READER_ROLES.items():
                storage.BucketIAMMember(
                    f"{name}-{bucket}-{suffix}", bucket=bucket, role=role, member=member, opts=options
                )
        tables = dict.fromkeys(uri.removeprefix(TABLE) for uri in args["uris"] if uri.startswith(TABLE))
        for table in tables:
            owner, dataset, table_id = table.split(".")
            bigquery.IamMember(
                f"{name}-{table}",
                project=owner,
                dataset_id=dataset,
                table_id=table_id,
                role=TABLE_VIEWER,
                member=member,
                opts=options,
            )
        for suffix, role in TABLE_USER_ROLES.items() if tables else ():
            projects.IAMMember(f"{name}-{suffix}", project=args["project"], role=role, member=member, opts=options)
        self.register_outputs({})
