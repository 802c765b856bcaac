"""The identities with which Google's services act in a project.

Their e-mails depend on the project's number alone (Google's page on Vertex AI service agents), so a preview shows every
grant.
"""

from __future__ import annotations  # loads the provider's types only if they are used

from dataclasses import dataclass

from pulumi import Input, ResourceOptions
from pulumi_gcp import kms

KEY_USER = "roles/cloudkms.cryptoKeyEncrypterDecrypter"


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


def grant_key_use(name: str, key: str, member: Input[str], options: ResourceOptions) -> kms.CryptoKeyIAMMember:
    """Grant a service agent the right to encrypt and decrypt with a customer-managed key."""
    return kms.CryptoKeyIAMMember(name, crypto_key_id=key, role=KEY_USER, member=member, opts=options)
