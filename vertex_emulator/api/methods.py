"""Which method a request asks for, by its HTTP method and its path below the version."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vertex_api.kinds import KINDS, Kind
from vertex_emulator import names
from vertex_emulator.api.jobs import Jobs
from vertex_emulator.api.listing import Listing
from vertex_emulator.api.models import Models
from vertex_emulator.api.operations import Operations
from vertex_emulator.api.unserved import UNSERVED
from vertex_emulator.database import Database
from vertex_emulator.errors import ApiError
from vertex_emulator.http import query

Query = Mapping[str, str]
Body = Mapping[str, Any]
_MODELS = "models"


@dataclass(frozen=True)
class Methods:
    """All methods of the training API that this emulator has."""

    jobs: Jobs
    models: Models
    operations: Operations

    @classmethod
    def on(cls, database: Database, buckets: Path, wake: Callable[[str], None]) -> Methods:
        """The methods on a database; `buckets` is the folder of the buckets, `wake` asks for a look at a job."""
        return cls(Jobs(database, buckets, wake), Models(database), Operations(database))

    def answer(self, method: str, path: str, parameters: Query, body: Body) -> dict[str, Any]:
        """The reply to a request: `path` is what follows the version, `parameters` its query. Raises ApiError."""
        parsed = names.parse_path(path)
        collection = parsed.collection if parsed is not None else None
        if parsed is None or collection not in (None, *KINDS, _MODELS):
            raise _elsewhere(method, path)
        if parsed.in_operations:
            return self._on_operations(method, parsed, parameters)
        if collection == _MODELS:
            return self._on_models(method, parsed, parameters, body)
        if collection is None:
            raise unimplemented(method, path)
        return self._on_jobs(method, parsed, KINDS[collection], parameters, body)

    def _on_jobs(self, method: str, path: names.Path, kind: Kind, parameters: Query, body: Body) -> dict[str, Any]:
        match method, path.id, path.verb:
            case "POST", None, None:
                query.check(parameters)
                return self.jobs.create(kind, path.location, body)
            case "GET", None, None:
                return self.jobs.page(kind, path.location, Listing.read(query.check(parameters, query.LIST)))
            case "GET", str(id_), None:
                query.check(parameters)
                return self.jobs.get(kind, path.location, id_)
            case "POST", str(id_), "cancel":
                query.check(parameters)
                return self.jobs.cancel(kind, path.location, id_)
            case "DELETE", str(id_), None:
                query.check(parameters)
                return self.jobs.delete(kind, path.location, id_)
        raise unimplemented(method, path.text)

    def _on_models(self, method: str, path: names.Path, parameters: Query, body: Body) -> dict[str, Any]:
        match method, path.id, path.verb:
            case "POST", None, "upload":
                query.check(parameters)
                return self.models.upload(path.location, body)
            case "GET", None, None:
                return self.models.page(path.location, Listing.read(query.check(parameters, query.LIST_IN_ORDER)))
            case "GET", str(id_), None:
                query.check(parameters)
                return self.models.get(path.location, id_)
            case "GET", str(id_), "listVersions":
                found = query.check(parameters, query.LIST_IN_ORDER)
                return self.models.versions(path.location, id_, Listing.read(found))
            case "DELETE", str(id_), None:
                query.check(parameters)
                return self.models.delete(path.location, id_)
        raise unimplemented(method, path.text)

    def _on_operations(self, method: str, path: names.Path, parameters: Query) -> dict[str, Any]:
        parent = path.location.name + (f"/{path.collection}/{path.id}" if path.collection else "")
        match method, path.operation, path.verb:
            case "GET", None, None:
                return self.operations.page(parent, Listing.read(query.check(parameters, query.LIST_OPERATIONS)))
            case "GET", str(id_), None:
                query.check(parameters)
                return self.operations.get(f"{parent}/operations/{id_}")
            case "POST", str(id_), "wait":
                query.check(parameters, query.WAIT)
                return self.operations.get(f"{parent}/operations/{id_}")
            case "POST", str(id_), "cancel":
                query.check(parameters)
                return self.operations.cancel(f"{parent}/operations/{id_}")
            case "DELETE", str(id_), None:
                query.check(parameters)
                return self.operations.delete(f"{parent}/operations/{id_}")
        raise unimplemented(method, path.text)


def _elsewhere(method: str, path: str) -> ApiError:
    """For a path of the API's that this emulator does not serve, or one that the API has not either."""
    served = (*KINDS, _MODELS, "operations")
    below = re.sub(r"^projects/[^/]+(/locations/[^/]+)?/", "", path)
    first, *rest = re.split("[/:]", below)
    # The discovery document also has paths without a project, verbs of projects, and a model's evaluations.
    is_verb = re.fullmatch(r"projects/[^/:]+:\w+", path) is not None
    is_elsewhere = (first in served and below == path) or (first == _MODELS and rest[1:2] == ["evaluations"])
    if first in UNSERVED or is_verb or is_elsewhere:
        return ApiError(
            "UNIMPLEMENTED", f"This emulator has no {below} ({method}); it has {', '.join(served)} (docs/fidelity.md)."
        )
    return ApiError("NOT_FOUND", f"The requested URL {path} was not found on this emulator.")


def unimplemented(method: str, path: str) -> ApiError:
    """For what the API has, or might have, and this emulator has not."""
    return ApiError(
        "UNIMPLEMENTED", f"This emulator has no method {method} {path} (docs/fidelity.md lists what it has)."
    )
