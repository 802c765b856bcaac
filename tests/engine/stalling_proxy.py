"""A stand-in for the network between the provider and the emulator: it can hold back the answer to one call."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.forwarding_proxy import ForwardingProxy


class StallingProxy(ForwardingProxy):
    """Forwards to `upstream`, all but the answer to the first `method` call whose path holds `path`.

    When that call has been made, `reached` is set; its answer waits until `release` is. `seen` are all calls so far,
    as `METHOD path`.
    """

    def __init__(self, upstream: str, method: str, path: str) -> None:
        super().__init__(upstream)
        self.seen: list[str] = []
        self.reached, self.release = threading.Event(), threading.Event()
        self.stalled = (method, path)

    @contextmanager
    def serving(self) -> Iterator[str]:
        """The proxy's URL, while it serves; the answer is let go at the end."""
        with super().serving() as url:
            try:
                yield url
            finally:
                self.release.set()

    def record_call(self, method: str, path: str) -> None:
        """Delay the answer of the one call."""
        self.seen.append(f"{method} {path.partition('?')[0]}")
        verb, part = self.stalled
        if method == verb and part in path and not self.reached.is_set():
            self.reached.set()
            self.release.wait(60)
