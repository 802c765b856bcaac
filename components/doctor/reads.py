"""What jobs read that the stack does not own, whether whoever reads it may, and how to let them.

Data and packages are read as the account of the jobs (Google's page "Use a custom service account"), images of other
projects are pulled by Vertex AI's agents.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..data.listing import BUCKET, TABLE
from ..targets.gcp.project import ServiceAgents
from .cloud import Cloud, LookUpFailed, NotAllowed, NotFound
from .findings import Finding, Place, found
from .needs import Needs

_IMAGE = re.compile(r"(?P<location>[a-z0-9-]+)-docker\.pkg\.dev/(?P<project>[^/]+)/(?P<repository>[^/]+)/")
_GOOGLES = frozenset(["vertex-ai", "vertex-ai-restricted", "deeplearning-platform-release"])
"""Projects whose images everybody pulls (Google's page "Prebuilt containers for custom training")."""
_EVERYBODY = frozenset(["allUsers", "allAuthenticatedUsers"])
_QUERIES = frozenset(f"roles/{name}" for name in ("bigquery.jobUser", "bigquery.user", "bigquery.admin", "owner"))
"""Predefined roles that have bigquery.jobs.create (IAM's page "BigQuery roles")."""


@dataclass(frozen=True)
class Reads:
    """The looks at what the jobs of a stack read elsewhere, with the stack's `ids` for messages."""

    needs: Needs
    cloud: Cloud
    ids: Mapping[str, str]

    def looks(self) -> Iterator[Callable[[], Iterator[Finding]]]:
        """Yield a look at each bucket, table and repository."""
        for uri, user in self.needs.read_uris.items():
            if uri.startswith(TABLE):
                yield partial(self._table, uri.removeprefix(TABLE), user)
        buckets: dict[str, str] = {}
        for uri, user in self.needs.read_uris.items():
            if uri.startswith(BUCKET):
                buckets.setdefault(uri.removeprefix(BUCKET).partition("/")[0], user)
        yield from (partial(self._bucket, *each) for each in buckets.items() if each[0] != self.needs.bucket)
        repositories: dict[str, str] = {}
        for image in self.needs.read_images:
            if (match := _IMAGE.match(image)) and match["project"] not in (self.needs.project, *_GOOGLES):
                name = "projects/{project}/locations/{location}/repositories/{repository}".format(**match.groupdict())
                repositories.setdefault(name, image)
        granted = {*self.needs.cloud["registry"].get("alsoRead", [])}
        granted |= {self.needs.repository.name} if self.needs.repository else set()
        yield from (partial(self._repository, *each) for each in repositories.items() if each[0] not in granted)

    def _bucket(self, bucket: str, user: str) -> Iterator[Finding]:
        place, member = Place("bucket", bucket), f"serviceAccount:{self.needs.account}"
        try:
            members = members_of(self.cloud.get("storage", f"b/{bucket}/iam", place))
        except NotAllowed:
            if self.cloud.is_public(bucket):
                return
            raise
        if not members & {member, *_EVERYBODY} and not self._has_role(member, self._bucket_project(bucket)):
            yield self._told("data-unreadable", bucket=bucket, member=member, user=user)

    def _bucket_project(self, bucket: str) -> str | None:
        try:
            return str(self.cloud.get("storage", f"b/{bucket}", fields="projectNumber")["projectNumber"])
        except LookUpFailed:
            return None

    def _table(self, table: str, user: str) -> Iterator[Finding]:
        """BigQuery's REST reference: tables.getIamPolicy, and `access` of a dataset."""
        project, dataset, name = table.split(".")
        place, member = Place("project", project), f"serviceAccount:{self.needs.account}"
        path = f"projects/{project}/datasets/{dataset}"
        shown = f"{project}:{dataset}.{name}"
        members = members_of(self.cloud.ask("bigquery", f"{path}/tables/{name}:getIamPolicy", place))
        for entry in self.cloud.get("bigquery", path, place).get("access", []):
            members |= {f"serviceAccount:{entry.get('userByEmail')}", entry.get("iamMember"), entry.get("specialGroup")}
        if not members & {member, *_EVERYBODY} and not self._has_role(member, project):
            yield self._told("table-unreadable", table=shown, member=member, user=user)
        policy = self.cloud.ask("cloudresourcemanager", f"projects/{self.needs.project}:getIamPolicy", self.needs.own)
        roles = {each["role"] for each in policy.get("bindings", []) if member in each["members"]}
        if not roles & _QUERIES:
            yield self._told("queries-refused", table=shown, **{**self.ids, "member": member})

    def _repository(self, name: str, image: str) -> Iterator[Finding]:
        place, agents = Place("repository", name), ServiceAgents(self.needs.number)
        members = members_of(self.cloud.get("artifactregistry", f"{name}:getIamPolicy", place))
        if members & _EVERYBODY:
            return
        readers = (agents.vertex, agents.custom_code)
        missing = [
            each for each in readers if each not in members and not self._has_role(each, place.parts["projects"])
        ]
        if missing:
            commands = [place.grant("roles/artifactregistry.reader", each) for each in missing]
            yield found("image-unreadable", " && ".join(commands), name=name, image=image)

    def _has_role(self, member: str, project: str | None) -> bool:
        """Whether a project's policy names a member; no, if it cannot be read."""
        if project is None:
            return False
        try:
            return member in members_of(self.cloud.ask("cloudresourcemanager", f"projects/{project}:getIamPolicy"))
        except LookUpFailed:
            return False

    def _told(self, rule: str, **values: str) -> Finding:
        """Return a finding whose remedy waits for an account that is not there yet."""
        finding = found(rule, **values)
        if self.needs.account not in self.needs.created_accounts or self._exists():
            return finding
        besides = "; ".join(filter(None, [finding.besides, "it waits for `pulumi up`, which creates the account"]))
        return replace(finding, besides=besides)

    def _exists(self) -> bool:
        try:
            self.cloud.get("iam", f"projects/-/serviceAccounts/{self.needs.account}")
        except (NotFound, NotAllowed):
            return False
        return True


def members_of(policy: Mapping[str, Any], useless: str = "") -> set[str]:
    """Return the members that have any role in an allow policy but a `useless` one."""
    bindings = (binding for binding in policy.get("bindings", []) if binding["role"] != useless or not useless)
    return {member for binding in bindings for member in binding["members"]}
