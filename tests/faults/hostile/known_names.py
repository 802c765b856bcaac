"""Names that exist or existed, which requests use."""

from dataclasses import dataclass, field
from typing import Any

from tests.vertex_emulator.running import PARENT

_KEPT = 200


@dataclass
class KnownNames:
    """Names of jobs, uploads and pages, as the replies tell them."""

    jobs: list[str] = field(default_factory=lambda: [f"{PARENT}/customJobs/1"])
    uploads: list[str] = field(default_factory=lambda: ["0" * 32])
    tokens: list[str] = field(default_factory=lambda: [""])

    def learn(self, upload: str | None, reply: Any) -> None:
        """Take up the id of an upload, and what a reply names."""
        if upload:
            _keep(self.uploads, upload)
        if not isinstance(reply, dict):
            return
        if isinstance(token := reply.get("nextPageToken"), str):
            _keep(self.tokens, token)
        if str(name := reply.get("name", "")).startswith("projects/"):
            _keep(self.jobs, name)


def _keep(names: list[str], name: str) -> None:
    names.append(name)
    del names[:-_KEPT]
