"""A project in a running emulator, with what Google's clients need to use it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vertex_emulator.cli.emulator_requests import send_request
from vertex_emulator.cli.env_command import build_environment_variables
from vertex_emulator.cli.inject_command import FAULTS_PATH
from vertex_emulator.cli.logs_command import iterate_job_log_lines
from vertex_emulator.data_folder import Endpoint, require_endpoint
from vertex_emulator.faults import InjectedFault


@dataclass(frozen=True)
class EmulatorProject:
    """A project and a region in the emulator that serves a data folder.

    Projects have jobs and models of their own; buckets and injected faults are those of all projects.
    """

    data_path: Path
    project: str = "local"
    region: str = "us-central1"

    @property
    def endpoint(self) -> str:
        """The emulator's URL, for the training API, Cloud Logging and Cloud Storage. Raises EmulatorNotRunning."""
        return self._require_running_endpoint().url

    @property
    def bucket_name(self) -> str:
        """The name of a bucket for this project alone, which the first object creates."""
        return self.project

    @property
    def bucket_folder(self) -> Path:
        """The folder of the bucket's objects on this machine, `/gcs/BUCKET` in containers."""
        return self.data_path / "gcs" / self.bucket_name

    @property
    def credentials(self) -> Any:
        """Credentials of google-auth: anonymous ones, or the emulator's token where it needs one."""
        if token := self._require_running_endpoint().read_token():
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
            "api_endpoint": self.endpoint,
            "api_transport": "rest",
            "credentials": self.credentials,
        }

    @property
    def generated_client_arguments(self) -> dict[str, Any]:
        """The arguments of generated clients such as `aiplatform_v1.JobServiceClient`."""
        return {
            "transport": "rest",
            "credentials": self.credentials,
            "client_options": {"api_endpoint": self.endpoint},
        }

    @property
    def storage_client_arguments(self) -> dict[str, Any]:
        """The arguments of `storage.Client`."""
        return {
            "project": self.project,
            "credentials": self.credentials,
            "client_options": {"api_endpoint": self.endpoint},
        }

    @property
    def environment_variables(self) -> Mapping[str, str]:
        """The variables that `vertex-emulator env` prints."""
        return build_environment_variables(self._require_running_endpoint(), self.data_path, self.project, self.region)

    def read_job_log(self, job: str, task: str | None = None) -> str:
        """Return the log of a job, given by id or full name, a line for each entry: time, severity, replica, text.

        `task` (`workerpool0-0`, `service`) selects one replica. Raises EmulatorError for an unknown job.
        """
        return "\n".join(iterate_job_log_lines(self.data_path, job, task=task))

    def inject(self, kind: str, **fields: Any) -> None:
        """Make the next jobs or requests fail; kinds and fields are those of `vertex-emulator inject --help`.

        `inject("fail", exit_code=1, replica="workerpool1-0")`. Raises InvalidFault.
        """
        fault = InjectedFault.parse({"kind": kind, **fields})
        send_request(self._require_running_endpoint(), FAULTS_PATH, fault.to_json())

    def clear_faults(self) -> None:
        """Remove the faults that no job or request has hit yet."""
        send_request(self._require_running_endpoint(), FAULTS_PATH, method="DELETE")

    def _require_running_endpoint(self) -> Endpoint:
        return require_endpoint(self.data_path)
