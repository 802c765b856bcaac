"""GcpFoundation: a Google Cloud project as the target."""

from collections.abc import Mapping
from typing import Any

import pulumi

from vertex_api.names import build_parent

from ...jobs.recovery.ledger import Ledger
from ...runtime.target import CLOUD
from ...schema import shapes
from ...settings.settings import Settings
from .access import Grants, ServiceAgentAccess
from .bucket import StagingBucket
from .identity import TrainingIdentity
from .network import JobNetwork
from .persistent_resource import PersistentResource
from .registry import ImageRegistry
from .services import Services, needed


class GcpFoundation(pulumi.ComponentResource):
    """APIs, repository, account, bucket, network, grants and machines, in the order in which they need one another.

    Everything that a reviewer asks for is plain text: image URIs, members, the bucket, output directories.
    """

    def __init__(self, settings: Settings, stack: shapes.Cloud, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("vertex:foundation:Gcp", "gcp", None, opts)
        project, region = settings.project, settings.region
        number = stack["projectNumber"]
        services = Services("services", needed(stack), project=project, opts=pulumi.ResourceOptions(parent=self))
        after = pulumi.ResourceOptions(parent=self, depends_on=[services])

        registry = ImageRegistry(
            "registry", stack["registry"], project=project, project_number=number, region=region, opts=after
        )
        identity = stack["identity"]
        training = (
            TrainingIdentity(
                "identity", identity["account"], project=project, submitters=identity.get("submitters", []), opts=after
            )
            if "account" in identity
            else None
        )
        account = training.email if training else identity["existing"]
        bucket = StagingBucket(
            "bucket",
            stack["bucket"],
            project=project,
            project_number=number,
            region=region,
            member=f"serviceAccount:{account}",
            opts=pulumi.ResourceOptions.merge(after, pulumi.ResourceOptions(depends_on=[training] if training else [])),
        )
        network = (
            JobNetwork("network", stack["network"], project=project, region=region, opts=after)
            if "network" in stack
            else None
        )
        access = ServiceAgentAccess(
            "access",
            Grants(
                repository=registry.repository,
                kms_key=stack.get("kmsKey"),
                legacy_buckets=tuple(stack["registry"].get("legacyBuckets", [])),
                dns_projects=network.dns_projects if network else (),
                foreign_account=account if _is_foreign(account, project) else None,
            ),
            project=project,
            project_number=number,
            opts=pulumi.ResourceOptions.merge(after, pulumi.ResourceOptions(depends_on=[registry])),
        )
        machines = (
            PersistentResource(
                "machines",
                stack["persistentResource"],
                project=project,
                region=region,
                network=network.fields if network else None,
                kms_key=stack.get("kmsKey"),
                labels=stack.get("labels"),
                opts=pulumi.ResourceOptions.merge(
                    after, pulumi.ResourceOptions(depends_on=[access, *([network] if network else [])])
                ),
            )
            if "persistentResource" in stack
            else None
        )
        self.registry = registry.images
        self.staging = f"{bucket.uri}/{settings.pulumi_project}/{settings.stack}"
        self.parent = CLOUD + build_parent(project, region)
        self.job_defaults: Mapping[str, Any] = {"serviceAccount": account, **(network.fields if network else {})}
        self.encryption_key: str | None = stack.get("kmsKey")
        self.labels: Mapping[str, str] = stack.get("labels", {})
        self.for_images: list[pulumi.Resource] = [services, registry]
        before = [
            each for each in (services, registry, training, bucket, network, access, machines) if each is not None
        ]
        after = pulumi.ResourceOptions(parent=self, depends_on=before)
        self.for_jobs: list[pulumi.Resource] = [Ledger("ledger", settings.jobs, self.parent, after)]
        self.register_outputs({})


def _is_foreign(account: str, project: str) -> bool:
    """Whether an account belongs to another project: its agent then must be let create tokens for it."""
    return account.partition("@")[2] != f"{project}.iam.gserviceaccount.com"
