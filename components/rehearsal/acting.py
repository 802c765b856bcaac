"""`--as` of `run` and `rehearse`: whom the code of jobs acts as at Google, and which buckets are Google's."""

import os
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from vertex_api.acting import Acting
from vertex_api.emulator import FETCHED
from vertex_api.errors import VertexError
from vertex_api.job import Job

from ..data.listing import BUCKET, selection
from ..data.lock import Data
from ..own import DATA_VARIABLE
from ..plan.training import Training
from ..runtime import emulator
from ..runtime.acting import ActingRefused, require_own_code, require_token
from ..settings.entries import SECTIONS
from ..settings.offline import StackFile
from .access import cloud_settings
from .fetch import LIMIT_GB, Cache, Reply
from .target import LOCK

KINDS = ("account", "user")
_OPTION, _WRITE, _FETCH = "--as", "--write", "--fetch"
_LISTED = "https://storage.googleapis.com/storage/v1/b/{}/o"


@dataclass(frozen=True)
class Actor:
    """Whom jobs act as: the `account` of a stack and of jobs that name one, or for "user" who is logged in here.

    They may write to the buckets of `write`. At most `fetch_bytes` of data are fetched at once, into `fetched`.
    """

    kind: str
    account: str = ""
    write: frozenset[str] = frozenset()
    fetched: Path = Path()
    fetch_bytes: int = 0
    _known: dict[str, Acting] = field(default_factory=dict)
    _local: threading.local = field(default_factory=threading.local)

    @classmethod
    def of(cls, kind: str | None, write: Sequence[str], file: StackFile, fetch_gb: int | None = None) -> "Actor | None":
        """Return who acts by the options of a command, None without. Raises ActingRefused and DeclarationErrors."""
        buckets = frozenset(map(_bucket, write))
        if kind is None:
            if fetch_gb is not None:
                raise ActingRefused(f"{_FETCH}: needs {_OPTION} account or user: without, nothing is fetched")
            if write:
                raise ActingRefused(f"{_WRITE}: needs {_OPTION} account or user: without, nothing is written to Google")
            return None
        require_own_code(_OPTION)
        data = (file.root / (os.environ.get(DATA_VARIABLE) or ".emulator")).absolute()
        limit = (LIMIT_GB if fetch_gb is None else fetch_gb) * 10**9
        return cls(kind, _account(file) if kind == "account" else "", buckets, data / FETCHED, limit)

    def check(self, trainings: Iterable[Training], stack: str) -> None:
        """Ask for the tokens of jobs, before anything else is done. Raises ActingRefused."""
        for training in trainings:
            if self.kind == "account" and not self.account_of(training.job):
                raise ActingRefused(
                    f"{_OPTION} account: {training.name} has no serviceAccount, and the stack {stack} no account for "
                    "jobs; give --stack with one of target gcp"
                )
        for account in {self.account_of(each.job): None for each in trainings}:
            require_token(f"{_OPTION} {self.kind}", self._acting(account))

    def require_door(self) -> None:
        """Raise ActingRefused where containers of the present emulator are not led to it, before a job is begun."""
        status = emulator.request("GET", "status", None, _OPTION) or {}
        if obstacle := status.get("obstacle"):
            raise ActingRefused(
                f"{_OPTION} cannot work here, because no name of Google's leads containers to the emulator: {obstacle} "
                "(`vertex-training docs google`)"
            )

    def account_of(self, job: Job) -> str:
        """Return the account that a job acts as, "" for who is logged in here."""
        return str(job.job_spec.get("serviceAccount") or self.account) if self.kind == "account" else ""

    @cached_property
    def job_spec(self) -> Mapping[str, Any]:
        """What jobs have that name no account."""
        return {"serviceAccount": self.account} if self.account else {}

    def entry(self, real: Collection[str]) -> Mapping[str, Any]:
        """Return what the emulator is told, with buckets that are Google's; it counts as long as this command lives."""
        return {
            "as": self.kind,
            "account": self.account,
            "write": sorted(self.write),
            "real": sorted(real),
            "while": LOCK,
        }

    def real(self, buckets: Iterable[str], job: Job, say: Callable[[str], None]) -> set[str]:
        """Return which buckets Google has, and say which of them a job may not list. Raises ActingRefused."""
        found = set()
        for bucket in buckets:
            status, reason = self._ask(bucket, self.account_of(job))
            if status == 404:
                say(f"gs://{bucket}: Google has no such bucket; it is made at home")
                continue
            if status >= 400:
                say(f"gs://{bucket}: is Google's, and may not be listed ({reason})")
            found.add(bucket)
        return found

    def _ask(self, bucket: str, account: str) -> tuple[int, str]:
        reply = self._get(account, _LISTED.format(bucket), {"maxResults": "1", "fields": "kind"}, {})
        if reply.status in (200, 401, 403, 404):
            return reply.status, reply.reason
        raise ActingRefused(f"{_OPTION}: gs://{bucket}: Google answers {reply.status} ({reply.reason})")

    def fetch(
        self, data: Iterable[Data], real: Collection[str], buckets: Path, job: Job, say: Callable[[str], None]
    ) -> None:
        """Fetch data of a job from buckets of Google's into `buckets`, those of the present target. Raises FetchFailed.

        A bucket that is at home has what jobs write there, such as the stack's own: data is fetched that it lacks.
        """
        if not self.fetch_bytes:
            return
        cache, account = Cache(self.fetched, self.fetch_bytes, say), self.account_of(job)
        for each in data:
            if not each.uri.startswith(BUCKET):
                continue
            bucket, prefix, _, _ = selection(each.uri)
            if bucket in real or (not _has(buckets / bucket, prefix) and self._ask(bucket, account)[0] != 404):
                cache.fetch(each, partial(self._get, account))

    def _get(self, account: str, url: str, params: Mapping[str, str], headers: Mapping[str, str]) -> Reply:
        """Ask Google as an account, on a connection that the thread keeps. Raises ActingRefused without an answer."""
        import requests

        from vertex_api import transport

        if not hasattr(self._local, "session"):
            self._local.session = transport.mount(requests.Session())
        session: requests.Session = self._local.session
        try:
            reply = session.get(url, params=params, headers={**self._acting(account).headers(), **headers})
        except requests.RequestException as error:
            raise ActingRefused(f"{_OPTION}: {' '.join(str(error).split())[:300]}") from error
        except VertexError as error:
            raise ActingRefused(f"{_OPTION} {self.kind}: {error}") from error
        return Reply(reply.status_code, reply.content, _reason(reply) if reply.status_code >= 300 else "")

    def _acting(self, account: str) -> Acting:
        return self._known.setdefault(account, Acting(account))


def _has(bucket: Path, prefix: str) -> bool:
    """Return whether a bucket at home has anything whose name begins with a prefix."""
    folder, _, beginning = prefix.rpartition("/")
    try:
        return any(each.name.startswith(beginning) for each in (bucket / folder).iterdir())
    except OSError:
        return False


def _reason(reply: Any) -> str:
    try:
        message = str(reply.json()["error"]["message"])
    except (ValueError, LookupError, TypeError):
        message = str(reply.reason)
    return " ".join(message.split())[:300]


def _bucket(uri: str) -> str:
    name = uri.removeprefix("gs://").rstrip("/")
    if not uri.startswith("gs://") or "/" in name or not name:
        raise ActingRefused(f"{_WRITE}: {uri} must be gs://BUCKET: what may be written is told by bucket")
    return name


def _account(file: StackFile) -> str:
    """Return the account of the jobs of a stack with target `gcp`, "" for others. Raises DeclarationErrors."""
    if file.config.get("vertex-training:target") != "gcp":
        return ""
    from ..targets.gcp.grants import Grants

    # What it declares may be wrong, which does not matter here.
    return Grants(cloud_settings(file, (*SECTIONS, "include"))).account
