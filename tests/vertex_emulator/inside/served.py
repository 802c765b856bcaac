"""The door on a loopback address, in front of the emulator's own application; who connects is what a test says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

from tests.vertex_emulator.fakes import Clock, Machine
from tests.vertex_emulator.jobs import LOCATION, custom_job_spec
from tests.vertex_emulator.running import PATIENCE_SECONDS
from vertex_api.names import CUSTOM_JOB
from vertex_emulator import server
from vertex_emulator.api.routes import Api
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database
from vertex_emulator.database.records import RUNNING, SUCCEEDED, Job, Replica
from vertex_emulator.errors import ExecutorUnavailable
from vertex_emulator.inside.authority import Authority
from vertex_emulator.inside.door import Door
from vertex_emulator.inside.entries import EntryWriter
from vertex_emulator.inside.identity import Identities
from vertex_emulator.inside.permissions import Permissions
from vertex_emulator.inside.standins import StandIns
from vertex_emulator.names import Location
from vertex_emulator.rpc.relay import Translator
from vertex_emulator.secrets import SecretValues

OTHER = Location("other-project", "us-central1")
FLAVOR = {"Metadata-Flavor": "Google"}


@dataclass
class Network(Machine):
    """A machine on which every connection is that of one container, or of none."""

    clock: Clock = field(default_factory=Clock)
    caller: tuple[str, Replica] | None = None
    led: dict[str, dict[int, int]] = field(default_factory=dict)

    def gateway(self) -> str:
        return "127.0.0.1"

    def lead_home(self, host: str, ports: dict[int, int]) -> None:
        self.led[host] = ports

    def set_rules(self) -> str | None:
        self._reach()
        return self.obstacle

    def replica_at(self, address: str) -> tuple[str, Replica] | None:
        if self.is_down:
            raise ExecutorUnavailable("Docker does not answer: it is down")
        return self.caller if address == "127.0.0.1" else None


class ServedDoor:
    """A door, its data folder, and requests of containers."""

    def __init__(self, root: Path, secrets: dict[str, dict[str, str]] | None = None) -> None:
        self.data = DataFolder.open(root)
        if secrets:
            self.data.secrets.write_text(json.dumps(secrets))
        self.database, self.network = Database(self.data.database), Network()
        executor: Any = self.network
        api = Api(self.database, executor, self.data, 4, lambda _job: None, "http://here")
        app = server._App(api).asgi()
        values, stand_ins = SecretValues(self.data.secrets), StandIns(self.data.stand_ins)
        entries = EntryWriter(self.database)
        authority = Authority(self.data.certificate, self.data.trusted)
        secret, buckets, translator = "a token of the emulator", self.data.buckets, Translator("http://here")
        acting = Identities(self.data.identities)
        self.door = Door(
            self.database,
            executor,
            values,
            stand_ins,
            acting,
            entries,
            secret,
            1024,
            app,
            buckets,
            authority,
            translator,
            Permissions(self.database, self.data.grants),
        )

    def close(self) -> None:
        self.door.stop(PATIENCE_SECONDS)
        self.database.close()

    def job(
        self, job_id: str, location: Location = LOCATION, pools: Sequence[dict[str, Any]] = (), **job_spec: Any
    ) -> Job:
        """A new job that runs."""
        with self.database.write() as transaction:
            job = transaction.jobs.add(job_id, CUSTOM_JOB, location, custom_job_spec(*pools, **job_spec))
            return transaction.jobs.update(job, state=RUNNING)

    def end(self, job: Job) -> None:
        with self.database.write() as transaction:
            transaction.jobs.update(job, state=SUCCEEDED)

    def messages(self, job: Job) -> list[tuple[str, str]]:
        """Severity and text of what was written into a job's log."""
        with self.database.read() as transaction:
            return [(each.severity, each.text) for each in transaction.jobs.messages(job.id)]

    def variables(self, job: Job) -> dict[str, str]:
        """What a job's containers get, which are the callers from here on."""
        self.network.caller = job.id, Replica(0, 0)
        return dict(self.door.home(job).variables)

    def ask(self, job: Job | None, path: str, method: str = "GET", **options: Any) -> requests.Response:
        """A request of a container of a job, or of somebody else, on a connection of its own."""
        self.network.caller = (job.id, Replica(0, 0)) if job else None
        self._url = getattr(self, "_url", None) or self.door.home(self.job("0")).variables["STORAGE_EMULATOR_HOST"]
        with requests.Session() as session:
            session.trust_env = False
            return session.request(method, self._url + path, allow_redirects=False, **options)

    def metadata(self, job: Job | None, path: str, **options: Any) -> requests.Response:
        """A request to the metadata server, with its header."""
        return self.ask(job, f"/computeMetadata/v1/{path}", headers=FLAVOR, **options)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}
