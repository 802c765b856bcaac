"""The methods on jobs that runs of schedules call, as clients call them over HTTP."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from vertex_api.names import Kind
from vertex_emulator.database import Transaction
from vertex_emulator.database.records import Job
from vertex_emulator.names import Location


class JobMethods(Protocol):
    """Creates and reads jobs. All methods raise ApiError."""

    def create(
        self, kind: Kind, location: Location, body: Mapping[str, Any], on_created: Callable[[Transaction, Job], object]
    ) -> Mapping[str, Any]:
        """Create a job and return it; `on_created` is called in the same transaction."""

    def validate_job_request(self, kind: Kind, location: Location, body: Mapping[str, Any]) -> None:
        """Raise ApiError for a request that `create` would reject."""

    def get(self, kind: Kind, location: Location, job_id: str) -> Mapping[str, Any]:
        """Return a job as GET returns it."""
