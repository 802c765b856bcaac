"""What doctor looks at, what it may find, and the command that mends it: the table that docs/first-run.md shows.

The roles of the deployer are those of docs/access.md. Roles and permissions are of Google's page "IAM roles and
permissions index"; constraints are of its page "Organization policy constraints".
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from vertex_api.errors import visible

PAGE = "docs/first-run.md"


class Place(NamedTuple):
    """A resource that has an allow policy: its kind, and the name by which Google's APIs know it."""

    kind: Literal["project", "bucket", "repository", "key", "secret", "account"]
    name: str

    @property
    def parts(self) -> dict[str, str]:
        """The ids in a resource name: `{"projects": "p", "locations": "l", …}`."""
        words = self.name.split("/")
        return dict(zip(words[::2], words[1::2], strict=False))

    def __str__(self) -> str:
        return f"gs://{self.name}" if self.kind == "bucket" else f"{self.kind} {self.name}"

    def grant(self, role: str, member: str) -> str:
        """Return the command that grants a role here. Conditions elsewhere in a project's policy make gcloud ask."""
        ids = self.parts
        group, *target = {
            "project": ("projects", self.name),
            "bucket": ("storage buckets", f"gs://{self.name}"),
            "repository": ("artifacts repositories", ids.get("repositories", ""), *_flags(ids, "location", "project")),
            "key": ("kms keys", ids.get("cryptoKeys", ""), *_flags(ids, "keyRing", "location", "project")),
            "secret": ("secrets", ids.get("secrets", ""), *_flags(ids, "project")),
            "account": ("iam service-accounts", self.name),
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
    "tensorboard": Check("the TensorBoard", "aiplatform.tensorboards.get", "roles/aiplatform.viewer"),
    "alerts": Check("notification channels", "monitoring.notificationChannels.get", "roles/monitoring.viewer"),
    "quota": Check("quotas", "cloudquotas.quotas.get", "roles/cloudquotas.viewer"),
    "policies": Check("organization policies", "orgpolicy.policy.get", "roles/orgpolicy.policyViewer"),
}


class Rule(NamedTuple):
    """Something that a check may find: its message and the command that mends it, with values in braces."""

    check: str
    message: str
    remedy: str
    is_certain: bool = True
    """Whether `pulumi up` fails by it, or a job does. Others are for you to judge."""


_SET = "pulumi config set --stack {stack}"
_POLICY = "gcloud resource-manager org-policies"


def _project_grant(role: str, member: str = "{member}") -> str:
    return f"gcloud projects add-iam-policy-binding {{project}} --member={member} --role={role} --condition=None"


RULES = {
    "pulumi-missing": Rule("machine", "pulumi is not on PATH", 'sh -c "$(curl -fsSL https://get.pulumi.com)"'),
    "plugin-missing": Rule(
        "machine",
        "Pulumi's plugin for Google Cloud is not installed, and {variable} keeps `pulumi up` from doing it; "
        "docs/ci.md#without-pulumis-plugin says how to test a stack without it",
        "pulumi plugin install resource gcp {version}",
    ),
    "docker-missing": Rule(
        "machine",
        "Docker does not answer on {host}: {user}",
        "sudo systemctl start docker",
    ),
    "credentials-missing": Rule("credentials", "there are none: {reason}", "gcloud auth application-default login"),
    "credentials-refused": Rule(
        "credentials", "Google does not take them: {reason}", "gcloud auth application-default login"
    ),
    "token-refused": Rule(
        "credentials",
        "{place}: Google does not take the access token, or no longer",
        'export GOOGLE_OAUTH_ACCESS_TOKEN="$(gcloud auth print-access-token)"',
    ),
    "key-file-refused": Rule(
        "credentials",
        "what is set gives no token: {reason}",
        "unset {place} && gcloud auth application-default login",
    ),
    "impersonation-refused": Rule(
        "credentials",
        "{account} is to be impersonated, and may not be: {reason}",
        "gcloud iam service-accounts add-iam-policy-binding {account} --member={member} "
        "--role=roles/iam.serviceAccountTokenCreator",
    ),
    "credentials-secret": Rule(
        "credentials",
        "{key} is encrypted in the stack file, so doctor looks with other credentials than the stack does",
        "export GOOGLE_CREDENTIALS=KEY_FILE",
        is_certain=False,
    ),
    "quota-project": Rule(
        "credentials",
        "the credentials of {member} have no quota project, without which several APIs refuse them",
        "gcloud auth application-default set-quota-project {project}",
    ),
    "provider-quota-project": Rule(
        "credentials",
        "Pulumi's Google provider is not told of a quota project for the credentials of {member}",
        f"{_SET} gcp:userProjectOverride true && {_SET} gcp:billingProject {{project}}",
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
    ),
    "project-deleted": Rule("project", "{project} is being deleted", "gcloud projects undelete {project}"),
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
    ),
    "billing-off": Rule(
        "billing",
        "{project} has no billing account, so that no API can be enabled that costs money",
        "gcloud billing projects link {project} --billing-account=BILLING_ACCOUNT",
    ),
    "role-missing": Rule("deployer", "{member} lacks {permissions} on {place}", _project_grant("{role}")),
    "submitter-missing": Rule(
        "deployer",
        "{member} may not act as the account {account} that the stack creates, and so submits nothing that runs as it",
        f"{_SET} --path 'vertex-training:identity.submitters[{{index}}]' {{member}}",
    ),
    "agent-role": Rule(
        "grants",
        "identity.agentRoles is false, and the policy of {project} gives {member} no role, without which no job runs; "
        "one of a folder may",
        _project_grant("{role}"),
        is_certain=False,
    ),
    "account-role": Rule(
        "grants",
        "the policy of {project} gives the existing account {account} no role, such as {role} for its logs; one of a "
        "folder may",
        _project_grant("{role}", "serviceAccount:{account}"),
        is_certain=False,
    ),
    "attachment-grant": Rule(
        "grants",
        "the policy of {project}, which has the network attachment, gives Vertex AI's agent no role; one of a folder "
        "may",
        _project_grant("roles/compute.networkAdmin"),
        is_certain=False,
    ),
    "registry-key-grant": Rule(
        "grants",
        "{key} is for a repository of another project, and gives the agent of Artifact Registry there no role; its "
        "project may",
        "gcloud kms keys add-iam-policy-binding {key} --member={member} "
        "--role=roles/cloudkms.cryptoKeyEncrypterDecrypter",
        is_certain=False,
    ),
    "account-missing": Rule(
        "accounts",
        "{account} does not exist",
        "gcloud iam service-accounts create {id} --project={project}",
    ),
    "account-disabled": Rule(
        "accounts", "{account} is disabled", "gcloud iam service-accounts enable {account} --project={project}"
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
    ),
    "bucket-uniform": Rule(
        "bucket",
        "gs://{bucket} has no uniform bucket-level access, without which it takes no conditions",
        "gcloud storage buckets update gs://{bucket} --uniform-bucket-level-access",
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
        is_certain=False,
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
        "{name} does not exist",
        "gcloud kms keys create {id} --purpose=encryption --keyring={ring} --location={location} --project={project}",
    ),
    "key-purpose": Rule(
        "keys",
        "{name} is for {purpose}, and not to encrypt and decrypt",
        "gcloud kms keys create {id}-data --purpose=encryption --keyring={ring} --location={location} "
        f"--project={{project}} && {_SET} --path vertex-training:{{path}} {{name}}-data",
    ),
    "key-disabled": Rule(
        "keys",
        "the primary version of {name} is {state}",
        "gcloud kms keys versions {verb} {version} --key={id} --keyring={ring} --location={location} "
        "--project={project}",
    ),
    "secret-missing": Rule(
        "secrets",
        "{name} does not exist",
        "gcloud secrets create {id} --replication-policy=automatic --project={project}",
    ),
    "network-missing": Rule(
        "network", "{name} does not exist", "gcloud compute networks create {id} --project={project}"
    ),
    "connection-missing": Rule(
        "network",
        "{name} is not peered with Google's services, and the stack peers it only with network.peering.prefixLength",
        f"{_SET} --path vertex-training:network.peering.prefixLength 16",
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
        "gcloud compute networks subnets create {id} --region={region} --network=NETWORK --range=10.0.0.0/24 "
        "--project={project}",
    ),
    "tensorboard-missing": Rule(
        "tensorboard",
        "{name} does not exist",
        "gcloud ai tensorboards create --display-name=training --region={region} --project={project}",
    ),
    "channel-missing": Rule(
        "alerts", "{name} does not exist", "gcloud beta monitoring channels list --project={project}"
    ),
    "quota-short": Rule(
        "quota",
        "{jobs} can never run with the {granted} granted of {metric} in {region}",
        "gcloud beta quotas preferences create --service=aiplatform.googleapis.com --quota-id={quota} "
        "--preferred-value={needed} --dimensions=region={region} --project={project}",
    ),
    "location-refused": Rule(
        "policies",
        "constraints/gcp.resourceLocations does not allow {location}",
        f"{_POLICY} allow gcp.resourceLocations in:{{location}}-locations --project={{project}}",
    ),
    "service-refused": Rule(
        "policies",
        "constraints/gcp.restrictServiceUsage does not allow {api}",
        f"{_POLICY} allow gcp.restrictServiceUsage {{api}} --project={{project}}",
    ),
    "accounts-refused": Rule(
        "policies",
        "constraints/iam.disableServiceAccountCreation keeps the stack from creating {accounts}",
        f"{_POLICY} disable-enforce iam.disableServiceAccountCreation --project={{project}}",
    ),
    "account-elsewhere": Rule(
        "policies",
        "constraints/iam.disableCrossProjectServiceAccountUsage keeps {account} inside its project",
        f"{_POLICY} disable-enforce iam.disableCrossProjectServiceAccountUsage --project={{project}}",
    ),
    "key-required": Rule(
        "policies",
        "constraints/gcp.restrictNonCmekServices asks for a key of {api}, and the stack has none in {path}",
        f"{_SET} --path vertex-training:{{path}} "
        "projects/{project}/locations/{region}/keyRings/RING/cryptoKeys/KEY",
    ),
    "key-refused": Rule(
        "policies",
        "constraints/gcp.restrictCmekCryptoKeyProjects does not allow keys of {owner}",
        f"{_POLICY} allow gcp.restrictCmekCryptoKeyProjects under:projects/{{owner}} --project={{project}}",
    ),
    "members-refused": Rule(
        "policies",
        "constraints/iam.allowedPolicyMemberDomains limits who may be granted roles, and {members} may be outside",
        f"{_POLICY} describe iam.allowedPolicyMemberDomains --effective --project={{project}}",
        is_certain=False,
    ),
}
"""By the id that `--json` shows. Upper-case words in a remedy are for you to replace."""


@dataclass(frozen=True)
class Finding:
    """Something that doctor says: a rule that is broken (`is_problem`), or what it cannot tell."""

    id: str
    message: str
    remedy: str
    is_problem: bool = field(default=True)

    def __str__(self) -> str:
        kind = "problem" if self.is_problem else "cannot tell"
        return visible(f"{kind}: {self.message}\n  {self.remedy}" if self.remedy else f"{kind}: {self.message}", "\n")


def found(rule_id: str, command: str = "", **values: object) -> Finding:
    """Return the finding of a rule, with these values in its message and, quoted for a shell, in its remedy.

    A `command` takes the place of the rule's one.
    """
    rule, texts = RULES[rule_id], {name: str(value) for name, value in values.items()}
    message = f"{CHECKS[rule.check].title}: {rule.message.format(**texts)}"
    remedy = command or rule.remedy.format(**{name: shlex.quote(text) for name, text in texts.items()})
    return Finding(rule_id, message, remedy, rule.is_certain)


class Role(NamedTuple):
    """A role of the deployer: on what, in the words of docs/access.md, and the permissions in it by what needs them.

    `at` is where they are needed: where the resource is, on an account that it uses, or where its builds run.
    """

    role: str
    on: str
    permissions: Mapping[str, str]
    at: Literal["resource", "account", "builder", "pool"] = "resource"


_POLICIES = "resourcemanager.projects.getIamPolicy resourcemanager.projects.setIamPolicy"
_VERTEX_JOBS = {
    f"vertex-training.{kind}": f"aiplatform.{kind[0].lower()}{kind[1:]}s.create"
    for kind in ("CustomJob", "HyperparameterTuningJob", "TrainingPipeline")
}
_LISTS = "aiplatform.customJobs.list"
_ACT_AS = "iam.serviceAccounts.actAs"
_IMAGE, _PACKAGE = "vertex-training.TrainingImage", "vertex-training.PythonPackage"
_NETWORK = "the project of the network"
DEPLOYER = (
    Role(
        "roles/serviceusage.serviceUsageAdmin",
        "the project",
        dict.fromkeys(("projects.Service", "projects.ServiceIdentity"), "serviceusage.services.enable"),
    ),
    Role(
        "roles/workloadidentity.admin",
        "the project",
        {"iam.WorkloadIdentityServiceAgent": "workloadidentity.serviceAgents.create workloadidentity.operations.get"},
    ),
    Role(
        "roles/resourcemanager.projectIamAdmin",
        "the project, and the `targetProject` of each `dnsPeering`",
        {"projects.IAMMember": _POLICIES},
    ),
    Role("roles/iam.roleAdmin", "the project", {"projects.IAMCustomRole": "iam.roles.create"}),
    Role(
        "roles/iam.serviceAccountAdmin",
        "the project, and the project of an `identity.existing`",
        {
            "serviceaccount.Account": "iam.serviceAccounts.create",
            "serviceaccount.IAMMember": "iam.serviceAccounts.setIamPolicy",
        },
    ),
    Role(
        "roles/artifactregistry.admin",
        "the project of the repository",
        {
            "artifactregistry.Repository": "artifactregistry.repositories.create",
            "artifactregistry.RepositoryIamMember": "artifactregistry.repositories.setIamPolicy",
            _IMAGE: "artifactregistry.repositories.downloadArtifacts artifactregistry.repositories.uploadArtifacts",
        },
    ),
    Role(
        "roles/storage.admin",
        "the project, or the bucket if it exists, and each of `registry.legacyBuckets`",
        {
            "storage.Bucket": "storage.buckets.create",
            "storage.BucketIAMMember": "storage.buckets.setIamPolicy",
            _PACKAGE: "storage.objects.create",
        },
    ),
    Role("roles/cloudkms.admin", "each key", {"kms.CryptoKeyIAMMember": "cloudkms.cryptoKeys.setIamPolicy"}),
    Role(
        "roles/secretmanager.admin",
        "each of `identity.secrets`",
        {"secretmanager.SecretIamMember": "secretmanager.secrets.setIamPolicy"},
    ),
    Role(
        "roles/monitoring.alertPolicyEditor",
        "the project",
        {"monitoring.AlertPolicy": "monitoring.alertPolicies.create"},
    ),
    Role("roles/logging.configWriter", "the project", {"monitoring.AlertPolicy": "logging.notificationRules.create"}),
    Role(
        "roles/monitoring.notificationChannelEditor",
        "the project",
        {"monitoring.NotificationChannel": "monitoring.notificationChannels.create"},
    ),
    Role(
        "roles/workflows.admin",
        "the project",
        {
            "workflows.Workflow": "workflows.workflows.create",
            "vertex-training.ScheduleStatus": "workflows.executions.list",
        },
    ),
    Role("roles/cloudscheduler.admin", "the project", {"cloudscheduler.Job": "cloudscheduler.jobs.create"}),
    Role(
        "roles/compute.networkAdmin",
        _NETWORK,
        {
            "compute.GlobalAddress": "compute.globalAddresses.createInternal compute.networks.use",
            "servicenetworking.Connection": "servicenetworking.services.addPeering",
            "compute.NetworkAttachment": "compute.networkAttachments.create compute.subnetworks.use",
        },
    ),
    Role(
        "roles/aiplatform.user",
        "the project",
        {
            "vertex.AiTensorboard": "aiplatform.tensorboards.create",
            "vertex-training.Ledger": _LISTS,
            **_VERTEX_JOBS,
            "vertex-training.Completion": _LISTS,
            "vertex-training.ScheduleStatus": _LISTS,
        },
    ),
    Role(
        "roles/aiplatform.admin",
        "the project",
        {"vertex.AiPersistentResource": "aiplatform.persistentResources.create"},
    ),
    Role("roles/iam.serviceAccountUser", "the training account", dict.fromkeys(_VERTEX_JOBS, _ACT_AS), "account"),
    Role(
        "roles/cloudbuild.builds.editor",
        "the project, with `builder.cloudBuild`",
        {_IMAGE: "cloudbuild.builds.create"},
        "builder",
    ),
    Role(
        "roles/logging.viewer", "the project, with `builder.cloudBuild`", {_IMAGE: "logging.logEntries.list"}, "builder"
    ),
    Role(
        "roles/iam.serviceAccountUser",
        "the builder account, with `builder.cloudBuild`",
        {_IMAGE: _ACT_AS},
        "account",
    ),
    Role(
        "roles/cloudbuild.workerPoolUser",
        "the project of a `builder.cloudBuild.pool`",
        {_IMAGE: "cloudbuild.workerpools.use"},
        "pool",
    ),
    Role(
        "roles/iam.serviceAccountUser",
        "the accounts of schedules",
        {"workflows.Workflow": _ACT_AS, "cloudscheduler.Job": _ACT_AS},
        "account",
    ),
)
"""All roles of docs/access.md's last table, by the types of resources that a preview shows."""
