"""What Google Cloud knows in a fresh project, and what it refuses for that reason.

An account, a grant of a key or a role that was just created is unknown to the first `unknown_attempts` that use it: a
count, so that no test depends on time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

NUMBERS = {"acme-dev": "123456789012", "acme-prod": "210987654321"}
"""The fresh projects. What belongs to any other project is set up there."""
VERTEX_AGENTS = ("gcp-sa-aiplatform", "gcp-sa-aiplatform-cc")
STORAGE_AGENT = "gcp:storage/getProjectServiceAccount:getProjectServiceAccount"
"""The function whose call makes Cloud Storage's agent exist."""
BY_HAND = ("cloudresourcemanager", "serviceusage")
ATTACHMENT_PERMISSIONS = {
    "compute.networkAttachments.get",
    "compute.networkAttachments.update",
    "compute.regionOperations.get",
}
_APIS = {
    "projects/iAMMember": "cloudresourcemanager",
    "projects/iAMCustomRole": "iam",
    "projects/serviceIdentity": "serviceusage",
    "iam": "workloadidentity",
    "serviceaccount": "iam",
    "storage": "storage",
    "artifactregistry": "artifactregistry",
    "compute": "compute",
    "servicenetworking": "servicenetworking",
    "vertex": "aiplatform",
    "monitoring": "monitoring",
    "secretmanager": "secretmanager",
    "workflows": "workflows",
    "cloudscheduler": "cloudscheduler",
}
_AGENT = re.compile(r"serviceAccount:service-(\d+)@(.+?)[.]iam[.]gserviceaccount[.]com")


class World:
    """What exists. `connected` are the ranges of networks that are peered with Google's services already."""

    def __init__(
        self,
        unknown_attempts: int = 0,
        by_hand: Sequence[str] = BY_HAND,
        connected: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._unknown_attempts = unknown_attempts
        self._apis: dict[str, set[str]] = {project: set(by_hand) for project in NUMBERS}
        self._agents: set[str] = set()
        self._grants: set[tuple[str, str, str]] = set()
        self._roles: dict[str, set[str]] = {}
        self._names: set[tuple[str, ...]] = set()
        self._connected = {network: list(ranges) for network, ranges in (connected or {}).items()}
        self._attempts: dict[str, int] = {}

    def invoke(self, token: str, args: Mapping[str, Any]) -> None:
        """Take notice of a call of a function."""
        if token == STORAGE_AGENT:
            self._agents.add(_agent(args["project"], "gs-project-accounts"))

    def find_refusal(self, token: str, inputs: Mapping[str, Any]) -> str | None:
        """Return why a resource cannot be created now; count the attempt."""
        return next(self._refusals(token, inputs), None)

    def create(self, token: str, inputs: Mapping[str, Any]) -> None:
        """Take notice of a new resource."""
        kind, project = token.rpartition(":")[2], str(inputs.get("project", ""))
        if name := _unique_name(kind, inputs):
            self._names.add(name)
        if kind == "Service":
            self._apis.setdefault(project, set()).add(inputs["service"].partition(".")[0])
        elif kind == "ServiceIdentity":  # of Vertex AI's agents only the first
            service = inputs["service"].partition(".")[0]
            self._agents.add(_agent(project, f"gcp-sa-{service}"))
        elif kind == "WorkloadIdentityServiceAgent":
            number = inputs["parent"].split("/")[1]
            self._agents |= {
                f"serviceAccount:service-{number}@{name}.iam.gserviceaccount.com" for name in VERTEX_AGENTS
            }
        elif kind == "Account":
            email = f"{inputs['accountId']}@{project}.iam.gserviceaccount.com"
            self._attempts.setdefault(f"serviceAccount:{email}", 0)
        elif kind == "IAMCustomRole":
            self._roles[f"projects/{project}/roles/{inputs['roleId']}"] = set(inputs["permissions"])
        elif kind == "Connection":
            self._connected[inputs["network"]] = list(inputs["reservedPeeringRanges"])
        if "member" in inputs:
            self._grants.add((_granted_on(inputs), inputs["role"], inputs["member"]))

    def delete(self, token: str, inputs: Mapping[str, Any]) -> str | None:
        """Forget a resource, or return why it cannot be deleted."""
        kind = token.rpartition(":")[2]
        if kind == "Connection" and inputs.get("deletionPolicy") != "ABANDON":
            return (
                "Error code 9, Producer services (e.g. CloudSQL, Cloud Memstore, etc.) are still using this connection."
            )
        self._names.discard(_unique_name(kind, inputs) or ())
        return None

    def _refusals(self, token: str, inputs: Mapping[str, Any]) -> Iterator[str]:
        kind, project = token.rpartition(":")[2], _get_project(inputs)
        yield from self._missing_apis(token, kind, project)
        if (name := _unique_name(kind, inputs)) in self._names and name:
            yield f"Error 409: The resource '{'/'.join(name)}' already exists, alreadyExists"
        if "member" in inputs:
            yield from self._unusable_members(inputs["member"])
            role = inputs["role"]
            if role.startswith("projects/") and (role not in self._roles or self._is_new(role)):
                yield f"Error 400: Role ({role}) does not exist in the resource's hierarchy., badRequest"
        if account := _used_account(kind, inputs):
            member = f"serviceAccount:{account}"
            if member in self._attempts and self._is_new(f"{member} used by a {kind}"):
                refused = f"Permission 'iam.serviceaccounts.actAs' denied on service account {account}"
                yield f"Error 403: {refused} (or it may not exist)."
        if kind == "Workflow":
            agent = _agent(project, "gcp-sa-workflows")
            if project in NUMBERS and (agent not in self._agents or self._is_new(f"{agent} as an agent")):
                yield "Error 400: Workflows service agent does not exist. Try again in a few minutes."
        for key, service in _keys(kind, inputs):
            member = _agent(project, service)
            is_granted = any(on == key and to == member for on, _, to in self._grants)
            if project in NUMBERS and (not is_granted or self._is_new(f"{key} {member}")):
                yield "Error 403: Permission denied on Cloud KMS key. Please ensure that your account may use it"
        if kind == "Connection":
            present = self._connected.get(inputs["network"], [])
            if present and present != inputs["reservedPeeringRanges"] and not inputs.get("updateOnCreationFail"):
                yield "Error code 9: Cannot modify allocated ranges in CreateConnection. Please use UpdateConnection"
            if not set(present) <= set(inputs["reservedPeeringRanges"]):
                yield f"the update would take the ranges {present} from their users"
        if kind == "AiPersistentResource" and (interface := inputs.get("pscInterfaceConfig")):
            yield from self._closed_attachments(interface["networkAttachment"])

    def _missing_apis(self, token: str, kind: str, project: str) -> Iterator[str]:
        enabled = self._apis.get(project)
        if enabled is None:
            return
        module = token.split(":")[1]
        needed = BY_HAND if kind == "Service" else (_APIS.get(module) or _APIS.get(module.partition("/")[0]),)
        for api in needed:
            if api and api not in enabled:
                name = f"API {api}.googleapis.com has not been used in project {NUMBERS[project]} before"
                yield f"Error 403: {name} or it is disabled., accessNotConfigured"

    def _unusable_members(self, member: str) -> Iterator[str]:
        agent = _AGENT.fullmatch(member)
        is_missing = agent and agent[1] in NUMBERS.values() and member not in self._agents
        if is_missing or ((agent or member in self._attempts) and self._is_new(member)):
            yield f"Error 400: Service account {member.partition(':')[2]} does not exist., badRequest"

    def _closed_attachments(self, attachment: str) -> Iterator[str]:
        project = attachment.split("/")[1]
        if project in NUMBERS:
            member = _agent(project, VERTEX_AGENTS[0])
            roles = [role for on, role, to in self._grants if (on, to) == (project, member)]
            allowed = set().union(*(self._roles.get(role, set()) for role in roles))
            if ATTACHMENT_PERMISSIONS - allowed and "roles/compute.networkAdmin" not in roles:
                yield f"Error 403: Required 'compute.networkAttachments.get' permission for '{attachment}'"

    def _is_new(self, thing: str) -> bool:
        self._attempts[thing] = self._attempts.get(thing, 0) + 1
        return self._attempts[thing] <= self._unknown_attempts


def _agent(project: str, service: str) -> str:
    return f"serviceAccount:service-{NUMBERS.get(project)}@{service}.iam.gserviceaccount.com"


def _get_project(inputs: Mapping[str, Any]) -> str:
    """The project of a resource; agents are given their project's number, in `parent`."""
    by_number = {number: project for project, number in NUMBERS.items()}
    number = str(inputs.get("parent", "")).removeprefix("projects/").partition("/")[0]
    return str(inputs.get("project", by_number.get(number, "")))


def _granted_on(inputs: Mapping[str, Any]) -> str:
    keys = ("secretId", "cryptoKeyId", "bucket", "serviceAccountId", "project")
    return str(next(inputs[key] for key in keys if key in inputs))


def _keys(kind: str, inputs: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The keys that a resource uses, each with the agent that must be allowed to."""
    if kind == "Bucket" and (encryption := inputs.get("encryption")):
        yield encryption["defaultKmsKeyName"], "gs-project-accounts"
    if kind == "Repository" and (key := inputs.get("kmsKeyName")):
        yield key, "gcp-sa-artifactregistry"
    if kind == "Workflow" and (key := inputs.get("cryptoKeyName")):
        yield key, "gcp-sa-workflows"
    if kind in ("AiPersistentResource", "AiTensorboard") and (spec := inputs.get("encryptionSpec")):
        yield spec["kmsKeyName"], VERTEX_AGENTS[0]


def _used_account(kind: str, inputs: Mapping[str, Any]) -> str | None:
    """The account that a resource acts as, which whoever creates it must be allowed to use."""
    if kind == "Workflow":
        return str(inputs["serviceAccount"])
    token = inputs.get("httpTarget", {}).get("oauthToken") if kind == "Job" else None
    return str(token["serviceAccountEmail"]) if token else None


def _unique_name(kind: str, inputs: Mapping[str, Any]) -> tuple[str, ...] | None:
    """What a second resource of the kind must not have in common with it; `None` if there is no such thing."""
    names = {
        "Bucket": ("name",),
        "Repository": ("project", "location", "repositoryId"),
        "Account": ("project", "accountId"),
        "GlobalAddress": ("project", "name"),
        "NetworkAttachment": ("project", "region", "name"),
        "IAMCustomRole": ("project", "roleId"),
        "Workflow": ("project", "region", "name"),
        "Job": ("project", "region", "name"),
    }
    return (kind, *(str(inputs.get(key)) for key in names[kind])) if kind in names else None
