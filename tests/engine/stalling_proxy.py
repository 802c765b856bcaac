"""A stand-in for the network between the provider and the emulator: it can hold back the answers to some calls."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.forwarding_proxy import ForwardingProxy
from tests.vertex_emulator.running import PATIENCE_SECONDS


class StallingProxy(ForwardingProxy):
    """Forwards to `upstream`, all but the answers to the first `calls` of `method` whose path holds `path`.

    When so many have been made, `reached` is set; their answers wait until `release` is. `seen` are all calls so far,
    as `METHOD path`.
    """

    def __init__(self, upstream: str, method: str, path: str, calls: int = 1) -> None:
        super().__init__(upstream)
        self.seen: list[str] = []
        self.reached, self.release = threading.Event(), threading.Event()
        self.stalled = (method, path)
        self.calls = calls
        self._counting = threading.Lock()

    @contextmanager
    def serving(self) -> Iterator[str]:
        """The proxy's URL, while it serves; the answers are let go at the end."""
        with super().serving() as url:
            try:
                yield url
            finally:
                self.release.set()

    def record_call(self, method: str, path: str) -> None:
        """Delay the answer of a call that is to be stalled."""
        self.seen.append(f"{method} {path.partition('?')[0]}")
        verb, part = self.stalled
        if method != verb or part not in path:
            return
        with self._counting:
            self.calls -= 1
            is_stalled = self.calls >= 0
            if self.calls == 0:
                self.reached.set()
        if is_stalled:
            self.release.wait(PATIENCE_SECONDS)
