"""An emulator for as long as a block of code runs, and a project in it with what Google's clients need to use it."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vertex_api.emulator import Address
from vertex_emulator.cli import emulator, environment
from vertex_emulator.cli.logs import JobLog
from vertex_emulator.data_folder import DataFolder, require_endpoint
from vertex_emulator.faults import InjectedFault, describe_fault
from vertex_emulator.inside.authority import Authority
from vertex_emulator.pruning import clear
from vertex_emulator.removal import remove_tree


@contextmanager
def run_emulator(data_path: Path | None = None) -> "Iterator[EmulatorProject]":
    """Run an emulator for the block; afterwards, stop it and remove its containers.

        with run_emulator() as emulator:
            aiplatform.init(**emulator.aiplatform_init_arguments)

    Its data folder is `data_path`, whose buckets stay, or a temporary one. Raises StartError if it does not start,
    without Docker for example, and EmulatorError if it does not stop.
    """
    folder = Path(tempfile.mkdtemp(prefix="vertex-emulator-")) if data_path is None else data_path.absolute()
    try:
        started = emulator.start(folder)
        try:
            with trusting(folder):
                yield EmulatorProject(folder)
        finally:
            if started.process is not None:
                emulator.stop(folder)
                started.process.wait()
                clear(folder)
    finally:
        if data_path is None:
            # Files that containers have written as root stay where this user may not remove them.
            with suppress(OSError):
                remove_tree(folder)


_ROOTS: list[bytes] = []


@contextmanager
def trusting(data_path: Path) -> Iterator[None]:
    """Let Google's clients in this process trust the certificate of an emulator over gRPC for the block.

    gRPC reads the variable for it once, so a process that has called anybody else would not trust it any more.
    """
    import grpc

    given = grpc.compute_engine_channel_credentials  # what Google's clients call, wherever they run

    def trusted(call_credentials: Any) -> Any:
        return grpc.composite_channel_credentials(grpc.ssl_channel_credentials(b"".join(_ROOTS)), call_credentials)

    data = DataFolder(data_path)
    roots = Authority(data.certificate, data.trusted).bundle().read_bytes()
    _ROOTS.append(roots)
    grpc.compute_engine_channel_credentials = trusted
    try:
        yield
    finally:
        grpc.compute_engine_channel_credentials = given
        _ROOTS.remove(roots)


@dataclass(frozen=True)
class EmulatorProject:
    """A project and a region in the emulator that serves a data folder.

    Projects have jobs and models of their own; buckets and injected faults are those of all projects.
    """

    data_path: Path
    """The data folder."""
    project: str = "local"
    """The project; with the fixture, one of the test's own."""
    region: str = "us-central1"
    """The region."""

    @property
    def endpoint(self) -> str:
        """The emulator's URL, for the training API, Cloud Logging and Cloud Storage."""
        return self._endpoint.url

    @property
    def bucket_name(self) -> str:
        """The name of a bucket for this project alone, which the fixture makes, else the first object."""
        return self.project

    @property
    def bucket_folder(self) -> Path:
        """The folder of that bucket's objects on this machine, `/gcs/BUCKET` in containers."""
        return self.data_path / "gcs" / self.bucket_name

    @property
    def credentials(self) -> Any:
        """Credentials of google-auth: anonymous ones, or the emulator's token where it needs one."""
        if token := emulator.token(self._endpoint):
            from google.oauth2.credentials import Credentials

            return Credentials(token)
        from google.auth.credentials import AnonymousCredentials

        return AnonymousCredentials()

    @property
    def aiplatform_init_arguments(self) -> dict[str, Any]:
        """The arguments of `aiplatform.init`."""
        return {
            "project": self.project,
            "location": self.region,
            "staging_bucket": f"gs://{self.bucket_name}",
            "credentials": self.credentials,
            **environment.sdk_endpoint(self._endpoint),
        }

    @property
    def generated_client_arguments(self) -> dict[str, Any]:
        """The arguments of generated clients, such as `aiplatform_v1.JobServiceClient`."""
        found = environment.sdk_endpoint(self._endpoint)
        return {
            "credentials": self.credentials,
            "client_options": {"api_endpoint": found["api_endpoint"]},
            **({"transport": "rest"} if "api_transport" in found else {}),
        }

    @property
    def storage_client_arguments(self) -> dict[str, Any]:
        """The arguments of `storage.Client`, which needs none on Linux while `environment_variables` are set."""
        return {
            "project": self.project,
            "credentials": self.credentials,
            "client_options": {"api_endpoint": self.endpoint},
        }

    @property
    def environment_variables(self) -> Mapping[str, str]:
        """The variables that `vertex-emulator env` prints."""
        return environment.variables(self._endpoint, self.data_path, self.project, self.region)

    def read_job_log(self, job: str, task: str | None = None) -> str:
        """Return the log of a job, a line for each entry: time, severity, replica, text.

        `job` is its id or a name (such as `job.resource_name` of Google's SDK). `task` selects one replica, such as
        `workerpool0-0`, or `service`. Raises EmulatorError for an unknown job.
        """
        return "\n".join(JobLog(self.data_path, job, task).read())

    def failed_job_logs(self, since: float) -> dict[str, str]:
        """Return the logs, by id, of jobs of any project that have failed, and were created since a `time.time()`."""
        return {id_: self.read_job_log(id_) for id_ in environment.failed_jobs(self._endpoint, int(since * 1e9))}

    def inject(self, kind: str, **fields: Any) -> None:
        """Make the next jobs or requests fail as the service's do; the kinds and fields of `vertex-emulator inject`.

        `inject("fail", exit_code=1, replica="workerpool1-0")`. With the fixture, faults end with the test. Raises
        InvalidFault.
        """
        fault = InjectedFault.parse({"kind": kind, **fields})
        emulator.send(self._endpoint, emulator.FAULTS_PATH, fault.to_json())

    def clear_faults(self) -> list[str]:
        """Remove the pending faults, and describe those that have hit nothing."""
        done = emulator.send(self._endpoint, emulator.FAULTS_PATH, method="DELETE")
        return [describe_fault(each, each.get("count", 1)) for each in done.get("missed", ())]

    @property
    def _endpoint(self) -> Address:
        return require_endpoint(self.data_path)
