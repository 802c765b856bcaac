"""The queue of things to look at: deduplicating, one worker per key at a time, with one timer per key."""

import threading
import time
from collections import deque
from collections.abc import Callable


class WorkQueue:
    """Keys that wait for a look. A key that is added while it is being looked at is looked at again afterwards."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._ready: deque[str] = deque()
        self._waiting: set[str] = set()
        self._held: set[str] = set()
        self._timers: dict[str, float] = {}
        self._closed = False

    def add(self, key: str) -> None:
        """Look at `key` as soon as a worker is free."""
        with self._changed:
            if key in self._waiting:
                return
            self._waiting.add(key)
            if key not in self._held:
                self._ready.append(key)
                self._changed.notify()

    def take(self, timeout: float | None = None) -> str | None:
        """The next key, which is then held until `done`; None when the time is over or the queue is closed."""
        deadline = None if timeout is None else self._clock() + timeout
        with self._changed:
            while not self._closed:
                self._ring()
                if self._ready:
                    key = self._ready.popleft()
                    self._waiting.discard(key)
                    self._held.add(key)
                    return key
                moments = [*self._timers.values(), *([] if deadline is None else [deadline])]
                pause = min(moments) - self._clock() if moments else None
                if deadline is not None and self._clock() >= deadline:
                    return None
                self._changed.wait(pause if pause is None else max(pause, 0.0))
            return None

    def done(self, key: str, again_after: float | None = None) -> None:
        """Let go of `key`, and look at it again after some seconds unless something adds it before."""
        with self._changed:
            self._held.discard(key)
            self._timers.pop(key, None)
            if key in self._waiting:
                self._ready.append(key)
            elif again_after is not None:
                self._timers[key] = self._clock() + again_after
            self._changed.notify()

    def close(self) -> None:
        """Let every worker go."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def next_timer(self) -> float | None:
        """When the next timer is due, on the queue's clock."""
        with self._changed:
            return min(self._timers.values(), default=None)

    def _ring(self) -> None:
        now = self._clock()
        for key in [key for key, moment in self._timers.items() if moment <= now]:
            del self._timers[key]
            if key not in self._waiting:
                self._waiting.add(key)
                if key not in self._held:
                    self._ready.append(key)
