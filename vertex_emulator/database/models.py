"""Models and their versions, also the choice of an uploaded model's id; and the operations of all resources."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pydantic_core import from_json

from vertex_emulator.database.records import ModelVersion, Operation, Table
from vertex_emulator.errors import ModelUploadRejected
from vertex_emulator.names import Location, new_id, parse_model
from vertex_emulator.times import now_ns

DEFAULT_ALIAS = "default"
_NO_FIELDS: Mapping[str, Any] = {}
_EMPTY_RESPONSE = {"@type": "type.googleapis.com/google.protobuf.Empty"}


class Models(Table):
    """The statements on models; a model is the set of its versions."""

    def versions(self, location: Location, model_id: str | None = None) -> list[ModelVersion]:
        """List all versions of a model or, without an id, of all models, the oldest first."""
        query = "SELECT * FROM models WHERE number = ? AND region = ? AND id = coalesce(?, id) ORDER BY sequence"
        rows = self._connection.execute(query, (location.project_number, location.region, model_id))
        return [_parse_version(row) for row in rows]

    def iterate(self) -> Iterator[ModelVersion]:
        """Yield all versions of all models of every location, the oldest first."""
        return map(_parse_version, self._connection.execute("SELECT * FROM models ORDER BY sequence"))

    def choose_id(self, location: Location, request: Mapping[str, Any]) -> str:
        """Choose the id of an uploaded model: that of `parentModel` (a resource name), `modelId`, or a new one.

        `request` is an UploadModelRequest or a TrainingPipeline. Raises ModelUploadRejected: NOT_FOUND if the parent
        does not exist, ALREADY_EXISTS if `modelId` is taken.
        """
        model_id, parent = request.get("modelId", ""), request.get("parentModel", "")
        place = location.name
        if parent:
            parsed = parse_model(parent)
            if parsed is None or parsed[0].name != place:
                raise ModelUploadRejected("NOT_FOUND", f'The parent model "{parent}" is no model of {place}.')
            parent_id = parsed[1].partition("@")[0]
            if not self.versions(location, parent_id):
                raise ModelUploadRejected("NOT_FOUND", f'The Model "{place}/models/{parent_id}" does not exist.')
            return parent_id
        if model_id and self.versions(location, model_id):
            raise ModelUploadRejected("ALREADY_EXISTS", f"The Model {place}/models/{model_id} already exists.")
        return model_id or new_id()

    def upload(
        self, location: Location, request: Mapping[str, Any], model: Mapping[str, Any], pipeline: str | None
    ) -> ModelVersion:
        """Add a canonical Model as a version, perhaps its first; an alias that another version has moves to this one.

        `pipeline` is the resource name of the training pipeline that uploads it, if any. `request` is as in
        `choose_id`. Raises ModelUploadRejected.
        """
        model_id = self.choose_id(location, request)
        others = self.versions(location, model_id)
        aliases = dict.fromkeys([*model.get("versionAliases", []), *([] if others else [DEFAULT_ALIAS])])
        now = now_ns()
        for other in others:
            remaining = [alias for alias in other.aliases if alias not in aliases]
            if len(remaining) < len(other.aliases):
                self._change(other, aliases=remaining)
        self._insert(
            "models",
            id=model_id,
            version=max((other.version for other in others), default=0) + 1,
            **location.columns(),
            spec={name: value for name, value in model.items() if name not in ("name", "versionAliases", "etag")},
            aliases=[*aliases],
            created=now,
            updated=now,
            pipeline=pipeline,
        )
        return self.versions(location, model_id)[-1]

    def set_aliases(self, version: ModelVersion, aliases: Sequence[str]) -> None:
        """Set the aliases of a version, and take them from the other versions of its model."""
        for each in self.versions(version.location, version.id):
            is_other = each.sequence != version.sequence
            theirs = [alias for alias in each.aliases if alias not in aliases] if is_other else [*aliases]
            if tuple(theirs) != each.aliases:
                self._change(each, aliases=theirs)

    def set_spec(self, version: ModelVersion, spec: Mapping[str, Any]) -> None:
        """Set the fields of a version."""
        self._change(version, spec=spec)

    def _change(self, version: ModelVersion, **column: Any) -> None:
        self._update("models", {"sequence": version.sequence}, **column, updated=now_ns())

    def delete_version(self, version: ModelVersion) -> None:
        """Delete a version of a model."""
        self._connection.execute("DELETE FROM models WHERE sequence = ?", (version.sequence,))

    def delete(self, location: Location, model_id: str) -> None:
        """Delete a model with all its versions."""
        query = "DELETE FROM models WHERE number = ? AND region = ? AND id = ?"
        self._connection.execute(query, (location.project_number, location.region, model_id))


def _parse_version(row: sqlite3.Row) -> ModelVersion:
    return ModelVersion(
        **{name: row[name] for name in ("id", "version", "sequence", "created", "updated", "pipeline")},
        location=Location(row["project"], row["region"]),
        spec=from_json(row["spec"]),
        aliases=tuple(from_json(row["aliases"])),
    )


class Operations(Table):
    """The statements on operations, all of which are finished: the emulator does the work before it replies."""

    def add(
        self,
        parent: str,
        metadata_type: str,
        response: Mapping[str, Any] = _EMPTY_RESPONSE,
        metadata: Mapping[str, Any] = _NO_FIELDS,
    ) -> Operation:
        """Store a finished operation on the resource of that name; `response` is its Any, with its `@type`."""
        operation = Operation(f"{parent}/operations/{new_id()}", now_ns(), metadata_type, metadata, response)
        self._insert("operations", **asdict(operation))
        return operation

    def get(self, name: str) -> Operation | None:
        """Return an operation by its full name; None if it does not exist."""
        row = self._first("SELECT * FROM operations WHERE name = ?", name)
        return _parse_operation(row) if row else None

    def under(self, parent: str) -> Iterator[Operation]:
        """Yield the operations of a resource, or of a location and all resources in it, the newest first."""
        query = "SELECT * FROM operations WHERE substr(name, 1, ?) = ? ORDER BY created DESC, name DESC"
        return map(_parse_operation, self._connection.execute(query, (len(parent) + 1, f"{parent}/")))

    def delete(self, name: str) -> bool:
        """Delete an operation. Return False if it does not exist."""
        return self._connection.execute("DELETE FROM operations WHERE name = ?", (name,)).rowcount > 0

    def count_old(self, ended_before: int) -> int:
        """Count the operations that ended before a time."""
        query = "SELECT count(*) FROM operations WHERE created < ?"
        return int(self._connection.execute(query, (ended_before,)).fetchone()[0])

    def delete_old(self, ended_before: int) -> None:
        """Delete the operations that ended before a time."""
        self._connection.execute("DELETE FROM operations WHERE created < ?", (ended_before,))


def _parse_operation(row: sqlite3.Row) -> Operation:
    return Operation(**{**row, **{field: from_json(row[field]) for field in ("metadata", "response")}})
