"""Names of the API: locations with their project numbers, and ids that the emulator generates."""

import hashlib
import json
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

ID_PATTERN = r"[^/:]+"
LOCATION_PATTERN = rf"projects/{ID_PATTERN}(?::{ID_PATTERN})?/locations/{ID_PATTERN}"
BOARD_COLLECTIONS = ("tensorboards", "experiments", "runs", "timeSeries")
"""Tensorboards, and what is in them: each has the next."""
BOARD_PATTERNS = list(
    accumulate(BOARD_COLLECTIONS, lambda outer, inner: f"{outer}/{inner}/{ID_PATTERN}", initial=LOCATION_PATTERN)
)[1:]
"""The names of each of them."""
STORE_PATTERN = f"{LOCATION_PATTERN}/metadataStores/{ID_PATTERN}"
"""The name of a metadata store."""
LINEAGE_COLLECTIONS = ("contexts", "executions", "artifacts")
"""What is in a metadata store."""
_MODEL = re.compile(rf"({LOCATION_PATTERN})/models/({ID_PATTERN})")


@dataclass(frozen=True)
class Location:
    """A parent, `projects/P/locations/R`; `project` is what the caller wrote, an id or a number."""

    project: str
    region: str

    @classmethod
    def parse(cls, name: str) -> "Location":
        """Return the location of a name that matches `LOCATION_PATTERN`."""
        _, project, _, region = name.split("/")
        return cls(project, region)

    @property
    def project_number(self) -> str:
        """The project's number."""
        return project_number(self.project)

    @property
    def name(self) -> str:
        """The name as the service writes it, with the project's number."""
        return f"projects/{self.project_number}/locations/{self.region}"

    def columns(self) -> dict[str, str]:
        """Return the columns of the database for a location."""
        return {"project": self.project, "number": self.project_number, "region": self.region}


def parse_model(name: str) -> tuple[Location, str] | None:
    """Return location and id of `projects/P/locations/R/models/ID`, None for another form."""
    match = _MODEL.fullmatch(name)
    return (Location.parse(match[1]), match[2]) if match else None


def with_number(name: str) -> str:
    """Return the full name of a location or a resource in it, with the project's number."""
    parts = name.split("/")
    return "/".join([Location.parse("/".join(parts[:4])).name, *parts[4:]])


@lru_cache
def project_number(project: str) -> str:
    """Return the number of a project: digits are kept, an id gets a stable 12-digit number."""
    if project.isdigit():
        return project
    digest = hashlib.sha256(project.encode()).digest()
    return str(10**11 + int.from_bytes(digest[:8], "big") % (9 * 10**11))


def values_of(file: Path, number: str) -> Iterator[Any]:
    """Yield what a file `{PROJECT: VALUE}` of a stack has for the project of a number; nothing if there is no file."""
    try:
        projects = json.loads(file.read_text())
    except FileNotFoundError:
        return
    yield from (value for project, value in projects.items() if project_number(project) == number)


def new_id() -> str:
    """Return a new id of 19 digits, like the service's."""
    return str(10**18 + secrets.randbelow(8 * 10**18))
