"""Who may make which call of a first `pulumi up`: the permissions that it needs, and what Google answers without one.

Permissions of calls are those of each method's page in Google's REST references ("IAM permissions"), and what roles
have is of Google's page "IAM roles and permissions index", as far as it is of these calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.standins.gcp.world import NUMBERS, World

CALLS: Mapping[str, tuple[str, ...]] = {
    "projects.Service": ("resourcemanager.projects.get", "serviceusage.services.enable", "serviceusage.services.list"),
    "projects.ServiceIdentity": ("resourcemanager.projects.get", "serviceusage.services.enable"),
    "iam.WorkloadIdentityServiceAgent": ("workloadidentity.serviceAgents.create", "workloadidentity.operations.get"),
    "projects.IAMMember": ("resourcemanager.projects.getIamPolicy", "resourcemanager.projects.setIamPolicy"),
    "projects.IAMCustomRole": ("iam.roles.create", "iam.roles.get"),
    "serviceaccount.Account": ("iam.serviceAccounts.create", "iam.serviceAccounts.get"),
    "serviceaccount.IAMMember": ("iam.serviceAccounts.getIamPolicy", "iam.serviceAccounts.setIamPolicy"),
    "artifactregistry.Repository": ("artifactregistry.repositories.create", "artifactregistry.repositories.get"),
    "artifactregistry.RepositoryIamMember": (
        "artifactregistry.repositories.getIamPolicy",
        "artifactregistry.repositories.setIamPolicy",
    ),
    "storage.Bucket": ("storage.buckets.create", "storage.buckets.get"),
    "storage.BucketIAMMember": ("storage.buckets.getIamPolicy", "storage.buckets.setIamPolicy"),
    "bigquery.IamMember": ("bigquery.tables.getIamPolicy", "bigquery.tables.setIamPolicy"),
    "kms.CryptoKeyIAMMember": ("cloudkms.cryptoKeys.getIamPolicy", "cloudkms.cryptoKeys.setIamPolicy"),
    "secretmanager.SecretIamMember": ("secretmanager.secrets.getIamPolicy", "secretmanager.secrets.setIamPolicy"),
    "monitoring.AlertPolicy": ("monitoring.alertPolicies.create", "logging.notificationRules.create"),
    "monitoring.NotificationChannel": ("monitoring.notificationChannels.create",),
    "workflows.Workflow": ("workflows.workflows.create", "workflows.operations.get"),
    "cloudscheduler.Job": ("cloudscheduler.jobs.create",),
    "compute.GlobalAddress": ("compute.globalAddresses.createInternal", "compute.networks.use"),
    "servicenetworking.Connection": ("servicenetworking.services.addPeering",),
    "compute.NetworkAttachment": ("compute.networkAttachments.create", "compute.subnetworks.use"),
    "vertex.AiTensorboard": ("aiplatform.tensorboards.create", "aiplatform.operations.list"),
    "vertex.AiPersistentResource": ("aiplatform.persistentResources.create",),
    "vertex-training.Ledger": (),
    "vertex-training.TrainingImage": (
        "artifactregistry.repositories.downloadArtifacts",
        "artifactregistry.repositories.uploadArtifacts",
    ),
    "vertex-training.PythonPackage": ("storage.objects.create", "storage.objects.get"),
    "vertex-training.CustomJob": (
        "aiplatform.customJobs.list",
        "aiplatform.customJobs.create",
        "iam.serviceAccounts.actAs",
    ),
    "vertex-training.Completion": ("aiplatform.customJobs.list",),
}
"""By type, what the deployer needs where the resource is. Reads of what was made are calls too."""
UPLOADS: Mapping[str, Mapping[str, str]] = {
    "manifests.get": {"artifactregistry.repositories.downloadArtifacts": "repository"},
    "blobs.upload": {"artifactregistry.repositories.uploadArtifacts": "repository"},
    "objects.GET": {"storage.objects.get": "bucket"},
    "objects.POST": {"storage.objects.create": "bucket"},
    "builds.list": {"cloudbuild.builds.list": "project"},
    "builds.create": {
        "cloudbuild.builds.create": "project",
        "iam.serviceAccounts.actAs": "account",
        "cloudbuild.workerpools.use": "pool",
    },
    "builds.get": {"cloudbuild.builds.get": "project"},
    "builds.log": {"logging.logEntries.list": "project"},
}
"""By call of images and packages, the permissions that it needs and where (pages "Configure roles and permissions" of
Artifact Registry, "IAM permissions for JSON methods" of Cloud Storage, "IAM roles and permissions" and "Run builds in a
private pool" of Cloud Build, "Access control with IAM" of Cloud Logging). A private pool is in a project."""
_PROJECT = ("resourcemanager.projects.get",)
ROLES: Mapping[str, tuple[str, ...]] = {
    "roles/serviceusage.serviceUsageAdmin": (
        "serviceusage.services.enable",
        "serviceusage.services.get",
        "serviceusage.services.list",
    ),
    "roles/workloadidentity.admin": (
        *_PROJECT,
        "workloadidentity.serviceAgents.create",
        "workloadidentity.operations.get",
    ),
    "roles/resourcemanager.projectIamAdmin": (
        *_PROJECT,
        "resourcemanager.projects.getIamPolicy",
        "resourcemanager.projects.setIamPolicy",
    ),
    "roles/iam.roleAdmin": (*_PROJECT, "resourcemanager.projects.getIamPolicy", "iam.roles.create", "iam.roles.get"),
    "roles/iam.serviceAccountAdmin": (
        *_PROJECT,
        "iam.serviceAccounts.create",
        "iam.serviceAccounts.get",
        "iam.serviceAccounts.getIamPolicy",
        "iam.serviceAccounts.setIamPolicy",
    ),
    "roles/iam.serviceAccountUser": (*_PROJECT, "iam.serviceAccounts.get", "iam.serviceAccounts.actAs"),
    "roles/artifactregistry.admin": (
        "artifactregistry.repositories.create",
        "artifactregistry.repositories.get",
        "artifactregistry.repositories.getIamPolicy",
        "artifactregistry.repositories.setIamPolicy",
        "artifactregistry.repositories.downloadArtifacts",
        "artifactregistry.repositories.uploadArtifacts",
    ),
    "roles/artifactregistry.writer": (
        "artifactregistry.repositories.get",
        "artifactregistry.repositories.downloadArtifacts",
        "artifactregistry.repositories.uploadArtifacts",
    ),
    "roles/storage.objectUser": (*_PROJECT, "storage.objects.create", "storage.objects.get"),
    "roles/cloudbuild.builds.editor": (
        *_PROJECT,
        "cloudbuild.builds.create",
        "cloudbuild.builds.get",
        "cloudbuild.builds.list",
    ),
    "roles/cloudbuild.workerPoolUser": ("cloudbuild.workerpools.use",),
    "roles/logging.viewer": (*_PROJECT, "logging.logEntries.list"),
    "roles/storage.admin": (
        *_PROJECT,
        "storage.buckets.create",
        "storage.buckets.get",
        "storage.buckets.getIamPolicy",
        "storage.buckets.setIamPolicy",
        "storage.objects.create",
        "storage.objects.get",
    ),
    "roles/bigquery.dataOwner": (*_PROJECT, "bigquery.tables.getIamPolicy", "bigquery.tables.setIamPolicy"),
    "roles/cloudkms.admin": (*_PROJECT, "cloudkms.cryptoKeys.getIamPolicy", "cloudkms.cryptoKeys.setIamPolicy"),
    "roles/secretmanager.admin": (
        *_PROJECT,
        "secretmanager.secrets.getIamPolicy",
        "secretmanager.secrets.setIamPolicy",
    ),
    "roles/monitoring.alertPolicyEditor": ("monitoring.alertPolicies.create",),
    "roles/logging.configWriter": (*_PROJECT, "logging.notificationRules.create"),
    "roles/monitoring.notificationChannelEditor": ("monitoring.notificationChannels.create",),
    "roles/workflows.admin": (*_PROJECT, "workflows.workflows.create", "workflows.operations.get"),
    "roles/cloudscheduler.admin": (*_PROJECT, "cloudscheduler.jobs.create"),
    "roles/compute.networkAdmin": (
        *_PROJECT,
        "compute.globalAddresses.createInternal",
        "compute.networks.use",
        "compute.networkAttachments.create",
        "compute.subnetworks.use",
        "servicenetworking.services.addPeering",
    ),
    "roles/compute.networkUser": (*_PROJECT, "compute.networks.use", "compute.subnetworks.use"),
    "roles/aiplatform.user": (
        *_PROJECT,
        "aiplatform.tensorboards.create",
        "aiplatform.operations.list",
        "aiplatform.customJobs.create",
        "aiplatform.customJobs.list",
    ),
    "roles/aiplatform.admin": (*_PROJECT, "aiplatform.persistentResources.create"),
}
_TEXTS = {
    # terraform-provider-google#7894 quotes no more of Cloud Build.
    **dict.fromkeys(
        [f"cloudbuild.{name}" for name in ("builds.create", "builds.get", "builds.list", "workerpools.use")],
        "The caller does not have permission",
    ),
    "storage.objects.create": "deployer@acme.example does not have storage.objects.create access to the Google Cloud "
    "Storage object. Permission 'storage.objects.create' denied on resource (or it may not exist).",
    "storage.objects.get": "deployer@acme.example does not have storage.objects.get access to the Google Cloud Storage "
    "object. Permission 'storage.objects.get' denied on resource (or it may not exist).",
    "resourcemanager.projects.get": "The caller does not have permission, forbidden",
    "resourcemanager.projects.getIamPolicy": "The caller does not have permission, forbidden",
    "resourcemanager.projects.setIamPolicy": "Policy update access denied., forbidden",
    "serviceusage.services.enable": "Permission denied to enable service [aiplatform.googleapis.com]",
    "serviceusage.services.list": "Permission denied to list services for consumer container [projects/1]",
    "servicenetworking.services.addPeering": "Permission denied to add peering for service "
    "'servicenetworking.googleapis.com'.",
    "iam.roles.create": "You don't have permission to create a role in projects/acme-dev., forbidden",
}
_FORMS = {
    # google-github-actions/auth#50
    "artifactregistry": 'Permission "{permission}" denied on resource "{place}" (or it may not exist)',
    "compute": "Required '{permission}' permission for '{place}', forbidden",
    "storage": "deployer@acme.example does not have {permission} access to the Google Cloud project., forbidden",
    "bigquery": "Access Denied: Table {place}: Permission {permission} denied on table {place} (or it may not exist).",
    "cloudscheduler": 'The principal (user or service account) lacks IAM permission "{permission}" for the resource '
    '"{place}" (or the resource may not exist).',
}


def text(permission: str, place: str) -> str:
    """Return what Google answers who lacks a permission."""
    form = "Permission '{permission}' denied on resource '{place}' (or it may not exist)."
    form = _FORMS.get(permission.partition(".")[0], form)
    return _TEXTS.get(permission) or form.format(permission=permission, place=place)


@dataclass(frozen=True)
class Deployer:
    """Who has roles by place: a project's id, or the name of a bucket, a repository, a key or an account."""

    roles: frozenset[tuple[str, str]]

    def lacks(self, kind: str, places: Mapping[str, str]) -> str | None:
        """Return the refusal of a call for a type of resource, whose policies are those of `places`."""
        for permission in CALLS[kind]:
            at_subnetwork = permission == "compute.subnetworks.use"
            asked = {place for key, place in places.items() if (key == "subnetwork") == at_subnetwork}
            if not any(permission in ROLES[role] for role, place in self.roles if place in asked):
                return text(permission, next(iter(places.values())))
        return None


class GuardedWorld(World):
    """A world in which each creation is also a question of the deployer's roles."""

    def __init__(self, deployer: Deployer, unknown_attempts: int = 0) -> None:
        super().__init__(unknown_attempts)
        self.deployer = deployer

    def _refusals(self, token: str, inputs: Mapping[str, Any]) -> Iterator[str]:
        module, _, kind = token.removeprefix("gcp:").partition(":")
        if refusal := self.deployer.lacks(f"{module.partition('/')[0]}.{kind}", places_of(inputs)):
            yield f"googleapi: Error 403: {refusal}"
        yield from super()._refusals(token, inputs)


_OWNER = re.compile(r"projects/([^/]+)/|@([a-z0-9-]+)[.]iam[.]|^(acme-(?:dev|prod))-")
"""Of a name: its project, that of an account, and that of a bucket that a stack creates."""


def places_of(inputs: Mapping[str, Any]) -> dict[str, str]:
    """Return where the policies are that allow a call: of the resource itself, and of its project."""
    by_number = {number: project for project, number in NUMBERS.items()}
    places: dict[str, str] = {}
    if table := inputs.get("tableId"):
        places["table"] = f"{inputs['project']}.{inputs['datasetId']}.{table}"
    if "repository" in inputs:
        location, id_ = inputs["location"], inputs["repository"]
        places["repository"] = f"projects/{inputs['project']}/locations/{location}/repositories/{id_}"
    for key in ("cryptoKeyId", "bucket", "secretId", "serviceAccountId"):
        if key in inputs:
            places[key] = inputs[key]
    for key in ("parent", "network"):
        if key in inputs and "project" not in inputs:
            places[key] = inputs[key]
    if subnetworks := inputs.get("subnetworks"):
        places["subnetwork"] = subnetworks[0]
    named = next(filter(None, map(_owner, places.values())), "") if "project" not in inputs else inputs["project"]
    return {"project": by_number.get(named, named), **places}


def _owner(name: str) -> str:
    found = _OWNER.search(name.replace("projects/-/", ""))
    return next(filter(None, found.groups())) if found else ""
