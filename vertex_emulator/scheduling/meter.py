"""The meter: what each running replica uses, read once a second, stored, and warned about where memory gets scarce."""

import logging
import sqlite3
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from vertex_emulator.database import Database
from vertex_emulator.database.records import Job, Replica
from vertex_emulator.database.usage import Usage
from vertex_emulator.errors import EmulatorError
from vertex_emulator.replicas import size
from vertex_emulator.replicas.containers import ReplicaStatus
from vertex_emulator.replicas.executor import Executor

NEAR_LIMIT = 0.9
_FIRST_SECONDS = 0.5
"""What ends earlier is not read, and so costs no more than without a meter."""
_STORE_SECONDS = 10.0
"""How much of its readings a killed emulator loses."""
_GIB = 1 << 30
_NOTHING = Usage()
_log = logging.getLogger("vertex_emulator.jobs")


@dataclass(frozen=True)
class Meter:
    """Follows replicas from `start` on, each in a thread of its own: the emulator's capacity bounds how many run."""

    database: Database
    executor: Executor
    _used: dict[str, dict[Replica, Usage]] = field(default_factory=dict)
    _followed: set[tuple[str, Replica]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _started: threading.Event = field(default_factory=threading.Event)
    _stopping: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Begin to follow replicas."""
        self._started.set()

    def stop(self) -> None:
        """End all readings, and store what was read."""
        self._stopping.set()
        try:
            with self._lock, self.database.write() as transaction:
                for job_id, used in self._used.items():
                    transaction.usage.put(job_id, used)
        except sqlite3.Error as error:
            _log.warning("what replicas have used since the last %g s is not stored: %s", _STORE_SECONDS, error)

    def follow(self, job_id: str, replicas: Iterable[Replica]) -> None:
        """Read what replicas use until they end, unless they are followed already."""
        if not self._started.is_set():
            return
        with self._lock:
            new = [replica for replica in replicas if (job_id, replica) not in self._followed]
            self._followed.update((job_id, replica) for replica in new)
            if new and job_id not in self._used:
                with self.database.read() as transaction:
                    self._used[job_id] = transaction.usage.of(job_id)
        for replica in new:
            name = f"meter {job_id} {replica.task_name}"
            threading.Thread(target=self._follow, args=(job_id, replica), daemon=True, name=name).start()

    def finish(self, job: Job, statuses: Mapping[Replica, ReplicaStatus]) -> Mapping[Replica, Usage]:
        """Return what a job's containers have used, which have all ended, and forget them.

        One that ran out of memory reached its limit, whether a reading saw that or not.
        """
        with self._lock:
            used = self._used.pop(job.id, {})
        for replica in [replica for replica, status in statuses.items() if status.out_of_memory]:
            known = used.get(replica, _NOTHING)
            pool = job.spec["jobSpec"]["workerPoolSpecs"][replica.pool]
            limit = known.memory_limit or size.limits(pool.get("machineSpec", {}), self.executor.host(), 0).memory
            used[replica] = replace(known, peak_memory=limit or known.peak_memory, memory_limit=limit or 0)
        return used

    def _follow(self, job_id: str, replica: Replica) -> None:
        """Follow one replica, in its thread."""
        try:
            if not self._stopping.wait(_FIRST_SECONDS) and job_id in self._used:
                self._read(job_id, replica)
        except EmulatorError as error:
            _log.info("what %s of job %s uses is not known: %s", replica.task_name, job_id, error)
        except sqlite3.Error as error:
            if not self._stopping.is_set():
                _log.warning("what %s of job %s uses is not stored: %s", replica.task_name, job_id, error)
        finally:
            with self._lock:
                self._followed.discard((job_id, replica))

    def _read(self, job_id: str, replica: Replica) -> None:
        before, is_warned, stored = _NOTHING, False, time.monotonic() - _STORE_SECONDS
        for reading in self.executor.usage(job_id, replica):
            with self._lock:
                if self._stopping.is_set() or job_id not in self._used:
                    return
                known = self._used[job_id].get(replica, _NOTHING)
                if reading.cpu < known.cpu - before.cpu:  # its container was started again in place, and counts anew
                    before = known
                usage = self._used[job_id][replica] = Usage(
                    max(known.peak_memory, reading.peak_memory),
                    reading.memory_limit,
                    before.cpu + reading.cpu,
                    before.received + reading.received,
                    before.sent + reading.sent,
                )
            is_near = usage.peak_memory >= NEAR_LIMIT * usage.memory_limit
            if time.monotonic() - stored >= _STORE_SECONDS or (is_near and not is_warned):
                stored = time.monotonic()
                with self.database.write() as transaction:
                    transaction.usage.put(job_id, {replica: usage})
                    if is_near and not is_warned and transaction.jobs.get(job_id) is not None:
                        transaction.jobs.log(job_id, near_limit(replica, usage), "WARNING")
                is_warned = is_warned or is_near


def near_limit(replica: Replica, usage: Usage) -> str:
    """Return the warning for a replica whose memory gets scarce."""
    return (
        f"{replica.task_name} uses {usage.peak_memory / _GIB:.2g} of the {usage.memory_limit / _GIB:.3g} GiB of memory "
        "that it has here: beyond that it is killed. Take a machine type with more memory, or smaller batches."
    )
