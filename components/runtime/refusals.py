"""Why Google Cloud refuses a call: a role that the deployer lacks, an organization's policy, or a service perimeter.

The roles of the deployer are those of docs/access.md. Roles and permissions are of Google's page "IAM roles and
permissions index".
"""

import re
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple


class Role(NamedTuple):
    """A role of the deployer: on what, in the words of docs/access.md, and the permissions in it by what needs them.

    `at` is where they are needed: where the resource is, on an account that it uses, where its builds run, or where
    their sources are.
    """

    role: str
    on: str
    permissions: Mapping[str, str]
    at: Literal["resource", "account", "builder", "pool", "sources", "subnetwork"] = "resource"


_POLICIES = "resourcemanager.projects.getIamPolicy resourcemanager.projects.setIamPolicy"
_VERTEX_JOBS = {
    f"vertex-training.{kind}": f"aiplatform.{kind[0].lower()}{kind[1:]}s.create"
    for kind in ("CustomJob", "HyperparameterTuningJob", "TrainingPipeline")
}
_LISTS = "aiplatform.customJobs.list"
_ACT_AS = "iam.serviceAccounts.actAs"
_IMAGE, _PACKAGE = "vertex-training.TrainingImage", "vertex-training.PythonPackage"
_UPLOAD = "storage.objects.create storage.objects.get"
"""What is there is compared first."""
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
        "the project, the `targetProject` of each `dnsPeering`, and the host project of a `subnetwork`",
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
        "the project of the repository, and each of `registry.alsoRead`",
        {
            "artifactregistry.Repository": "artifactregistry.repositories.create",
            "artifactregistry.RepositoryIamMember": "artifactregistry.repositories.setIamPolicy",
            _IMAGE: "artifactregistry.repositories.downloadArtifacts artifactregistry.repositories.uploadArtifacts",
        },
    ),
    Role(
        "roles/storage.admin",
        "the project, or the bucket if it exists, each of `registry.legacyBuckets`, and of `data` with `grant`",
        {
            "storage.Bucket": "storage.buckets.create",
            "storage.BucketIAMMember": "storage.buckets.setIamPolicy",
            _PACKAGE: _UPLOAD,
        },
    ),
    Role("roles/storage.objectUser", "the bucket, with `builder.cloudBuild`", {_IMAGE: _UPLOAD}, "sources"),
    Role(
        "roles/bigquery.dataOwner",
        "each table of `data` with `grant`",
        {"bigquery.IamMember": "bigquery.tables.getIamPolicy bigquery.tables.setIamPolicy"},
    ),
    Role("roles/cloudkms.admin", "each key", {"kms.CryptoKeyIAMMember": "cloudkms.cryptoKeys.setIamPolicy"}),
    Role(
        "roles/secretmanager.admin",
        "each of `identity.secrets`, and of `builder.cloudBuild.secrets`",
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
        "roles/compute.networkUser",
        "the subnetwork of a Shared VPC",
        {"compute.NetworkAttachment": "compute.subnetworks.use"},
        "subnetwork",
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
        {_IMAGE: "cloudbuild.builds.create cloudbuild.builds.get cloudbuild.builds.list"},
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

PERIMETER = re.compile(
    r"vpcServiceControlsUniqueIdentifier|Request is prohibited by organization's policy|VPC_SERVICE_CONTROLS"
    r"|SECURITY_POLICY_VIOLATED"
)
"""VPC Service Controls' page "Troubleshoot common issues", and `PreconditionFailure` of an answer."""
_CONSTRAINT = re.compile(r"constraints/[\w.]+")
_REFUSED = re.compile(
    r"\bError 403\b|\bPERMISSION_DENIED\b|does not have (?:permission|\S+ access)|access denied|lacks IAM permission"
    r"|permission\b.{0,200}\b(?:denied|required)|required .{0,100}\bpermission\b",
    re.IGNORECASE | re.DOTALL,
)
"""IAM's form, and those of Resource Manager, Service Usage, Cloud Storage, Compute Engine and Artifact Registry."""
_OTHERWISE_REFUSED = re.compile(
    r"accessNotConfigured|SERVICE_DISABLED|rateLimitExceeded|quota|billing|Precondition", re.IGNORECASE
)
_PERMISSION = re.compile(r"\b[a-z][A-Za-z]+(?:\.[A-Za-z]+){2}\b")


def remedy(refusal: str, kind: str) -> str:
    """Return what to do about a refusal of a call for a resource such as `projects.IAMMember`; "" if it is no such one.

    The roles are those that have a permission that the text names; without one, all that the resource needs.
    """
    if PERIMETER.search(refusal):
        return "a service perimeter keeps the call out (`vertex-training docs perimeter`)"
    if constraint := _CONSTRAINT.search(refusal):
        return f"ask your organization about {constraint[0]}, which keeps {kind} from being as the stack has it"
    if not _REFUSED.search(refusal) or _OTHERWISE_REFUSED.search(refusal):
        return ""
    named = {match.lower() for match in _PERMISSION.findall(refusal)}
    roles = [role for role in DEPLOYER if kind in role.permissions]
    having = [role for role in roles if named.intersection(" ".join(role.permissions.values()).lower().split())]
    roles = having or roles
    return f"who runs `pulumi` may lack {_joined(roles)} (`vertex-training docs access`)" if roles else ""


def explained(refusal: str, kind: str) -> str:
    """Return the text of a refusal with its remedy, if there is one."""
    return "; ".join(filter(None, [refusal, remedy(refusal, kind)]))


def _joined(roles: list[Role]) -> str:
    def texts() -> Iterator[str]:
        for role in roles:
            yield f"{role.role} on {role.on.replace('`', '')}"

    return ", or ".join(dict.fromkeys(texts()))
