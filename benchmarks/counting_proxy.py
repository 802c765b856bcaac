"""A proxy in front of the emulator that counts the calls of its API."""

from __future__ import annotations

from collections import Counter
from urllib.parse import urlsplit

from tests.forwarding_proxy import ForwardingProxy

_COLLECTIONS = ("customJobs", "hyperparameterTuningJobs", "trainingPipelines", "operations")


class CountingProxy(ForwardingProxy):
    """Forwards to `upstream`; `calls` counts them by verb and collection."""

    def __init__(self, upstream: str) -> None:
        super().__init__(upstream)
        self.calls: Counter[str] = Counter()

    def carried(self, method: str, path: str) -> None:
        """Count a call under the name that Google's pages have for it, such as `list customJobs`."""
        parts = urlsplit(path).path.split("/")
        collection = next((part for part in parts if part.partition(":")[0] in _COLLECTIONS), None)
        custom_verb = parts[-1].partition(":")[2]
        verb = {"GET": "list" if parts[-1] == collection else "get", "POST": "create", "DELETE": "delete"}[method]
        self.calls[f"{custom_verb or verb} {collection}" if collection else f"{method} {parts[-1]}"] += 1
