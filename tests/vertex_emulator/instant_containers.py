"""A double of Docker for real emulator processes: containers that succeed at once, as files that outlive a kill."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from vertex_emulator import server
from vertex_emulator.database.records import Replica
from vertex_emulator.replicas.containers import ReplicaStatus
from vertex_emulator.replicas.executor import Executor
from vertex_emulator.replicas.logs import LogLine
from vertex_emulator.replicas.spec import ReplicaSpec

_SECOND = 10**9


def use_instant_containers(folder: Path) -> None:
    """Let the emulator of this process run replicas as files of a folder."""
    folder.mkdir(exist_ok=True)

    class InstantContainers(Executor):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self._exited: SimpleQueue[str] = SimpleQueue()

        def ensure_image(self, _job_id: str, _image: str) -> bool:
            return True

        def start(self, spec: ReplicaSpec) -> None:
            path = folder / f"{spec.job}.{spec.replica.pool}.{spec.replica.index}.{spec.replica.attempt}"
            with path.open("a") as file:
                if file.tell() == 0:
                    file.write(f"{spec.environment['AIP_MODEL_DIR']}\n")
                    file.flush()
                    os.fsync(file.fileno())
            self._exited.put(spec.job)

        def statuses(self, job_id: str) -> Mapping[Replica, ReplicaStatus]:
            ended = ReplicaStatus("exited", started=_SECOND, finished=2 * _SECOND)
            return {Replica(*map(int, path.name.split(".")[1:])): ended for path in folder.glob(f"{job_id}.*")}

        def read_log(self, _job_id: str, _replica: Replica, _since_ns: int = 0) -> Iterator[LogLine]:
            return iter(())

        def log_limit(self, _job_id: str, _replica: Replica) -> int | None:
            return None

        def remains(self, _job_id: str, _replica: Replica) -> None:
            return None

        def remove(self, job_id: str) -> None:
            for path in folder.glob(f"{job_id}.*"):
                path.rename(folder / f"removed.{path.name}")

        def job_ids(self) -> set[str]:
            return {path.name.split(".")[0] for path in folder.iterdir() if not path.name.startswith("removed.")}

        def watch(self, on_begin: Callable[[], None]) -> Iterator[str]:
            on_begin()
            while True:
                yield self._exited.get()

    server.Executor = InstantContainers  # type: ignore[misc]
