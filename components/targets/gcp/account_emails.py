"""The e-mails of service accounts, and of the service agents with which Google's services act in a project.

Those of agents depend on the project's number alone (Google's page on Vertex AI service agents), so a preview shows
every grant.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class ServiceAgentMembers:
    """The service agents of the project with this number, as IAM members."""

    project_number: str

    @property
    def vertex(self) -> str:
        """The Vertex AI Service Agent, which manages jobs, uses keys and peers DNS zones."""
        return self._format_member("gcp-sa-aiplatform")

    @property
    def custom_code(self) -> str:
        """The Custom Code Service Agent, which pulls training images and runs jobs without an account of their own."""
        return self._format_member("gcp-sa-aiplatform-cc")

    @property
    def legacy_ai_platform_training(self) -> str:
        """The agent of AI Platform Training, which still reads older images in Container Registry."""
        return f"serviceAccount:service-{self.project_number}@cloud-ml.google.com.iam.gserviceaccount.com"

    @property
    def artifact_registry(self) -> str:
        """The agent of Artifact Registry, which encrypts repositories."""
        return self._format_member("gcp-sa-artifactregistry")

    @property
    def storage(self) -> str:
        """The agent of Cloud Storage, which encrypts buckets."""
        return self._format_member("gs-project-accounts")

    @property
    def workflows(self) -> str:
        """The agent of Workflows, which runs workflows as their accounts."""
        return self._format_member("gcp-sa-workflows")

    @property
    def image_readers_by_name(self) -> dict[str, str]:
        """Both agents that need to read training images, by a short name (vertex-ai-samples#2176)."""
        return {"vertex": self.vertex, "custom-code": self.custom_code}

    def _format_member(self, agent_domain: str) -> str:
        return f"serviceAccount:service-{self.project_number}@{agent_domain}.iam.gserviceaccount.com"


def build_account_email(account_id: str, project: str) -> str:
    """Return the e-mail of a project's account. Of a domain's project `d:p` it has `p.d` (IAM's page on accounts)."""
    return f"{account_id}@{_build_email_project_part(project)}.iam.gserviceaccount.com"


def is_account_of_project(email: str, project: str, project_number: str) -> bool:
    """Whether an account belongs to a project: one of its own, or the default one of Compute Engine or App Engine."""
    part = _build_email_project_part(project)
    return email.partition("@")[2] == f"{part}.iam.gserviceaccount.com" or email in (
        f"{project_number}-compute@developer.gserviceaccount.com",
        f"{part}@appspot.gserviceaccount.com",
    )


def _build_email_project_part(project: str) -> str:
    domain, _, name = project.rpartition(":")
    return f"{name}.{domain}" if domain else name
