"""What happened under a hostile load, and which promises were broken."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.faults.hostile.process_watch import ProcessWatch

MAX_RESIDENT_BYTES = 400 << 20
MAX_THREADS, MAX_DESCRIPTORS = 80, 400
STOP_SECONDS = 5.0
_SHOWN_SLOW = 40


@dataclass
class Report:
    """Requests by class of status, jobs by outcome, largest values, slow answers, and in `wrong` broken promises."""

    statuses: Counter[str] = field(default_factory=Counter)
    jobs: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    slow: list[str] = field(default_factory=list)
    max_seconds: float = 0.0
    max_health_seconds: float = 0.0
    stop_seconds: float = 0.0
    max_resident_bytes: int = 0
    max_threads: int = 0
    max_descriptors: int = 0

    def take_sizes(self, watch: ProcessWatch) -> None:
        """Take the largest sizes of the process, and check them."""
        self.max_resident_bytes = watch.max_resident_bytes
        self.max_threads, self.max_descriptors = watch.max_threads, watch.max_descriptors
        for value, limit, unit in (
            (self.max_resident_bytes, MAX_RESIDENT_BYTES, "bytes of memory"),
            (self.max_threads, MAX_THREADS, "threads"),
            (self.max_descriptors, MAX_DESCRIPTORS, "descriptors"),
        ):
            if value > limit:
                self.wrong.append(f"{value} {unit}, more than {limit}")

    def take_stop(self, seconds: float) -> None:
        """Take how long the process took to end after SIGTERM, and check it."""
        self.stop_seconds = seconds
        if seconds > STOP_SECONDS:
            self.wrong.append(f"SIGTERM took {seconds:.1f} s")

    def render_lines(self) -> Iterator[str]:
        """Yield the report for people."""
        yield f"{sum(self.statuses.values())} requests: {dict(sorted(self.statuses.items()))}"
        yield f"{sum(self.jobs.values())} jobs: {dict(sorted(self.jobs.items()))}"
        yield f"slowest answer {self.max_seconds:.2f} s, of /healthz {self.max_health_seconds:.2f} s"
        sizes = f"{self.max_threads} threads, {self.max_descriptors} descriptors"
        yield f"at most {self.max_resident_bytes >> 20} MB, {sizes}; SIGTERM heeded in {self.stop_seconds:.1f} s"
        yield from (f"SLOW {line}" for line in self.slow[-_SHOWN_SLOW:])
        yield from (f"WRONG {line}" for line in self.wrong)
        yield "something is wrong" if self.wrong else "all promises were kept"
