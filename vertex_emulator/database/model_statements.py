"""The statements on models and their versions, also the choice of an uploaded model's id."""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic_core import from_json

from vertex_emulator.database.records import ModelVersion
from vertex_emulator.database.statement_base import Statements
from vertex_emulator.errors import ModelUploadRejected
from vertex_emulator.names import Location, new_id, parse_model
from vertex_emulator.times import now_ns

DEFAULT_ALIAS = "default"


class Models(Statements):
    """The statements on models; a model is the set of its versions."""

    def require_or_generate_id(self, location: Location, request: Mapping[str, Any]) -> str:
        """Choose the id of an uploaded model: that of `parentModel` (a resource name), `modelId`, or a new one.

        `request` is an UploadModelRequest or a TrainingPipeline. Raises ModelUploadRejected: NOT_FOUND if the parent
        does not exist, ALREADY_EXISTS if `modelId` is taken.
        """
        model_id, parent_model = request.get("modelId", ""), request.get("parentModel", "")
        location_name = location.name
        if parent_model:
            parsed = parse_model(parent_model)
            if parsed is None or parsed[0].name != location_name:
                raise ModelUploadRejected(
                    "NOT_FOUND", f'The parent model "{parent_model}" is no model of {location_name}.'
                )
            parent_id = parsed[1].partition("@")[0]
            if not self.list_versions(location, parent_id):
                raise ModelUploadRejected(
                    "NOT_FOUND", f'The Model "{location_name}/models/{parent_id}" does not exist.'
                )
            return parent_id
        if model_id and self.list_versions(location, model_id):
            raise ModelUploadRejected("ALREADY_EXISTS", f"The Model {location_name}/models/{model_id} already exists.")
        return model_id or new_id()

    def add_uploaded_version(
        self,
        location: Location,
        request: Mapping[str, Any],
        model: Mapping[str, Any],
        pipeline_name: str | None,
    ) -> ModelVersion:
        """Store a canonical Model as a new version.

        `pipeline_name` is the resource name of the training pipeline that uploads it, if any. `request` is
        as in `require_or_generate_id`. Raises ModelUploadRejected.
        """
        fields = {name: value for name, value in model.items() if name not in ("name", "versionAliases", "etag")}
        model_id = self.require_or_generate_id(location, request)
        return self.add_version_and_move_aliases(
            model_id, location, fields, model.get("versionAliases", []), pipeline_name
        )

    def add_version_and_move_aliases(
        self, model_id: str, location: Location, spec: Mapping[str, Any], aliases: Sequence[str], pipeline: str | None
    ) -> ModelVersion:
        """Add a version of a model, perhaps its first; an alias that another version has moves to this one."""
        others = self.list_versions(location, model_id)
        new_aliases = list(dict.fromkeys([*([] if others else [DEFAULT_ALIAS]), *aliases]))
        now = now_ns()
        for other in others:
            remaining_aliases = [alias for alias in other.aliases if alias not in new_aliases]
            if len(remaining_aliases) < len(other.aliases):
                self._update_column_and_time(other, aliases=remaining_aliases)
        self._insert_row(
            "models",
            id=model_id,
            version=max((other.version for other in others), default=0) + 1,
            **location.columns(),
            spec=spec,
            aliases=new_aliases,
            created=now,
            updated=now,
            pipeline=pipeline,
        )
        return self.list_versions(location, model_id)[-1]

    def set_aliases_and_remove_from_siblings(self, version: ModelVersion, aliases: Sequence[str]) -> None:
        """Set the aliases of a version, and take them from the other versions of its model."""
        for other in self.list_versions(version.location, version.id):
            theirs = [*aliases] if other.sequence == version.sequence else list(other.aliases)
            if other.sequence != version.sequence:
                theirs = [alias for alias in theirs if alias not in aliases]
            if tuple(theirs) != other.aliases:
                self._update_column_and_time(other, aliases=theirs)

    def set_spec(self, version: ModelVersion, spec: Mapping[str, Any]) -> None:
        """Set the fields of a version."""
        self._update_column_and_time(version, spec=spec)

    def delete_version(self, version: ModelVersion) -> None:
        """Delete a version of a model."""
        self._connection.execute("DELETE FROM models WHERE sequence = ?", (version.sequence,))

    def _update_column_and_time(self, version: ModelVersion, **column: Any) -> None:
        ((name, value),) = column.items()
        statement = f"UPDATE models SET {name} = ?, updated = ? WHERE sequence = ?"
        self._connection.execute(statement, (json.dumps(value), now_ns(), version.sequence))

    def list_versions(self, location: Location, model_id: str | None = None) -> list[ModelVersion]:
        """List all versions of a model or, without an id, of all models, the oldest first."""
        query = "SELECT * FROM models WHERE number = ? AND region = ? AND id = coalesce(?, id) ORDER BY sequence"
        rows = self._connection.execute(query, (location.project_number, location.region, model_id))
        return [_parse_version(row) for row in rows]

    def iterate_all_versions(self) -> Iterator[ModelVersion]:
        """Yield all versions of all models of every location, the oldest first."""
        return map(_parse_version, self._connection.execute("SELECT * FROM models ORDER BY sequence"))

    def delete_model(self, location: Location, model_id: str) -> None:
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
