"""SecretAccess: the secrets of Secret Manager that training code may read."""

from collections.abc import Sequence

import pulumi
from pulumi_gcp import secretmanager

from .propagation_retries import create_retrying_options

SECRET_ACCESSOR = "roles/secretmanager.secretAccessor"


class SecretAccess(pulumi.ComponentResource):
    """Grants on secrets that exist, each by its name or as `projects/P/secrets/NAME`, to one IAM `member`."""

    def __init__(
        self,
        name: str,
        secrets: Sequence[str],
        *,
        project: str,
        member: str,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("vertex:gcp:SecretAccess", name, None, opts)
        options = create_retrying_options(self)
        for secret in dict.fromkeys(secrets):
            owner, secret_id = secret.split("/")[1::2] if "/" in secret else (project, secret)
            secretmanager.SecretIamMember(
                f"{name}-{secret}",
                project=owner,
                secret_id=secret_id,
                role=SECRET_ACCESSOR,
                member=member,
                opts=options,
            )
        self.register_outputs({})
