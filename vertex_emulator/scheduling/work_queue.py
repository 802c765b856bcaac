"""A work queue without duplicates: one worker per key at a time, and one timer per key."""

import threading
import time
from collections import deque
from collections.abc import Callable


class WorkQueue:
    """Keys to process. A key that is added while a worker processes it is processed again afterwards."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._ready: deque[str] = deque()
        self._waiting: set[str] = set()
        self._in_progress: set[str] = set()
        self._timers: dict[str, float] = {}
        self._closed = False

    def add(self, key: str) -> None:
        """Queue `key` for the next free worker."""
        with self._changed:
            self._enqueue(key)
            self._changed.notify()

    def reserve_next_key_or_none(self, timeout: float | None = None) -> str | None:
        """Return the next key, reserved until `release`; None after `timeout` seconds or once the queue is closed."""
        deadline = None if timeout is None else self._clock() + timeout
        with self._changed:
            while not self._closed:
                self._enqueue_due_keys()
                if self._ready:
                    key = self._ready.popleft()
                    self._waiting.discard(key)
                    self._in_progress.add(key)
                    return key
                moments = [*self._timers.values(), *([] if deadline is None else [deadline])]
                pause = min(moments) - self._clock() if moments else None
                if deadline is not None and self._clock() >= deadline:
                    return None
                self._changed.wait(pause if pause is None else max(pause, 0.0))
            return None

    def release(self, key: str, delay: float | None = None) -> None:
        """Release `key`, and queue it again after `delay` seconds unless something adds it before."""
        with self._changed:
            self._in_progress.discard(key)
            self._timers.pop(key, None)
            if key in self._waiting:
                self._ready.append(key)
            elif delay is not None:
                self._timers[key] = self._clock() + delay
            self._changed.notify()

    def close(self) -> None:
        """Close the queue, so that every `reserve_next_key_or_none` returns None."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _enqueue_due_keys(self) -> None:
        now = self._clock()
        for key in [key for key, moment in self._timers.items() if moment <= now]:
            del self._timers[key]
            self._enqueue(key)

    def _enqueue(self, key: str) -> None:
        if key not in self._waiting:
            self._waiting.add(key)
            if key not in self._in_progress:
                self._ready.append(key)
