"""What a stack grants the account that its jobs run as, in permissions, and which of its keys would grant more.

It is said from settings, without an engine, and in the terms of `vertex_api.emulator.GRANTS`.
tests/components/targets/gcp/test_grants.py compares it with what the program registers.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import yaml

from ...data.listing import BUCKET, TABLE
from ...plan.folders import WHOLE_BUCKET, WritableFolders
from ...settings.settings import NAMESPACE, Settings
from .access import SECRET_ACCESSOR, TABLE_USER_ROLES, TABLE_VIEWER, VERTEX_USER
from .project import LOG_WRITER, account_email
from .storage import READER_ROLES, WRITER_ROLE, parents

ROLES: Mapping[str, tuple[str, ...]] = {
    LOG_WRITER: ("logging.logEntries.create",),
    VERTEX_USER: ("aiplatform.*",),
    SECRET_ACCESSOR: ("secretmanager.versions.access",),
    READER_ROLES["read"]: ("storage.buckets.get", "storage.objects.list", "storage.managedFolders.list"),
    READER_ROLES["view"]: ("storage.objects.get", "storage.objects.list", "storage.managedFolders.list"),
    WRITER_ROLE: (
        *(f"storage.objects.{verb}" for verb in ("create", "delete", "get", "list", "update")),
        "storage.managedFolders.list",
    ),
    TABLE_VIEWER: ("bigquery.tables.get", "bigquery.tables.getData"),
    TABLE_USER_ROLES["queries"]: ("bigquery.jobs.create",),
    TABLE_USER_ROLES["sessions"]: ("bigquery.readsessions.*",),
}
"""What each role has, as far as calls of jobs need it (IAM's page "IAM roles and permissions index").

Of Vertex AI, that is all that the emulator has methods for."""
_PROJECT = "project"
_NOT_GRANTED = "no key of a stack grants it"


class Grant(NamedTuple):
    """A role on what it is granted on, and where in that it counts: a rule of `vertex_api.emulator.GRANTS`."""

    role: str
    on: str
    where: Mapping[str, Sequence[str]]

    @property
    def rule(self) -> dict[str, Any]:
        """The rule."""
        return {"permissions": [*ROLES[self.role]], **self.where}

    def moved(self, bucket: str) -> "Grant":
        """Return one on a bucket that stands for that of this one."""
        start = f"{BUCKET}{self.on}"
        where = {key: [f"{BUCKET}{bucket}{each.removeprefix(start)}" for each in self.where[key]] for key in self.where}
        return Grant(self.role, bucket, where)


@dataclass(frozen=True)
class Grants:
    """The grants of a stack with target `gcp`, and the account that has them."""

    settings: Settings

    @property
    def account(self) -> str:
        """The e-mail of the account."""
        identity = self._cloud["identity"]
        return str(identity.get("existing") or account_email(identity["account"], self.settings.project))

    @property
    def bucket(self) -> str:
        """The name of the stack's own bucket."""
        return self._folders.bucket

    @property
    def _cloud(self) -> Mapping[str, Any]:
        assert self.settings.cloud is not None
        return self.settings.cloud

    @property
    def _folders(self) -> WritableFolders:
        assert self.settings.plan.folders is not None
        return self.settings.plan.folders

    def __iter__(self) -> Iterator[Grant]:
        """Yield all grants to the account."""
        identity, folders = self._cloud["identity"], self._folders
        if "existing" not in identity:
            roles = [LOG_WRITER, *([VERTEX_USER] if identity.get("useVertexAi", True) else [])]
            yield from (Grant(role, _PROJECT, {"at": [_PROJECT]}) for role in roles)
        granted = self.settings.granted_data
        others = {uri.removeprefix(BUCKET).partition("/")[0] for uri in granted if uri.startswith(BUCKET)}
        tables = dict.fromkeys(uri for uri in granted if uri.startswith(TABLE))
        yield from (Grant(TABLE_VIEWER, uri.removeprefix(TABLE), {"at": [uri]}) for uri in tables)
        if tables:
            yield from (Grant(role, _PROJECT, {"at": [_PROJECT]}) for role in TABLE_USER_ROLES.values())
        for bucket in (folders.bucket, *sorted(others)):
            yield from (Grant(role, bucket, _whole(bucket)) for role in READER_ROLES.values())
        if WHOLE_BUCKET in folders.others:
            yield Grant(WRITER_ROLE, folders.bucket, _whole(folders.bucket))
        else:
            yield writing(folders.bucket, folders.own, folders.closed)
            yield from (writing(folders.bucket, folder) for folder in folders.others)
        for secret in dict.fromkeys(identity.get("secrets", [])):
            owner, name = secret.split("/")[1::2] if "/" in secret else (self.settings.project, secret)
            is_own = owner in (self.settings.project, self._cloud["projectNumber"])
            yield Grant(SECRET_ACCESSOR, secret, {"at": [f"secrets/{name}"] if is_own else []})

    def remedies(self, lacking: Iterable[tuple[str, str]]) -> list[str]:
        """Return lines that would grant permissions on places: keys of files, then commands for the others.

        Each key of the stack file is whole, with what that has of it already. Data of an included file is a line of its
        own, as the two are not merged.

        A place is a bucket or a folder of one as `gs://`, a table as `bq://`, `secrets/NAME` or `project`.
        """
        secrets, folders, data = list[str](), list[str](), list[str]()
        uses_vertex, others = False, list[str]()
        for permission, place in lacking:
            bucket, _, folder = place.removeprefix(BUCKET).partition("/")
            if place.startswith("secrets/"):
                secrets.append(place.removeprefix("secrets/"))
            elif permission.startswith("aiplatform.") and "account" in self._cloud["identity"]:
                uses_vertex = True
            elif place == _PROJECT:
                others.append(self._on_project(permission))
            elif place.startswith(TABLE) and _has([TABLE_VIEWER], permission):
                data.append(place)
            elif not place.startswith(BUCKET):
                others.append(f"{permission} on {place}: {_NOT_GRANTED}")
            elif bucket != self.bucket and _has(READER_ROLES.values(), permission):
                data.append(f"{BUCKET}{bucket}/")
            elif not _has([WRITER_ROLE], permission):
                others.append(f"{permission} on {place}: {_NOT_GRANTED}")
            elif bucket != self.bucket:
                member = f"--member=serviceAccount:{self.account} --role={WRITER_ROLE}"
                others.append(f"gcloud storage buckets add-iam-policy-binding gs://{bucket} {member}")
            elif self._folders.own.startswith(folder) and folder:
                others.append(f"{permission} on {place}: {_NOT_GRANTED}; write below AIP_MODEL_DIR")
            else:
                folders.append(folder or WHOLE_BUCKET)
        identity: dict[str, Any] = {}
        if secrets:
            identity["secrets"] = [*dict.fromkeys([*self._cloud["identity"].get("secrets", []), *secrets])]
        if uses_vertex:
            identity["useVertexAi"] = True
        bucket_keys = {"writableFolders": [*dict.fromkeys([*self._folders.listed, *folders])]} if folders else {}
        own_data, included = self._data(dict.fromkeys(data))
        keys = {"data": own_data, "identity": identity, "bucket": bucket_keys}
        given = self.settings.plan.stack
        shown = [f"{NAMESPACE}:{key}: {_flow({**given.get(key, {}), **value})}" for key, value in keys.items() if value]
        return [*shown, *included, *dict.fromkeys(others)]

    def _data(self, uris: Iterable[str]) -> tuple[dict[str, Any], list[str]]:
        """Return what grants buckets and tables: items of the stack file's `data`, and lines for those of other files.

        An item is one that is there, with its grant, or a new one.
        """
        own, included = dict[str, Any](), list[str]()
        for uri in uris:
            if item := next((each for each in self.settings.data.values() if each.uri.startswith(uri)), None):
                granted = {item.name: {**item.fields, "grant": True}}
                if item.name in self.settings.plan.stack.get("data", {}):
                    own |= granted
                else:
                    included.append(f"{item.place((), '').place}: data: {_flow(granted)}")
            else:
                name = re.sub("[^a-z0-9-]+", "-", uri.partition("://")[2].lower()).strip("-")
                own[name] = {"uri": uri, "grant": True}
        return own, included

    def _on_project(self, permission: str) -> str:
        role = next((each for each, has in ROLES.items() if _has([each], permission) and has), None)
        if role is None:
            return f"{permission} on the project: {_NOT_GRANTED}"
        member = f"--condition=None --member=serviceAccount:{self.account} --role={role}"
        return f"gcloud projects add-iam-policy-binding {self.settings.project} {member}"


def writing(bucket: str, folder: str, closed: Sequence[str] = ()) -> Grant:
    """Return the grant to write in a folder of a bucket, but in none of its `closed` folders."""

    def named(folders: Iterable[str]) -> list[str]:
        return [f"{BUCKET}{bucket}/{each}" for each in folders]

    where = {"at": named(parents(folder)), "below": named([folder]), "but": named(closed)}
    return Grant(WRITER_ROLE, bucket, {key: value for key, value in where.items() if value})


def _whole(bucket: str) -> dict[str, list[str]]:
    return {"at": [f"{BUCKET}{bucket}"], "below": [f"{BUCKET}{bucket}/"]}


def _has(roles: Iterable[str], permission: str) -> bool:
    return any(fnmatchcase(permission, each) for role in roles for each in ROLES[role])


def _flow(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10_000).strip()
