"""What doctor looks at, what it may find, and the command that mends it: the table that docs/first-run.md shows.

The roles of the deployer are those of docs/access.md. Roles and permissions are of Google's page "IAM roles and
permissions index"; constraints are of its page "Organization policy constraints".
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from vertex_api.errors import visible

PAGE = "first-run"
UNNAMED = "the account that is signed in"
"""Stands in messages for a member that its credentials do not name. No command has it."""


class Place(NamedTuple):
    """A resource that has an allow policy: its kind, and the name by which Google's APIs know it."""

    kind: Literal["project", "bucket", "repository", "key", "secret", "account", "subnetwork"]
    name: str

    @property
    def parts(self) -> dict[str, str]:
        """The ids in a resource name: `{"projects": "p", "locations": "l", …}`."""
        words = self.name.split("/")
        return dict(zip(words[::2], words[1::2], strict=False))

    def __str__(self) -> str:
        return f"gs://{self.name}" if self.kind == "bucket" else f"{self.kind} {self.name}"

    def grant(self, role: str, member: str) -> str:
        """Return the command that grants a role here, or what to ask for if nobody knows to whom.

        Conditions elsewhere in a project's policy make gcloud ask for one.
        """
        if member == UNNAMED:
            return f"# grant {role} on {self} to {UNNAMED}"
        ids = self.parts
        group, *target = {
            "project": ("projects", self.name),
            "bucket": ("storage buckets", f"gs://{self.name}"),
            "repository": ("artifacts repositories", ids.get("repositories", ""), *_flags(ids, "location", "project")),
            "key": ("kms keys", ids.get("cryptoKeys", ""), *_flags(ids, "keyRing", "location", "project")),
            "secret": ("secrets", ids.get("secrets", ""), *_flags(ids, "project")),
            "account": ("iam service-accounts", self.name),
            "subnetwork": (
                "compute networks subnets",
                ids.get("subnetworks", ""),
                *_flags(ids, "region", "project"),
            ),
        }[self.kind]
        condition = ["--condition=None"] if self.kind == "project" else []
        words = [*target, f"--member={member}", f"--role={role}", *condition]
        return f"gcloud {group} add-iam-policy-binding {shlex.join(words)}"


def _flags(ids: Mapping[str, str], *names: str) -> list[str]:
    return [f"--{name.lower()}={ids.get(f'{name}s', '')}" for name in names]


class Check(NamedTuple):
    """A look at one thing: in the words of the page, the permissions that it needs, and a role that has them."""

    title: str
    permissions: str = ""
    role: str = ""


CHECKS = {
    "machine": Check("this machine"),
    "credentials": Check("credentials"),
    "project": Check("the project", "resourcemanager.projects.get", "roles/browser"),
    "apis": Check("APIs", "serviceusage.services.get", "roles/serviceusage.serviceUsageViewer"),
    "billing": Check("billing", "resourcemanager.projects.get", "roles/browser"),
    "deployer": Check("the deployer's permissions"),
    "grants": Check("grants of others", "resourcemanager.projects.getIamPolicy", "roles/iam.securityReviewer"),
    "accounts": Check("existing accounts", "iam.serviceAccounts.get", "roles/iam.serviceAccountViewer"),
    "bucket": Check("the bucket", "storage.buckets.get", "roles/storage.legacyBucketReader"),
    "registry": Check("the repository", "artifactregistry.repositories.get", "roles/artifactregistry.reader"),
    "keys": Check("keys", "cloudkms.cryptoKeys.get", "roles/cloudkms.viewer"),
    "secrets": Check("secrets", "secretmanager.secrets.get", "roles/secretmanager.viewer"),
    "network": Check(
        "the network",
        "compute.networks.get, compute.globalAddresses.get, compute.subnetworks.get, compute.networkAttachments.get, "
        "servicenetworking.services.get",
        "roles/compute.networkViewer",
    ),
    "data": Check(
        "what jobs read",
        "storage.buckets.getIamPolicy, bigquery.tables.getIamPolicy, artifactregistry.repositories.getIamPolicy",
        "roles/iam.securityReviewer",
    ),
    "reservations": Check("reservations", "compute.reservations.get", "roles/compute.viewer"),
    "tensorboard": Check("the TensorBoard", "aiplatform.tensorboards.get", "roles/aiplatform.viewer"),
    "alerts": Check("notification channels", "monitoring.notificationChannels.get", "roles/monitoring.viewer"),
    "quota": Check("quotas", "serviceusage.quotas.get", "roles/serviceusage.serviceUsageViewer"),
    "policies": Check("organization policies", "orgpolicy.policy.get", "roles/orgpolicy.policyViewer"),
}


Level = Literal["problem", "cannot tell", "note"]
"""`pulumi up` or a job fails; or whether one does is for you to judge; or neither does."""


class Rule(NamedTuple):
    """Something that a check may find: its message and the command that mends it, with values in braces.

    A remedy is undone by its inverse, or only looks. What it does besides is in `besides`, which follows it.
    """

    check: str
    message: str
    remedy: str
    besides: str = ""
    level: Level = "problem"


_SET, _REMOVE = "pulumi config set --stack {stack}", "pulumi config rm --stack {stack}"
_POLICY = "gcloud resource-manager org-policies describe {constraint} --effective --project={project}"
_REPLACES = "a policy on the project would take the place of all that the organization's allows"
_LOGIN = "gcloud auth application-default login"
_LOGIN_BESIDES = "it writes over what all programs of this machine sign in with"


def _project_grant(role: str, member: str = "{member}") -> str:
    return f"gcloud projects add-iam-policy-binding {{project}} --member={member} --role={role} --condition=None"


RULES = {
    "pulumi-missing": Rule(
        "machine",
        "pulumi is not on PATH",
        'sh -c "$(curl -fsSL https://get.pulumi.com)"',
        "it puts ~/.pulumi on PATH in your shell's profile",
    ),
    "plugin-missing": Rule(
        "machine",
        "Pulumi's plugin for Google Cloud is not installed, and {variable} keeps `pulumi up` from doing it; "
        "`vertex-training docs ci#without-pulumis-plugin` says how to test a stack without it",
        "pulumi plugin install resource gcp {version}",
    ),
    "docker-missing": Rule(
        "machine",
        "Docker does not answer on {host}: {user}",
        "sudo systemctl start docker",
    ),
    "credentials-missing": Rule("credentials", "there are none: {reason}", _LOGIN, _LOGIN_BESIDES),
    "credentials-refused": Rule("credentials", "Google does not take them: {reason}", _LOGIN, _LOGIN_BESIDES),
    "token-refused": Rule(
        "credentials",
        "{place}: Google does not take the access token, or no longer",
        'export GOOGLE_OAUTH_ACCESS_TOKEN="$(gcloud auth print-access-token)"',
    ),
    "key-file-refused": Rule(
        "credentials",
        "what is set gives no token: {reason}",
        f"unset {{place}} && {_LOGIN}",
        _LOGIN_BESIDES,
    ),
    "impersonation-refused": Rule(
        "credentials",
        "{account} is to be impersonated, and may not be: {reason}",
        "gcloud iam service-accounts add-iam-policy-binding {account} --member={member} "
        "--role=roles/iam.serviceAccountTokenCreator",
        "whoever has it may do all that the account may",
    ),
    "credentials-secret": Rule(
        "credentials",
        "{key} is encrypted in the stack file, so doctor looks with other credentials than the stack does",
        "export GOOGLE_CREDENTIALS=KEY_FILE",
        level="cannot tell",
    ),
    "quota-project": Rule(
        "credentials",
        "the credentials of {member} have no quota project, without which several APIs refuse them",
        "export GOOGLE_CLOUD_QUOTA_PROJECT={project}",
        "in this shell alone; `gcloud auth application-default set-quota-project` is for all shells",
    ),
    "provider-quota-project": Rule(
        "credentials",
        "Pulumi's Google provider is not told of a quota project for the credentials of {member}, so that a preview "
        "may not show quotas",
        f"{_SET} gcp:userProjectOverride true && {_SET} gcp:billingProject {{project}}",
        "all who use the stack then need roles/serviceusage.serviceUsageConsumer",
        "note",
    ),
    "quota-project-refused": Rule(
        "credentials",
        "{member} may not use the quota project {project}",
        _project_grant("roles/serviceusage.serviceUsageConsumer"),
    ),
    "project-missing": Rule(
        "project",
        "{project} does not exist, or {member} may not see it",
        _project_grant("roles/browser"),
        "for an owner of the project to run",
    ),
    "project-deleted": Rule(
        "project",
        "{project} is being deleted",
        "gcloud projects undelete {project}",
        "all that was in it, and its costs, come back with it",
    ),
    "project-number": Rule(
        "project",
        "the number of {project} is {number}, and the stack file has {wrong}",
        f"{_SET} vertex-training:projectNumber {{number}}",
    ),
    "api-off": Rule(
        "apis",
        "the {api} API, which the provider needs before it can enable any other, is off in {project}",
        "gcloud services enable cloudresourcemanager.googleapis.com serviceusage.googleapis.com --project={project}",
    ),
    "network-api-off": Rule(
        "apis",
        "the {api} API is off in {project}, the project of the network, where the stack enables none",
        "gcloud services enable {api} --project={project}",
        "with Compute Engine come a default account and, unless a policy forbids them, a default network and the "
        "account's role of an editor",
    ),
    "billing-off": Rule(
        "billing",
        "{project} has no billing account, so that no API can be enabled that costs money",
        "gcloud billing projects link {project} --billing-account=BILLING_ACCOUNT",
        "that account then pays for the project",
    ),
    "role-missing": Rule("deployer", "{member} lacks {permissions} on {place}", _project_grant("{role}")),
    "submitter-missing": Rule(
        "deployer",
        "{member} may not act as the account {account} that the stack creates, and so submits nothing that runs as it",
        f"{_SET} --path 'vertex-training:identity.submitters[{{index}}]' {{member}}",
    ),
    "agent-role": Rule(
        "grants",
        "identity.agentRoles is false, and no policy of {project} gives {member} a role, without which no job runs",
        _project_grant("{role}"),
        "with this role of Google's own the agent reads all buckets of the project",
    ),
    "account-role": Rule(
        "grants",
        "no policy of {project} gives the existing account {account} a role, such as {role} for its logs",
        _project_grant("{role}", "serviceAccount:{account}"),
    ),
    "attachment-grant": Rule(
        "grants",
        "no policy of {project}, which has the network attachment, gives Vertex AI's agent a role",
        _project_grant("roles/compute.networkAdmin"),
        "the role may change all networks there; one of your own with compute.networkAttachments.get, "
        "compute.networkAttachments.update and compute.regionOperations.get is enough",
    ),
    "subnetwork-grant": Rule(
        "grants",
        "no policy of {project} gives Vertex AI's agent the use of its {name}",
        "gcloud compute networks subnets add-iam-policy-binding {name} --region={region} --project={project} "
        "--member={member} --role=roles/compute.networkUser",
    ),
    "dns-grant": Rule(
        "grants",
        "no policy of {project} lets Vertex AI's agent peer DNS zones there, as network.attachment.dnsPeering asks for",
        _project_grant("roles/dns.peer"),
    ),
    "registry-key-grant": Rule(
        "grants",
        "{key} is for a repository of another project, and gives the agent of Artifact Registry there no role; its "
        "project may",
        "gcloud kms keys add-iam-policy-binding {key} --member={member} "
        "--role=roles/cloudkms.cryptoKeyEncrypterDecrypter",
        level="cannot tell",
    ),
    "account-missing": Rule(
        "accounts",
        "{account} does not exist",
        "gcloud iam service-accounts create {id} --project={project}",
    ),
    "account-disabled": Rule(
        "accounts",
        "{account} is disabled",
        "gcloud iam service-accounts enable {account} --project={project}",
        "its keys work again, too",
    ),
    "bucket-missing": Rule(
        "bucket",
        "gs://{bucket} does not exist",
        "gcloud storage buckets create gs://{bucket} --location={region} --uniform-bucket-level-access "
        "--project={project}",
    ),
    "bucket-region": Rule(
        "bucket",
        "gs://{bucket} is in {location}, and must be where the jobs are, in {region}: Vertex AI refuses others",
        "gcloud storage buckets create gs://{bucket}-{region} --location={region} --uniform-bucket-level-access "
        f"--project={{project}} && {_SET} --path vertex-training:bucket.existing {{bucket}}-{{region}}",
        "the other bucket keeps what is in it",
    ),
    "bucket-uniform": Rule(
        "bucket",
        "gs://{bucket} has no uniform bucket-level access, without which it takes no conditions; to turn that on ends "
        "all grants by ACLs, and after 90 days it cannot be turned off",
        f"{_SET} --path 'vertex-training:bucket.writableFolders[{{index}}]' /",
        "jobs may then write to the whole bucket",
    ),
    "bucket-taken": Rule(
        "bucket",
        "gs://{bucket}, which the stack would create, belongs to another project",
        f"{_SET} --path vertex-training:bucket.name {{bucket}}-{{number}}",
    ),
    "bucket-hidden": Rule(
        "bucket",
        "gs://{bucket}, which the stack would create, belongs to others, or {member} lacks storage.buckets.get",
        f"{_SET} --path vertex-training:bucket.name {{bucket}}-{{number}}",
        "if the bucket is the stack's own, the next `pulumi up` would replace it",
        "cannot tell",
    ),
    "registry-missing": Rule(
        "registry",
        "{name} does not exist",
        "gcloud artifacts repositories create {id} --repository-format=docker --location={location} "
        "--project={project}",
    ),
    "registry-format": Rule(
        "registry",
        "{name} is for {format}, and not for Docker images",
        "gcloud artifacts repositories create {id}-docker --repository-format=docker --location={location} "
        f"--project={{project}} && {_SET} --path vertex-training:registry.existing {{name}}-docker",
    ),
    "key-missing": Rule(
        "keys",
        "{name} does not exist; no key that is created can be deleted, so create it where you mean it to stay",
        "gcloud kms keys list --keyring={ring} --location={location} --project={project}",
    ),
    "key-purpose": Rule(
        "keys",
        "{name} is for {purpose}, and not to encrypt and decrypt",
        f"{_SET} --path vertex-training:{{path}} "
        "projects/{project}/locations/{location}/keyRings/RING/cryptoKeys/KEY",
    ),
    "key-disabled": Rule(
        "keys",
        "the primary version of {name} is {state}",
        "gcloud kms keys versions enable {version} --key={id} --keyring={ring} --location={location} "
        "--project={project}",
        "all that is encrypted with it can be read again",
    ),
    "secret-missing": Rule(
        "secrets",
        "{name} does not exist",
        "gcloud secrets create {id} --replication-policy=automatic --project={project}",
        "it is empty until `gcloud secrets versions add` gives it a value",
    ),
    "network-missing": Rule(
        "network",
        "{name} does not exist",
        "gcloud compute networks create {id} --subnet-mode=custom --project={project}",
        "it has no subnetworks and no firewall rules",
    ),
    "connection-missing": Rule(
        "network",
        "{name} is not peered with Google's services, and the stack peers it only with network.peering.prefixLength",
        f"{_SET} --path vertex-training:network.peering.prefixLength 16",
        "`pulumi up` then reserves a range of that size; the peering stays after `pulumi destroy`",
    ),
    "connection-ranges": Rule(
        "network",
        "{name} is peered already, with ranges that the stack does not name ({ranges}) and so may not change",
        f"{_SET} --path 'vertex-training:network.peering.reservedIpRanges[{{index}}]' {{range}}",
    ),
    "range-missing": Rule(
        "network",
        "the range {range} is not one of those that {name} is peered with ({ranges})",
        "gcloud services vpc-peerings update --service=servicenetworking.googleapis.com --network={id} "
        "--ranges={all} --project={project}",
        "all that use the peering then get addresses of that range, too",
    ),
    "attachment-missing": Rule(
        "network",
        "{name} does not exist",
        "gcloud compute network-attachments create {id} --region={region} --subnets=SUBNETWORK "
        "--connection-preference=ACCEPT_MANUAL --project={project}",
    ),
    "subnetwork-missing": Rule(
        "network",
        "{name} does not exist",
        "gcloud compute networks subnets create {id} --region={region} --network=NETWORK --range=RANGE "
        "--project={project}",
        "RANGE has at least 16 addresses (/28), which no other subnetwork of NETWORK or of its peers has",
    ),
    "tensorboard-missing": Rule(
        "tensorboard",
        "{name} does not exist",
        f"{_REMOVE} --path vertex-training:tensorboard.existing",
        "`pulumi up` then creates a TensorBoard",
    ),
    "channel-missing": Rule(
        "alerts", "{name} does not exist", "gcloud beta monitoring channels list --project={project}"
    ),
    "data-unreadable": Rule(
        "data",
        "no policy of gs://{bucket} or of its project lets {member} read it, as {user} does; a group may. `grant: "
        "true` in `data` lets the stack grant it",
        "gcloud storage buckets add-iam-policy-binding gs://{bucket} --member={member} "
        "--role=roles/storage.objectViewer",
        "jobs then read the whole bucket",
        "cannot tell",
    ),
    "table-unreadable": Rule(
        "data",
        "no policy of {table} or of its project lets {member} read it, as {user} does; a group may. `grant: true` in "
        "`data` lets the stack grant it",
        "bq add-iam-policy-binding --member={member} --role=roles/bigquery.dataViewer --table=true {table}",
        level="cannot tell",
    ),
    "queries-refused": Rule(
        "data",
        "no policy of {project} lets {member} run the queries that read {table}; a group may",
        _project_grant("roles/bigquery.jobUser"),
        "its queries are billed to the project",
        "cannot tell",
    ),
    "image-unreadable": Rule(
        "data",
        "no policy of {name} or of its project lets Vertex AI's agents pull {image}",
        "gcloud artifacts repositories add-iam-policy-binding {name} --member={member} "
        "--role=roles/artifactregistry.reader",
        level="cannot tell",
    ),
    "reservation-missing": Rule(
        "reservations",
        "{name}, which {user} names, does not exist",
        "gcloud compute reservations list --project={project}",
    ),
    "reservation-unshared": Rule(
        "reservations",
        "{name}, which {user} names, is not shared with Vertex AI",
        "gcloud compute reservations update {id} --zone={zone} --reservation-sharing-policy=ALLOW_ALL "
        "--project={project}",
        "other services of Google Cloud in the project may use it, too",
    ),
    "quota-short": Rule(
        "quota",
        "{jobs} can never run with the {granted} granted of {metric} in {region}",
        "gcloud beta quotas preferences create --service=aiplatform.googleapis.com --quota-id={quota} "
        "--preferred-value={needed} --dimensions=region={region} --email={email} --project={project}",
        "Google decides, and writes to that address",
    ),
    "location-refused": Rule(
        "policies",
        "constraints/gcp.resourceLocations does not allow {location}; ask your organization to add {value}, as "
        f"{_REPLACES}",
        _POLICY.replace("{constraint}", "gcp.resourceLocations"),
    ),
    "service-refused": Rule(
        "policies",
        f"constraints/gcp.restrictServiceUsage does not allow {{api}}; ask your organization to add it, as {_REPLACES}",
        _POLICY.replace("{constraint}", "gcp.restrictServiceUsage"),
    ),
    "accounts-refused": Rule(
        "policies",
        "constraints/iam.disableServiceAccountCreation keeps the stack from creating {accounts}",
        f"{_SET} --path vertex-training:identity.existing ACCOUNT",
        "ACCOUNT then needs the roles that `vertex-training docs access` names",
    ),
    "account-elsewhere": Rule(
        "policies",
        "constraints/iam.disableCrossProjectServiceAccountUsage keeps {account} inside its project",
        f"{_REMOVE} --path vertex-training:identity.existing",
        "jobs then run as an account that the stack creates",
    ),
    "key-required": Rule(
        "policies",
        "constraints/gcp.restrictNonCmekServices asks for a key of {api}, and the stack has none in {path}",
        f"{_SET} --path vertex-training:{{path}} "
        "projects/{project}/locations/{region}/keyRings/RING/cryptoKeys/KEY",
        "what it encrypts cannot be read without it",
    ),
    "key-refused": Rule(
        "policies",
        "constraints/gcp.restrictCmekCryptoKeyProjects does not allow keys of {owner}; ask your organization to add "
        f"under:projects/{{owner}}, as {_REPLACES}",
        _POLICY.replace("{constraint}", "gcp.restrictCmekCryptoKeyProjects"),
    ),
    "members-refused": Rule(
        "policies",
        "constraints/iam.allowedPolicyMemberDomains limits who may be granted roles, and {members} may be outside",
        _POLICY.replace("{constraint}", "iam.allowedPolicyMemberDomains"),
        level="cannot tell",
    ),
}
"""By the id that `--json` shows. Upper-case words in a remedy are for you to replace."""


@dataclass(frozen=True)
class Finding:
    """Something that doctor says: a rule that is broken (`is_problem`), what it cannot tell, or a note.

    `besides` is what the remedy does beside mending.
    """

    id: str
    message: str
    remedy: str
    level: Level = "problem"
    besides: str = ""
    is_problem: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_problem", self.level == "problem")

    def __str__(self) -> str:
        remedy = f"\n  {self.remedy}" if self.remedy else ""
        besides = f"\n  # {self.besides}" if remedy and self.besides else ""
        return visible(f"{self.level}: {self.message}{remedy}{besides}", "\n")


def found(rule_id: str, command: str = "", besides: str = "", unread: str = "", **values: object) -> Finding:
    """Return the finding of a rule, with these values in its message and, quoted for a shell, in its remedy.

    A `command` takes the place of the rule's one, and `besides` of what that does besides. Where the policies of what
    is `unread` may grant what is missing, nobody can tell.
    """
    rule, texts = RULES[rule_id], {name: str(value) for name, value in values.items()}
    message = f"{CHECKS[rule.check].title}: {rule.message.format(**texts)}"
    if not command and "{member}" in rule.remedy and texts.get("member") == UNNAMED:
        role = rule.remedy.partition("--role=")[2].partition(" ")[0]
        command = f"# grant {role} on {texts.get('account') or texts['project']} to {UNNAMED}"
    remedy = command or rule.remedy.format(**{name: shlex.quote(text) for name, text in texts.items()})
    level = rule.level
    if unread:
        level, message = "cannot tell", f"{message}; those of {unread} may, which cannot be read"
    return Finding(rule_id, message, remedy, level, besides or rule.besides)


POWERS = {
    "roles/resourcemanager.projectIamAdmin": "whoever has it may give any role in the project to anyone",
    "roles/iam.serviceAccountAdmin": "whoever has it may become any account of the project",
    "roles/iam.roleAdmin": "whoever has it may add permissions to every role that the project defines",
    "roles/iam.serviceAccountUser": "whoever has it may run code that does all that the account may",
    "roles/storage.admin": "whoever has it may read and delete what is in the buckets",
    "roles/secretmanager.admin": "whoever has it may read and destroy the secret",
    "roles/cloudkms.admin": "whoever has it may destroy versions of the key, and with them what they encrypt",
    "roles/compute.networkAdmin": "whoever has it may change all networks of the project",
}
"""What roles of the deployer allow beside what the stack needs them for."""
