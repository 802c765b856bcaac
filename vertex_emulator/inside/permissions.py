"""What jobs need of IAM: the permissions of their calls, noted for each job, and refused if no stack grants them.

Sources: Cloud Storage's "IAM permissions for JSON methods" and "Objects: move", Secret Manager's "Access control with
IAM", Cloud Logging's "Access control with IAM", BigQuery's "IAM roles and permissions" and REST reference, Vertex AI's
"IAM permissions", whose names are those of its methods.
"""

import json
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from vertex_emulator import names
from vertex_emulator.database import Database
from vertex_emulator.database.permissions import MAX_NEEDS, Need
from vertex_emulator.database.records import Job
from vertex_emulator.errors import ApiError
from vertex_emulator.inside import buckets
from vertex_emulator.inside.buckets import BucketCall

PROJECT = "project"
"""The resource of what is granted on a job's project."""
WRITE_ENTRIES = "logging.logEntries.create"
GET_PROJECT = "resourcemanager.projects.get"
_ACCESS = "secretmanager.versions.access"
_SECRET = re.compile(r"/(?:v1|v1beta1)/(projects/[^/]+/secrets/([A-Za-z0-9_-]{1,255})/versions/[^/:]+):access")
_VERTEX = re.compile(r"/(?:v1|v1beta1|ui)/(projects/[^/]+/locations/[^/:]+)/([^:]+)(?::([a-zA-Z]{1,60}))?")
_NOUNS = {
    **{each: each for each in ("customJobs", "hyperparameterTuningJobs", "trainingPipelines", "models")},
    **{each: each for each in ("tensorboards", "metadataStores", "metadataSchemas")},
    **{each: each for each in ("contexts", "executions", "artifacts")},
    "experiments": "tensorboardExperiments",
    "runs": "tensorboardRuns",
    "timeSeries": "tensorboardTimeSeries",
}
_OF_COLLECTIONS = {"GET": "list", "POST": "create"}
_OF_RESOURCES = {"GET": "get", "DELETE": "delete", "PATCH": "update"}
_ELSEWHERE = {
    ("tensorboards", "batchRead"): "tensorboardTimeSeries.batchRead",
    ("tensorboardExperiments", "batchCreate"): "tensorboardTimeSeries.batchCreate",
    ("contexts", "purge"): "contexts.delete",
    ("executions", "purge"): "executions.delete",
    ("artifacts", "purge"): "artifacts.delete",
    # The page has no row for these, which are given the permission of their likes.
    ("models", "copy"): "models.upload",
    ("models", "deleteVersion"): "models.delete",
    ("models", "listVersions"): "models.list",
    ("models", "mergeVersionAliases"): "models.update",
}
"""By noun and custom method, a permission that is not named after the two."""
_OPERATIONS = "operations"
_MAX_NAME = 300
_MAX_JOBS = 1_000


def of_call(method: str, path: str) -> tuple[str, str, str] | None:
    """Return the permission of a call, its resource, and the name in a refusal; None for a call that needs none.

    Calls of Cloud Storage say themselves what they need.
    """
    if secret := _SECRET.fullmatch(path):
        return _ACCESS, f"secrets/{secret[2]}", secret[1]
    found = _VERTEX.fullmatch(path)
    if found is None:
        return None
    parent, rest, custom = found.groups()
    parts = rest.split("/")
    if _OPERATIONS in parts[::2]:  # it takes the right to get what the operation is about
        parts, method, custom = parts[: 2 * parts[::2].index(_OPERATIONS)], "GET", None
    noun = _NOUNS.get((parts[::2] or [""])[-1])
    if noun is None:
        return None
    is_collection = len(parts) % 2
    verb = custom or (_OF_COLLECTIONS if is_collection else _OF_RESOURCES).get(method)
    place = "/".join([parent, *(parts[:-1] if is_collection else parts)])
    permission = _ELSEWHERE.get((noun, custom or ""), f"{noun}.{verb}")
    return (f"aiplatform.{permission}", PROJECT, f"//aiplatform.googleapis.com/{place}") if verb else None


_XML = re.compile(r"/([a-z0-9][a-z0-9._-]+)/(.+)")
_OF_BUCKETS = {"GET": "get", "DELETE": "delete", "PATCH": "update", "PUT": "update"}
_OF_OBJECTS = {"GET": ("get",), "HEAD": ("get",), "DELETE": ("delete",), "PATCH": ("get", "update"), "PUT": ("update",)}
_BIGQUERY = re.compile(
    r"/(?:upload/|resumable/upload/)?bigquery/v2/projects/([^/]+)/"
    r"(?:(jobs|queries)|datasets/([^/]+)(?:/tables(?:/([^/]+)(?:/(data|insertAll))?)?)?)"
)
_OF_TABLES = {"data": "getData", "insertAll": "updateData", None: "get"}


def of_passed(host: str, method: str, raw_path: bytes, project_number: str) -> list[tuple[str, str]]:
    """Return the permissions of a call that is passed on to a service of Google's or its stand-in, and their resources.

    They are those that the path tells, of Cloud Storage and BigQuery. `project_number` is that of the job's project.
    """
    path = raw_path.decode("latin-1")
    if host == "bigquery.googleapis.com" and (found := _BIGQUERY.fullmatch(path)):
        return [*_of_bigquery(method, found, project_number)]
    if host == buckets.HOST:
        return [*_of_storage(method, raw_path)]
    return []


def _of_storage(method: str, raw_path: bytes) -> Iterator[tuple[str, str]]:
    call = BucketCall.parse(method, raw_path)
    if call is None:
        if method in ("GET", "HEAD") and (read := _XML.fullmatch(unquote(raw_path.decode("latin-1")))):
            yield "storage.objects.get", f"gs://{read[1]}/{read[2]}"
        return
    at = f"gs://{call.bucket}"
    if not call.bucket:
        yield f"storage.buckets.{'list' if method == 'GET' else 'create'}", PROJECT
    elif not call.rest:
        yield from ((f"storage.buckets.{verb}", at) for verb in filter(None, [_OF_BUCKETS.get(method)]))
    elif call.verb:
        if call.verb != "compose":
            yield "storage.objects.get", f"{at}/{call.name}"
        if call.verb == "moveTo":
            yield "storage.objects.delete", f"{at}/{call.name}"
        yield "storage.objects.create", f"gs://{call.to}/{call.target}"
    elif call.rest == ("o",):
        if method == "GET":
            yield "storage.objects.list", at
        elif call.place == "upload" and method == "POST":
            yield "storage.objects.create", at
    elif call.rest[0] == "o":
        yield from ((f"storage.objects.{verb}", f"{at}/{call.name}") for verb in _OF_OBJECTS.get(method, ()))


def _of_bigquery(method: str, found: re.Match[str], project_number: str) -> Iterator[tuple[str, str]]:
    project, jobs, dataset, table, part = found.groups()
    if jobs:
        is_own = names.project_number(project) == project_number
        if method == "POST":
            yield "bigquery.jobs.create", PROJECT if is_own else f"projects/{project}"
    elif table:
        verb = {"DELETE": "delete", "PATCH": "update", "PUT": "update"}.get(method, _OF_TABLES[part])
        yield f"bigquery.tables.{verb}", f"bq://{project}.{dataset}.{table}"
    elif found[0].endswith("/tables"):
        yield f"bigquery.tables.{'create' if method == 'POST' else 'list'}", f"bq://{project}.{dataset}"
    else:
        yield f"bigquery.datasets.{_OF_BUCKETS.get(method, 'get')}", f"bq://{project}.{dataset}"


class Rule:
    """A rule of `vertex_api.emulator.GRANTS`."""

    def __init__(self, said: Mapping[str, Any]) -> None:
        self._names = frozenset(said["permissions"])
        self._prefixes = tuple(each[:-1] for each in said["permissions"] if each.endswith("*"))
        self._at = frozenset(said.get("at", ()))
        self._below, self._but = tuple(said.get("below", ())), tuple(said.get("but", ()))

    def grants(self, permission: str, resource: str) -> bool:
        """Return whether it grants a permission on a resource."""
        if permission not in self._names and not permission.startswith(self._prefixes):
            return False
        return resource in self._at or (resource.startswith(self._below) and not resource.startswith(self._but))


@dataclass(frozen=True)
class Grants:
    """What a stack grants the account that its jobs run as."""

    account: str
    is_enforced: bool
    rules: Sequence[Rule]

    @classmethod
    def parse(cls, said: Mapping[str, Any]) -> "Grants":
        """Return what a value of `vertex_api.emulator.GRANTS` says."""
        return cls(said["account"], said["enforce"], [Rule(each) for each in said["rules"]])

    def has(self, permission: str, resource: str) -> bool:
        """Return whether a permission on a resource is granted."""
        return any(rule.grants(permission, resource) for rule in self.rules)


@dataclass
class Permissions:
    """Notes what the calls of jobs need, each thing once for a job; `file` is that of `GRANTS`, if there is one."""

    database: Database
    file: Path
    _known: dict[str, set[Need]] = field(default_factory=dict)
    _read: tuple[tuple[int, ...], dict[str, Grants]] = field(default_factory=lambda: ((), {}))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def grants(self, job: Job) -> Grants | None:
        """Return what is granted to a job; None where nobody has said it."""
        try:
            found = self.file.stat()
        except FileNotFoundError:
            return None
        version = found.st_ino, found.st_mtime_ns, found.st_size
        if self._read[0] != version:
            projects = json.loads(self.file.read_text())
            by_number = {names.project_number(project): Grants.parse(said) for project, said in projects.items()}
            self._read = version, by_number
        return self._read[1].get(job.location.project_number)

    def require(self, job: Job, permission: str, resource: str, place: str = "") -> None:
        """Note that a job needs a permission, on a resource that a refusal calls `place`.

        Raises ApiError, in the service's words, if nothing grants it and grants are enforced.
        """
        grants = self.grants(job)
        need = _need(grants, permission, resource)
        with self._lock:
            self._note(job, need)
        if grants and grants.is_enforced and need.lacking:
            raise _refusal(grants.account, permission, resource, place)

    def _note(self, job: Job, need: Need) -> None:
        if job.id not in self._known:
            if len(self._known) >= _MAX_JOBS:
                self._known.clear()
            with self.database.read() as transaction:
                self._known[job.id] = transaction.permissions.of(job.id)
        known = self._known[job.id]
        if need not in known and len(known) < MAX_NEEDS:
            with self.database.write() as transaction:
                transaction.permissions.add(job.id, [need])
            known.add(need)

    def of(self, jobs: Iterable[Job], files: Iterable[tuple[str, str]] = ()) -> list[Need]:
        """Return what jobs of one project have needed, also for `files`: permissions on objects of `/gcs`."""
        found, grants = set[Need](), None
        for job in jobs:
            grants = self.grants(job)
            with self.database.read() as transaction:
                found |= transaction.permissions.of(job.id)
        for permission, resource in files:
            if len(found) < MAX_NEEDS:
                found.add(_need(grants, permission, resource))
        return sorted(found)


def _need(grants: Grants | None, permission: str, resource: str) -> Need:
    """Return a need of a bucket for one of an object; what lacks is told by the first folder of its name."""
    shown = lacking = resource[:_MAX_NAME]
    if resource.startswith("gs://"):
        bucket, _, name = resource.removeprefix("gs://").partition("/")
        folder, slash, _ = name.partition("/")
        shown = f"gs://{bucket}"[:_MAX_NAME]
        lacking = f"{shown}/{folder}/"[:_MAX_NAME] if slash else shown
    return Need(permission, shown, "" if grants is None or grants.has(permission, resource) else lacking)


def _refusal(account: str, permission: str, resource: str, place: str) -> ApiError:
    """Return what the service answers to an account that lacks a permission."""
    if permission.startswith("storage."):
        noun = "project" if resource == PROJECT else "Storage bucket" if "/" not in resource[5:] else "Storage object"
        said = f"Permission '{permission}' denied on resource (or it may not exist)."
        return ApiError(
            "PERMISSION_DENIED", f"{account} does not have {permission} access to the Google Cloud {noun}. {said}"
        )
    if permission.startswith("bigquery.") and resource.startswith("bq://"):
        project, _, rest = resource.removeprefix("bq://").partition(".")
        noun, name = "Table" if "." in rest else "Dataset", f"{project}:{rest}"
        said = f"Permission {permission} denied on {noun.lower()} {name} (or it may not exist)."
        return ApiError("PERMISSION_DENIED", f"Access Denied: {noun} {name}: {said}")
    if permission.startswith("bigquery."):
        project = place or resource.removeprefix("projects/")
        said = f"User does not have {permission} permission in project {project}."
        return ApiError("PERMISSION_DENIED", f"Access Denied: Project {project}: {said}")
    return denied(permission, place)


def denied(permission: str, place: str) -> ApiError:
    """Return the error of Secret Manager, Cloud Logging and Vertex AI for a caller without a permission.

    `place` is the resource as the service names it, "" for one that it does not name (docs/fidelity.md, captures).
    """
    on = "for resource" if permission == _ACCESS else "on resource"
    if place:
        on = f"{on} '{place}'"
    host, name = "iam.googleapis.com", place
    if place.startswith("//"):
        host, _, name = place[2:].partition("/")
    metadata = {"permission": permission, "resource": name}
    info = {"reason": "IAM_PERMISSION_DENIED", "domain": host, "metadata": metadata}
    message = f"Permission '{permission}' denied {on} (or it may not exist)."
    return ApiError("PERMISSION_DENIED", message, error_info=info)


def described(needs: Iterable[Need]) -> Iterator[dict[str, str]]:
    """Yield needs as JSON: `permission`, `resource`, and `lacking` for those that nothing grants."""
    for each in needs:
        yield {"permission": each.permission, "resource": each.resource} | (
            {"lacking": each.lacking} if each.lacking else {}
        )
