"""How much a job may store by the methods of Vertex AI, whose database outlives it: by what its requests bring."""

from dataclasses import dataclass, field

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vertex_emulator.errors import ApiError

MAX_BYTES, MAX_OBJECTS = 256 << 20, 2_000_000
"""Of all requests of a job that may store something. A row is at least one object of JSON, or a request."""
_CALL_BYTES = 256
"""That a request takes beside its body, so that those without any have an end too."""
_MAX_JOBS = 10_000
WRITES = ("POST", "PATCH", "PUT", "DELETE")


@dataclass
class Stored:
    """Counts what each job brings, as long as this process runs."""

    _brought: dict[str, tuple[int, int]] = field(default_factory=dict)

    def take(self, job_id: str, size: int = _CALL_BYTES, objects: int = 1) -> None:
        """Count what a request of a job brings. Raises ApiError for too much."""
        bytes_before, objects_before = self._brought.get(job_id, (0, 0))
        brought = bytes_before + size, objects_before + objects
        if brought[0] > MAX_BYTES or brought[1] > MAX_OBJECTS:
            most = f"{MAX_BYTES >> 20} MiB or {MAX_OBJECTS:,} objects"
            raise ApiError("RESOURCE_EXHAUSTED", f"The job has stored {most} by Vertex AI's methods already.")
        if job_id not in self._brought and len(self._brought) >= _MAX_JOBS:
            self._brought.clear()
        self._brought[job_id] = brought

    def counted(self, app: ASGIApp, job_id: str) -> ASGIApp:
        """Return an application that takes the body of a request of a job within its limits."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            async def take() -> Message:
                message = await receive()
                body = message.get("body", b"")
                self.take(job_id, len(body), body.count(b"{"))
                return message

            await app(scope, take, send)

        return answer
