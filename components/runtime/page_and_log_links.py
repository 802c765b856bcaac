"""Links to the pages of jobs and of quotas, and the commands that print logs, by target."""

from dataclasses import dataclass

from vertex_api.job_kinds import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB
from vertex_api.resource_names import ResourceName

_GCLOUD_GROUPS = {CUSTOM_JOB: "custom-jobs", HYPERPARAMETER_TUNING_JOB: "hp-tuning-jobs"}
_QUOTA_PAGE = "https://console.cloud.google.com/iam-admin/quotas"


@dataclass(frozen=True)
class EmulatorLinks:
    """The emulator's page at `url`, and its command line."""

    url: str

    def get_job_page_url(self, job_name: ResourceName) -> str:
        """Return the address of a job's page."""
        return f"{self.url}/jobs/{job_name.kind.collection}/{job_name.id}"

    def get_google_quota_page_url(self) -> str:
        """Return where to ask for more quota: the emulator injects Google's quotas and has none itself."""
        return _QUOTA_PAGE

    def get_log_command_or_pipeline_page_url(self, job_name: ResourceName) -> str:
        """Return the command that prints a job's log: every job has one."""
        return f"vertex-emulator logs {job_name.id}"


@dataclass(frozen=True)
class GoogleCloudLinks:
    """Google Cloud's console and command line."""

    project: str

    def get_job_page_url(self, job_name: ResourceName) -> str:
        """Return the address of a job's page."""
        page = f"https://console.cloud.google.com/vertex-ai/locations/{job_name.region}/training/{job_name.id}"
        return f"{page}?project={self.project}"

    def get_google_quota_page_url(self) -> str:
        """Return where to ask for more quota."""
        return f"{_QUOTA_PAGE}?project={self.project}"

    def get_log_command_or_pipeline_page_url(self, job_name: ResourceName) -> str:
        """Return the command that prints a job's log; for a pipeline, which has no log, its page."""
        if (group := _GCLOUD_GROUPS.get(job_name.kind)) is None:
            return self.get_job_page_url(job_name)
        return f"gcloud ai {group} stream-logs {job_name.id} --region={job_name.region} --project={self.project}"
