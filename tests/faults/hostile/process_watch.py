"""The memory, descriptors, threads and processor time of a process, watched while it works."""

import contextlib
import threading
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from tests.vertex_emulator.running import processor_seconds, resident_bytes

_SECONDS_BETWEEN_SAMPLES = 0.1


@dataclass(frozen=True)
class Sample:
    """`cpu` are seconds of the processor so far, `waits` those that each thread was ready and had no processor."""

    at: float
    cpu: float
    waits: dict[str, float]


class ProcessWatch:
    """The largest values that a process has had since the start of the watch."""

    def __init__(self, pid: int) -> None:
        self._folder = Path(f"/proc/{pid}")
        self._pid = pid
        self.max_resident_bytes = self.max_descriptors = self.max_threads = 0
        self._samples: deque[Sample] = deque(maxlen=1200)
        self._is_over = threading.Event()
        self._take_sample()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()

    def count_descriptors(self) -> int:
        return sum(1 for _ in (self._folder / "fd").iterdir())

    def list_open_files(self) -> list[str]:
        """What each descriptor names."""
        found = []
        for descriptor in (self._folder / "fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                found.append(str(descriptor.readlink()).partition(":")[0])
        return found

    def measure_cpu_and_wait_since(self, start: float) -> tuple[float, float]:
        """Seconds of the processor since a time, and those that one of the threads had to wait for a processor."""
        self._take_sample()
        samples = list(self._samples)
        first = next((each for each in reversed(samples) if each.at <= start), samples[0])
        last = samples[-1]
        waits = [last.waits[thread] - first.waits.get(thread, 0.0) for thread in last.waits]
        return last.cpu - first.cpu, max(waits, default=0.0)

    def _watch(self) -> None:
        while not self._is_over.wait(_SECONDS_BETWEEN_SAMPLES):
            try:
                self._take_sample()
            except (FileNotFoundError, ProcessLookupError):
                return

    def _take_sample(self) -> None:
        waits = {}
        for thread in (path.name for path in (self._folder / "task").iterdir()):
            try:
                waits[thread] = int((self._folder / "task" / thread / "schedstat").read_text().split()[1]) / 1e9
            except (FileNotFoundError, ProcessLookupError):
                continue
        self._samples.append(Sample(monotonic(), processor_seconds(self._pid), waits))
        self.max_resident_bytes = max(self.max_resident_bytes, resident_bytes(self._pid))
        self.max_descriptors = max(self.max_descriptors, self.count_descriptors())
        self.max_threads = max(self.max_threads, len(waits))
