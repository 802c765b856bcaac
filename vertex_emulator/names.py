"""Resource names and the project numbers in them."""

import hashlib
import re
import secrets
from dataclasses import dataclass
from functools import lru_cache

_SEGMENT = r"[^/:]+"
_PATH = re.compile(
    rf"projects/(?P<project>{_SEGMENT}(?::{_SEGMENT})?)/locations/(?P<location>{_SEGMENT})"
    rf"(?:/(?P<collection>(?!operations\b){_SEGMENT})(?:/(?P<id>{_SEGMENT}))?)?"
    rf"(?P<operations>/operations(?:/(?P<operation>{_SEGMENT}))?)?"
    rf"(?::(?P<verb>{_SEGMENT}))?"
)


@dataclass(frozen=True)
class Location:
    """A parent, `projects/P/locations/R`; `project` is what the caller wrote, an id or a number."""

    project: str
    region: str

    @property
    def number(self) -> str:
        """The project's number."""
        return project_number(self.project)

    @property
    def name(self) -> str:
        """The name as the service writes it, with the number."""
        return f"projects/{self.number}/locations/{self.region}"


@dataclass(frozen=True)
class Path:
    """One request path below the version, taken apart; absent parts are None."""

    text: str
    location: Location
    collection: str | None
    id: str | None
    in_operations: bool
    operation: str | None
    verb: str | None


def parse_path(path: str) -> Path | None:
    """Take `projects/P/locations/R/customJobs/ID:cancel` and its kin apart; None when it is no such path."""
    match = _PATH.fullmatch(path)
    if match is None or (match["operations"] and match["collection"] and not match["id"]):
        return None
    return Path(
        text=path,
        location=Location(match["project"], match["location"]),
        collection=match["collection"],
        id=match["id"],
        in_operations=match["operations"] is not None,
        operation=match["operation"],
        verb=match["verb"],
    )


@lru_cache
def project_number(project: str) -> str:
    """The number of a project: digits stay, an id gets a stable 12-digit number of its own."""
    if project.isdigit():
        return project
    digest = hashlib.sha256(project.encode()).digest()
    return str(10**11 + int.from_bytes(digest[:8], "big") % (9 * 10**11))


def new_id() -> str:
    """A numeric id of 19 digits, like the service's."""
    return str(10**18 + secrets.randbelow(8 * 10**18))


def job_host_id(job_id: str) -> str:
    """The ten hex digits in the replicas' host names, one value per job."""
    return hashlib.sha256(job_id.encode()).hexdigest()[:10]


def replica_hostname(job_id: str, pool: int, index: int) -> str:
    """The host name of a replica, as real jobs show it: `cmle-training-workerpool0-669872baaf-0`."""
    return f"cmle-training-workerpool{pool}-{job_host_id(job_id)}-{index}"
