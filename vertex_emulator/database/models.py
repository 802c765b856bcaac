"""The statements on models and their versions."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import from_json

from vertex_emulator.database.records import ModelVersion
from vertex_emulator.names import Location
from vertex_emulator.times import now_ns

DEFAULT_ALIAS = "default"


class Models:
    """Valid while its transaction is open. A model is the set of its versions."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def add(
        self,
        model_id: str,
        location: Location,
        spec: Mapping[str, Any],
        aliases: Sequence[str] = (),
        pipeline: str | None = None,
    ) -> ModelVersion:
        """A new version of a model, which may be its first; an alias that another version has moves to this one."""
        others = self.list_versions(location, model_id)
        new_aliases = dict.fromkeys([*([] if others else [DEFAULT_ALIAS]), *aliases])
        for other in others:
            remaining_aliases = [alias for alias in other.aliases if alias not in new_aliases]
            if len(remaining_aliases) < len(other.aliases):
                self._set_aliases(other, remaining_aliases)
        version = max((other.version for other in others), default=0) + 1
        now = now_ns()
        self._connection.execute(
            "INSERT INTO models (id, version, project, number, region, spec, aliases, created, updated, pipeline)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                model_id,
                version,
                location.project,
                location.number,
                location.region,
                json.dumps(spec),
                json.dumps(list(new_aliases)),
                now,
                now,
                pipeline,
            ),
        )
        return self.list_versions(location, model_id)[-1]

    def list_versions(self, location: Location, model_id: str) -> list[ModelVersion]:
        """All versions of a model, the oldest first; none when there is no such model."""
        return self._select_versions(location, "AND id = ?", model_id)

    def list_all_versions(self, location: Location) -> list[ModelVersion]:
        """All versions of all models, the oldest first."""
        return self._select_versions(location)

    def delete(self, location: Location, model_id: str) -> None:
        """Forget a model with all its versions."""
        self._connection.execute(
            "DELETE FROM models WHERE number = ? AND region = ? AND id = ?",
            (location.number, location.region, model_id),
        )

    def _select_versions(self, location: Location, condition: str = "", *values: str) -> list[ModelVersion]:
        rows = self._connection.execute(
            f"SELECT * FROM models WHERE number = ? AND region = ? {condition} ORDER BY sequence",
            (location.number, location.region, *values),
        )
        return [_version(row) for row in rows]

    def _set_aliases(self, version: ModelVersion, aliases: Sequence[str]) -> None:
        self._connection.execute(
            "UPDATE models SET aliases = ?, updated = ? WHERE sequence = ?",
            (json.dumps(aliases), now_ns(), version.sequence),
        )


def _version(row: sqlite3.Row) -> ModelVersion:
    return ModelVersion(
        id=row["id"],
        version=row["version"],
        sequence=row["sequence"],
        location=Location(row["project"], row["region"]),
        spec=from_json(row["spec"]),
        aliases=tuple(from_json(row["aliases"])),
        created=row["created"],
        updated=row["updated"],
        pipeline=row["pipeline"],
    )
