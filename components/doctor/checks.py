"""The checks: each looks at one thing in the cloud, beside the others, and yields what is wrong there."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

from vertex_api import credentials
from vertex_api.estimates.quota import (
    METRIC_PREFIX,
    SERVICE,
    UNKNOWN_METRIC,
    find_shortages,
    granted_limit,
    quota_id,
    show_grant,
)

from ..targets.gcp.project import ServiceAgents, account_project, required_apis
from .cloud import ApiOff, Cloud, LookUpFailed, NotAllowed, NotFound, NotSignedIn, QuotaProjectRefused, Unclear
from .findings import CHECKS, POWERS, UNNAMED, Finding, Place, found
from .needs import Needs
from .reads import Reads, members_of

_FIRST_APIS = ("cloudresourcemanager", "serviceusage")
_THREADS = 32
_OF_OWNERS = frozenset(["storage.buckets.setIamPolicy", "storage.objects.create", "storage.objects.get"])
"""What roles/owner lacks of the deployer's permissions (IAM's page "Basic roles"), and has on each new bucket."""
_OWNERSHIP = ("resourcemanager.projects.delete", "resourcemanager.projects.setIamPolicy", "storage.buckets.create")
"""No other predefined role of a project has all of these."""
_CONTINENTS = frozenset(["us", "northamerica", "southamerica", "europe", "asia", "australia", "africa", "me"])
_OUTSIDE_EU = frozenset(["europe-west2", "europe-west6"])
"""London and Zurich, which in:eu-locations does not have."""
_RESTRICTED = frozenset(
    [
        "aiplatform",
        "artifactregistry",
        "bigquery",
        "bigquerystorage",
        "cloudbuild",
        "cloudkms",
        "compute",
        "secretmanager",
        "storage",
    ]
)
"""APIs of stacks that a list of allowed services has to name (page "Restricting resource usage supported services")."""
_KEYED = {"aiplatform": "kmsKey", "artifactregistry": "registry.kmsKey", "storage": "bucket.kmsKey"}
"""By API that a policy may want to encrypt with keys, the path of the key (page "CMEK organization policies")."""

_NETWORK_USER, _DNS_PEER = "roles/compute.networkUser", "roles/dns.peer"
"""What Vertex AI's agent needs in the host project of a Shared VPC: neither role has what the other one has."""


class Checks:
    """All checks of a stack, whose file is that of `stack`, for a caller: an IAM `member`."""

    def __init__(self, needs: Needs, cloud: Cloud, stack: str, member: str) -> None:
        self._needs, self._cloud, self._stack, self._member = needs, cloud, stack, member
        self._ids = {"stack": stack, "project": needs.project, "member": member}

    def run(self) -> list[Finding]:
        """Make all look-ups at once, and return what is wrong and what nobody can tell, some of it more than once."""
        looks: list[tuple[str, Callable[[], Iterable[Finding]]]] = [
            ("apis", self._apis),
            ("billing", self._billing),
            *(("deployer", partial(self._deployer, *each)) for each in self._needs.permissions().items()),
            ("deployer", self._submitters),
            ("grants", self._project_grants),
            ("grants", self._attachment_grant),
            *(("grants", partial(self._dns_grant, project)) for project in self._needs.left_dns_projects),
            ("grants", self._registry_key_grant),
            *(("accounts", partial(self._account, email)) for email in self._needs.existing_accounts),
            ("bucket", self._bucket),
            ("registry", self._registry),
            *(("keys", partial(self._key, *each)) for each in self._needs.keys.items()),
            *(("secrets", partial(self._secret, place)) for place in self._needs.secrets),
            *(("data", look) for look in Reads(self._needs, self._cloud, self._ids).looks()),
            ("network", self._peering),
            ("network", self._attachment),
            *(("reservations", partial(self._reservation, *each)) for each in self._needs.reservations.items()),
            ("tensorboard", self._tensorboard),
            ("alerts", self._channels),
            ("quota", self._quota),
            *(("policies", look) for look in self._policies()),
        ]
        with ThreadPoolExecutor(_THREADS) as pool:
            results = [pool.submit(look_up, check, self._member, self._needs.project, look) for check, look in looks]
        return [finding for result in results for finding in result.result()]

    def _apis(self) -> Iterator[Finding]:
        """The page "Enable and disable services", and the provider's order (terraform-provider-google #6101)."""
        yield from self._off(self._needs.project, _FIRST_APIS, "api-off")
        if owner := self._needs.network_project:
            extra = ["servicenetworking"] if "prefixLength" in self._needs.peering else []
            yield from self._off(owner, ("compute", *extra), "network-api-off")

    def _off(self, project: str, apis: Iterable[str], rule: str) -> Iterator[Finding]:
        names = [f"projects/{project}/services/{api}.googleapis.com" for api in apis]
        answer = self._cloud.get(
            "serviceusage", f"projects/{project}/services:batchGet", Place("project", project), names=names
        )
        for service in answer.get("services", []):
            if service["state"] != "ENABLED":
                api = service["name"].rpartition("/")[2]
                yield found(rule, api=api, project=project)

    def _billing(self) -> Iterator[Finding]:
        if not self._cloud.get("cloudbilling", f"projects/{self._needs.project}/billingInfo").get("billingEnabled"):
            yield found("billing-off", **self._ids)

    def _deployer(self, place: Place, roles: Mapping[str, list[str]]) -> Iterator[Finding]:
        if place.kind == "account" and place.name in self._needs.created_accounts:
            return
        wanted = [each for permissions in roles.values() for each in permissions]
        try:
            held = self._cloud.permissions(place, wanted)
        except NotAllowed:
            held = set()
        except NotFound:
            if place.name in self._needs.looked_at:
                return
            raise
        for role, permissions in roles.items():
            if missing := [each for each in permissions if each not in held]:
                if place == self._needs.own and {*missing} <= _OF_OWNERS and self._is_owner(held):
                    continue
                command, listed = place.grant(role, self._member), ", ".join(missing)
                ids = {"place": str(place), "member": self._member}
                yield found("role-missing", command, POWERS.get(role, ""), permissions=listed, **ids)

    def _is_owner(self, held: set[str]) -> bool:
        """Whether the caller owns the project: with what it creates in it come grants to all owners.

        Cloud Storage's page "Predefined ACLs" and the default policy of a bucket, `projectOwner:`.
        """
        return {*_OWNERSHIP} <= held | self._cloud.permissions(self._needs.own, [*_OWNERSHIP])

    def _submitters(self) -> Iterator[Finding]:
        """Whether the deployer may act as the accounts that the stack creates, for which a grant is made with them."""
        used = {place.name for at, _, place in self._needs.made() if at == "account"}
        created = [email for email in self._needs.created_accounts if email in used]
        members = self._needs.submitters
        # Who is in a group, nobody here can tell.
        has_group = any(not each.startswith(("user:", "serviceAccount:")) for each in members)
        if not created or has_group or self._member in members:
            return
        act_as = "iam.serviceAccounts.actAs"
        if act_as in self._cloud.permissions(self._needs.own, [act_as]):
            return
        if self._member == UNNAMED:
            raise Unclear(f"whether identity.submitters names {UNNAMED} is not known")
        yield found("submitter-missing", account=", ".join(created), index=len(members), **self._ids)

    def _project_grants(self) -> Iterator[Finding]:
        """What docs/access.md leaves to others in the stack's project."""
        needs, identity = self._needs, self._needs.cloud["identity"]
        own_existing = needs.account if "existing" in identity and not needs.has_foreign_account else None
        if identity.get("agentRoles", True) and not own_existing:
            return
        agent = ServiceAgents(needs.number).vertex
        if not identity.get("agentRoles", True):
            ids = {"project": needs.project, "member": agent, "role": "roles/aiplatform.serviceAgent"}
            yield from self._ungranted("agent-role", agent, needs.project, **ids)
        if own_existing:
            ids = {"account": own_existing, "role": "roles/logging.logWriter", "project": needs.project}
            yield from self._ungranted("account-role", f"serviceAccount:{own_existing}", needs.project, **ids)

    def _attachment_grant(self) -> Iterator[Finding]:
        """The page "Set up a Private Service Connect interface": in its section on Shared VPC, the subnetwork."""
        owner, agent = self._needs.network_project, ServiceAgents(self._needs.number).vertex
        if owner is None or not self._needs.attachment:
            return
        ids = {"project": owner, "member": agent}
        if "existing" in self._needs.attachment:
            yield from self._ungranted("attachment-grant", agent, owner, **ids)
        elif (place := self._needs.subnetwork) and not self._needs.attachment.get("grant", True):
            policy = self._cloud.get("compute", f"{place.name}/getIamPolicy", place)
            if agent not in members_of(policy):
                ids |= {"name": place.parts["subnetworks"], "region": self._needs.region}
                yield from self._ungranted("subnetwork-grant", agent, owner, useless=_DNS_PEER, **ids)

    def _dns_grant(self, project: str) -> Iterator[Finding]:
        """The same page, on DNS peering: in the project of each zone, and in the host of a Shared VPC."""
        agent = ServiceAgents(self._needs.number).vertex
        yield from self._ungranted("dns-grant", agent, project, useless=_NETWORK_USER, project=project, member=agent)

    def _ungranted(self, rule: str, member: str, owner: str, /, useless: str = "", **ids: str) -> Iterator[Finding]:
        """Look whether a member has a role in a project, by its own policy or by that of a folder above it.

        What other roles hold is not looked up, but for one that is `useless`: what else the same member has there.
        """
        place = Place("project", owner)
        if member in self._members("cloudresourcemanager", f"projects/{owner}", place, useless):
            return
        unread: list[str] = []
        answer = self._cloud.ask("cloudresourcemanager", f"projects/{owner}:getAncestry", place)
        for resource in (each["resourceId"] for each in answer.get("ancestor", [])):
            name = f"{resource['type']}s/{resource['id']}"
            try:
                if resource["type"] != "project" and member in self._members("hierarchy", name, None, useless):
                    return
            except LookUpFailed:
                unread.append(name)
        yield found(rule, unread=" and ".join(unread), **ids)

    def _registry_key_grant(self) -> Iterator[Finding]:
        """The owner of a repository elsewhere grants the key to the agent there, whose number is looked up."""
        owner, key = self._needs.repository_project, self._needs.keys.get("registry.kmsKey")
        if key and owner != self._needs.project:
            number = self._cloud.get("cloudresourcemanager", f"projects/{owner}", Place("project", owner))
            agent = ServiceAgents(str(number["projectNumber"])).artifact_registry
            place = Place("key", key)
            policy = self._cloud.get("cloudkms", f"{key}:getIamPolicy", place)
            if agent not in members_of(policy):
                command = place.grant("roles/cloudkms.cryptoKeyEncrypterDecrypter", agent)
                yield found("registry-key-grant", key=key, command=command)

    def _members(self, api: str, name: str, place: Place | None, useless: str) -> set[str]:
        return members_of(self._cloud.ask(api, f"{name}:getIamPolicy", place), useless)

    def _account(self, email: str) -> Iterator[Finding]:
        id_, project = email.partition("@")[0], account_project(email)
        ids = {"account": email, "id": id_, "project": project}
        try:
            account = self._cloud.get("iam", f"projects/-/serviceAccounts/{email}", Place("account", email))
        except NotFound:
            yield found("account-missing", **ids)
            return
        if account.get("disabled"):
            yield found("account-disabled", **ids)

    def _bucket(self) -> Iterator[Finding]:
        needs, bucket = self._needs, self._needs.cloud["bucket"]
        ids = {**self._ids, "bucket": needs.bucket, "region": needs.region, "number": needs.number}
        exists = "existing" in bucket
        fields = "location,projectNumber,iamConfiguration"
        try:
            there = self._cloud.get("storage", f"b/{needs.bucket}", Place("bucket", needs.bucket), fields=fields)
        except NotFound:
            if exists:
                yield found("bucket-missing", **ids)
            return
        except NotAllowed:
            if exists:
                raise
            yield found("bucket-hidden", **ids)
            return
        if not exists:
            if str(there["projectNumber"]) != needs.number:
                yield found("bucket-taken", **ids)
            return
        if there["location"].lower() != needs.region:
            yield found("bucket-region", location=there["location"].lower(), **ids)
        access = there.get("iamConfiguration", {}).get("uniformBucketLevelAccess", {})
        folders = needs.settings.plan.folders
        if not access.get("enabled") and folders and "/" not in folders.others:
            yield found("bucket-uniform", index=len(bucket.get("writableFolders", [])), **ids)

    def _registry(self) -> Iterator[Finding]:
        place = self._needs.repository
        if place is None or place.kind != "repository":
            return
        ids = _ids(place.name) | {"stack": self._stack}
        try:
            repository = self._cloud.get("artifactregistry", place.name, place)
        except NotFound:
            yield found("registry-missing", **ids)
            return
        if repository["format"] != "DOCKER":
            yield found("registry-format", format=repository["format"], **ids)

    def _key(self, path: str, key: str) -> Iterator[Finding]:
        """Cloud KMS's REST reference, CryptoKey: its purpose, and the state of its primary version."""
        ids = _ids(key) | {"stack": self._stack, "path": path}
        try:
            answer = self._cloud.get("cloudkms", key, Place("key", key))
        except NotFound:
            yield found("key-missing", **ids)
            return
        if answer["purpose"] != "ENCRYPT_DECRYPT":
            yield found("key-purpose", purpose=answer["purpose"], **ids)
            return
        primary = answer.get("primary", {})
        if primary.get("state") != "ENABLED":
            state, version = primary.get("state", "missing"), primary.get("name", "VERSION").rpartition("/")[2]
            finding = found("key-disabled", state=state, version=version, **ids)
            if state == "DESTROY_SCHEDULED":  # a version that is restored is disabled at first
                restore = finding.remedy.replace("versions enable", "versions restore", 1)
                finding = replace(finding, remedy=f"{restore} && {finding.remedy}")
            yield finding

    def _secret(self, place: Place) -> Iterator[Finding]:
        yield from self._missing("secret-missing", "secretmanager", place.name, place)

    def _missing(self, rule: str, api: str, name: str, place: Place | None = None, **ids: str) -> Iterator[Finding]:
        """Look whether a resource exists."""
        try:
            self._cloud.get(api, name, place)
        except NotFound:
            yield found(rule, **{**_ids(name), **ids})

    def _peering(self) -> Iterator[Finding]:
        """The page "Private services access", and Service Networking's REST reference, services.connections."""
        if not self._needs.peering:
            return
        peering = self._needs.peering
        network, named = peering["network"], peering.get("reservedIpRanges", [])
        place, ids = Place("project", network.split("/")[1]), _ids(network) | {"stack": self._stack}
        missing = [*self._missing("network-missing", "compute", network, place)]
        yield from missing
        if missing:
            return
        answer = self._cloud.get("servicenetworking", f"services/{_PEER}/connections", place, network=network)
        ranges = [each for connection in answer.get("connections", []) for each in connection["reservedPeeringRanges"]]
        ids["ranges"] = ", ".join(ranges)
        if "prefixLength" in peering:
            if others := [each for each in ranges if each not in (*named, peering["name"])]:
                yield found("connection-ranges", index=len(named), range=others[0], **ids)
        elif not answer.get("connections"):
            yield found("connection-missing", **ids)
        else:
            for each in [each for each in named if each not in ranges]:
                yield found("range-missing", range=each, all=",".join([*ranges, each]), **ids)

    def _attachment(self) -> Iterator[Finding]:
        """The page "Set up a Private Service Connect interface for Vertex AI resources"."""
        attachment, region = self._needs.attachment, self._needs.region
        if name := attachment.get("existing"):
            place = Place("project", name.split("/")[1])
            yield from self._missing("attachment-missing", "compute", name, place, region=region)
        if subnetwork := self._needs.subnetwork:
            place = Place("project", subnetwork.parts["projects"])
            yield from self._missing("subnetwork-missing", "compute", subnetwork.name, place, region=region)

    def _reservation(self, name: str, user: str) -> Iterator[Finding]:
        """Google's page "Use reservations with training", and Compute Engine's REST reference, reservations."""
        place = Place("project", name.split("/")[1])
        ids = {**_ids(name), "zone": Place("project", name).parts.get("zones", ""), "user": user}
        try:
            sharing = self._cloud.get("compute", name, place).get("reservationSharingPolicy", {})
        except NotFound:
            yield found("reservation-missing", **ids)
            return
        if sharing.get("serviceShareType") != "ALLOW_ALL":
            yield found("reservation-unshared", **ids)

    def _tensorboard(self) -> Iterator[Finding]:
        if name := self._needs.cloud.get("tensorboard", {}).get("existing"):
            place = Place("project", name.split("/")[1])
            ids = {"region": self._needs.region, "stack": self._stack}
            yield from self._missing("tensorboard-missing", "aiplatform", name, place, **ids)

    def _channels(self) -> Iterator[Finding]:
        for channel in self._needs.cloud.get("alerts", {"channels": []})["channels"]:
            if "@" not in channel:
                place = Place("project", channel.split("/")[1])
                yield from self._missing("channel-missing", "monitoring", channel, place)

    def _quota(self) -> Iterator[Finding]:
        """Jobs that alone need more than is granted."""
        needs, region = self._needs, self._needs.region
        wanted = {
            job: {f"{METRIC_PREFIX}{name}": amount for name, amount in amounts.items()}
            for job, amounts in needs.settings.plan.quotas.items()
        }
        named = (metric for amounts in wanted.values() for metric in amounts)
        metrics = sorted({metric for metric in named if not metric.endswith(UNKNOWN_METRIC)})
        if not metrics:
            return
        granted: dict[str, float] = {}
        with ThreadPoolExecutor(_THREADS) as pool:
            for metric, limit in zip(metrics, pool.map(self._granted, metrics), strict=True):
                granted |= {} if limit is None else {metric: limit}
        email = self._member.removeprefix("user:") if self._member.startswith("user:") else "EMAIL"
        for shortage in find_shortages(wanted, granted):
            if shortage.is_by_job:
                jobs = ", ".join(f"{job} (needs {amount})" for job, amount in shortage.needed_by_job.items())
                values = {"jobs": jobs, "granted": show_grant(shortage.granted), "email": email, "region": region}
                values |= {"metric": shortage.metric, "quota": quota_id(shortage.metric), "project": needs.project}
                yield found("quota-short", needed=max(shortage.needed_by_job.values()), **values)

    def _granted(self, metric: str) -> float | None:
        try:
            return granted_limit(self._cloud.quota(SERVICE, metric), self._needs.region)
        except NotFound:
            return None  # as for a metric that is not the project's

    def _policies(self) -> Iterator[Callable[[], Iterator[Finding]]]:
        """Yield a look at each constraint that may refuse something of this stack."""
        needs = self._needs
        created = {"artifactregistry": needs.repository_project == needs.project, "aiplatform": True}
        created["artifactregistry"] &= needs.repository is not None and needs.repository.kind == "project"
        created["storage"] = "existing" not in needs.cloud["bucket"]
        yield self._locations
        yield self._services
        if any(created[api] and path not in needs.keys for api, path in _KEYED.items()):
            yield partial(self._required_keys, created)
        if needs.keys:
            yield self._key_owners
        if needs.created_accounts:
            yield self._new_accounts
        if needs.has_foreign_account:
            yield self._account_elsewhere
        if needs.submitters and self._member.startswith("user:"):
            yield self._domains

    def _policy(self, constraint: str, project: str = "") -> dict[str, Any]:
        place = Place("project", project or self._needs.project)
        path = f"projects/{place.name}:getEffectiveOrgPolicy"
        return self._cloud.ask("cloudresourcemanager", path, place, constraint=f"constraints/{constraint}")

    def _locations(self) -> Iterator[Finding]:
        """The page "Restricting resource locations", with its value groups."""
        policy = self._policy("gcp.resourceLocations")
        registry = self._needs.cloud["registry"]
        locations = [self._needs.region, *([registry["location"]] if "location" in registry else [])]
        for location in dict.fromkeys(locations):
            groups = {continent := location.partition("-")[0]}
            groups |= {"northamerica"} if continent == "us" else set()
            groups |= {"eu"} if continent == "europe" and location not in _OUTSIDE_EU else set()
            names = {location, *(f"in:{each}-locations" for each in (location, *groups))}
            # Of other groups, such as in:canada-locations, it is not known here which regions they have.
            unknown = {each for each in _allowed(policy) if each.startswith("in:") and not _is_understood(each)}
            if not allows(policy, names | unknown):
                yield found("location-refused", location=location, value=f"in:{location}-locations", **self._ids)

    def _services(self) -> Iterator[Finding]:
        policy = self._policy("gcp.restrictServiceUsage")
        for api in sorted(required_apis(self._needs.cloud, self._needs.settings.granted_data) & _RESTRICTED):
            if not allows(policy, {f"{api}.googleapis.com"}):
                yield found("service-refused", api=f"{api}.googleapis.com", **self._ids)

    def _required_keys(self, created: Mapping[str, bool]) -> Iterator[Finding]:
        policy = self._policy("gcp.restrictNonCmekServices")
        for api, path in _KEYED.items():
            if created[api] and path not in self._needs.keys and not allows(policy, {f"{api}.googleapis.com"}):
                yield found(
                    "key-required", api=f"{api}.googleapis.com", path=path, region=self._needs.region, **self._ids
                )

    def _key_owners(self) -> Iterator[Finding]:
        policy = self._policy("gcp.restrictCmekCryptoKeyProjects")
        unknown = {each for each in _allowed(policy) if not each.startswith(("projects/", "under:projects/"))}
        for owner in sorted({key.split("/")[1] for key in self._needs.keys.values()}):
            if not allows(policy, {f"projects/{owner}", f"under:projects/{owner}"} | unknown):
                yield found("key-refused", owner=owner, **self._ids)

    def _new_accounts(self) -> Iterator[Finding]:
        if _is_enforced(self._policy("iam.disableServiceAccountCreation")):
            finding = found("accounts-refused", accounts=", ".join(self._needs.created_accounts), **self._ids)
            paths = [f"{path} ACCOUNT" for path in self._needs.account_paths]
            first = "identity.existing ACCOUNT"
            commands = [finding.remedy.replace(first, path) for path in paths]
            yield replace(finding, remedy=" && ".join(commands))

    def _account_elsewhere(self) -> Iterator[Finding]:
        owner = account_project(self._needs.account)
        if _is_enforced(self._policy("iam.disableCrossProjectServiceAccountUsage", owner)):
            yield found("account-elsewhere", account=self._needs.account, **self._ids)

    def _domains(self) -> Iterator[Finding]:
        """Customers have ids in this policy (page "Restrict identities with domain-restricted sharing")."""
        domain = self._member.partition("@")[2]
        others = [each for each in self._needs.submitters if "gserviceaccount" not in each and f"@{domain}" not in each]
        if others and _allowed(self._policy("iam.allowedPolicyMemberDomains")):
            yield found("members-refused", members=", ".join(others), **self._ids)


_PEER = "servicenetworking.googleapis.com"


def look_up(check: str, member: str, project: str, look: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """Return what a check finds; if it cannot look, or gets an answer of another shape than the API's, say that."""
    title, permissions, role = CHECKS[check]
    id_ = f"{check}-unknown"
    try:
        return [*look()]
    except NotAllowed as error:
        needed = f"{permissions} on {error.place}" if permissions else f"permissions on {error.place}"
        grant = error.place.grant(role, member) if role else ""
        return [Finding(id_, f"{title}: {member} may not look: that needs {needed}", grant, "cannot tell")]
    except ApiOff as error:
        owner = error.consumer or project
        if error.api in _FIRST_APIS:
            return [found("api-off", api=f"{error.api}.googleapis.com", project=owner)]
        enable = f"gcloud services enable {error.api}.googleapis.com --project={owner}"
        message = f"{title}: the {error.api}.googleapis.com API, which says so, is off in {owner}"
        # A new project has it off, and the stack does without.
        return [Finding(id_, message, enable, "note" if check == "billing" else "cannot tell")]
    except QuotaProjectRefused:
        return [found("quota-project-refused", member=member, project=project)]
    except NotSignedIn as error:
        from google.auth.exceptions import RefreshError

        return [no_token(RefreshError(f"{error} answers with status 401"), member)]
    except NotFound as error:
        return [Finding(id_, f"{title}: {error} does not exist", "", "cannot tell")]
    except LookUpFailed as error:
        return [Finding(id_, f"{title}: {error}", "", "cannot tell")]
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
        message = f"{title}: what answers is not Google Cloud, or a proxy stands before it"
        return [Finding(id_, message, "", "cannot tell")]


def no_token(error: Exception, member: str, rule: str = "credentials-refused") -> Finding:
    """Return the finding of credentials that give no token, or one that Google does not take: by where they are set.

    If nothing sets them, they are the Application Default Credentials, and `rule` says what is wrong with those.
    """
    reason = credentials.explain(error)
    place, names, _ = reason.partition(": ")
    account = re.search(r"no token of (\S+)", reason)
    if account:
        return found("impersonation-refused", reason=reason, account=account[1], member=member)
    if not names or " " in place:
        return found(rule, reason=str(error) if rule == "credentials-refused" else reason)
    if credentials.token_place():
        return found("token-refused", place=place)
    return found("key-file-refused", reason=reason, place=place)


def _ids(name: str) -> dict[str, str]:
    """Return the parts of a resource name as the remedies of rules call them."""
    parts = Place("project", name).parts
    return {
        "name": name,
        "id": name.rpartition("/")[2],
        "project": parts.get("projects", ""),
        "location": parts.get("locations", ""),
        "ring": parts.get("keyRings", ""),
    }


def _is_enforced(policy: Mapping[str, Any]) -> bool:
    return bool(policy.get("booleanPolicy", {}).get("enforced"))


def _allowed(policy: Mapping[str, Any]) -> list[str]:
    """Return the values that a list constraint allows; none, if it does not limit them so."""
    return [value.removeprefix("is:") for value in policy.get("listPolicy", {}).get("allowedValues", [])]


def allows(policy: Mapping[str, Any], names: set[str]) -> bool:
    """Whether an effective policy allows what has these names (Resource Manager's REST reference, ListPolicy)."""
    rules, allowed = policy.get("listPolicy", {}), _allowed(policy)
    denied = {value.removeprefix("is:") for value in rules.get("deniedValues", [])}
    if names & denied or rules.get("allValues") == "DENY":
        return False
    return not allowed or bool(names & {*allowed})


def _is_understood(group: str) -> bool:
    """Whether it is known of a value group of locations what is not in it: that of a region or of a continent."""
    name = group.removeprefix("in:").removesuffix("-locations")
    return name in _CONTINENTS or name == "eu" or name[-1:].isdigit()
