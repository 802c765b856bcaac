"""GcpFoundation: a Google Cloud project as the target."""

from collections.abc import Mapping
from typing import Any

import pulumi

from vertex_api.names import build_parent

from ...jobs.recovery.ledger import Ledger
from ...runtime.target import CLOUD_PREFIX
from ...schema import shapes
from ...settings.settings import Settings
from .access import Grants, ServiceAgentAccess
from .bucket import StagingBucket
from .identity import TrainingIdentity
from .network import JobNetwork
from .persistent_resource import PersistentResource
from .registry import ImageRegistry
from .services import Services, list_required_apis


class GcpFoundation(pulumi.ComponentResource):
    """APIs, repository, account, bucket, network, grants and machines, in the order in which they need one another.

    Image URIs, IAM members, the bucket and output directories are plain text, so a preview shows them.
    """

    def __init__(self, settings: Settings, stack: shapes.Cloud, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("vertex:foundation:Gcp", "gcp", None, opts)
        project, region = settings.project, settings.region
        number, kms_key = stack["projectNumber"], stack.get("kmsKey")
        apis = list_required_apis(stack)
        services = Services("services", apis, project=project, opts=pulumi.ResourceOptions(parent=self))

        def after(*components: pulumi.Resource | None) -> pulumi.ResourceOptions:
            upstream = [component for component in (services, *components) if component is not None]
            return pulumi.ResourceOptions(parent=self, depends_on=upstream)

        registry = ImageRegistry(
            "registry", stack["registry"], project=project, project_number=number, region=region, opts=after()
        )
        identity, training = stack["identity"], None
        if "account" in identity:
            submitters = identity.get("submitters", [])
            training = TrainingIdentity(
                "identity", identity["account"], project=project, submitters=submitters, opts=after()
            )
        account = training.email if training else identity["existing"]
        bucket = StagingBucket(
            "bucket",
            stack["bucket"],
            project=project,
            project_number=number,
            region=region,
            member=f"serviceAccount:{account}",
            opts=after(training),
        )
        network = None
        if "network" in stack:
            network = JobNetwork("network", stack["network"], project=project, region=region, opts=after())
        grants = Grants(
            repository=registry.repository,
            kms_key=kms_key,
            legacy_buckets=tuple(stack["registry"].get("legacyBuckets", [])),
            dns_projects=network.dns_projects if network else (),
            foreign_account=account if _is_foreign(account, project) else None,
        )
        access = ServiceAgentAccess("access", grants, project=project, project_number=number, opts=after(registry))
        machines = None
        if "persistentResource" in stack:
            machines = PersistentResource(
                "machines",
                stack["persistentResource"],
                project=project,
                region=region,
                network=network.fields if network else None,
                kms_key=kms_key,
                labels=stack.get("labels"),
                opts=after(access, network),
            )
        self.registry = registry.image_prefix
        self.staging = f"{bucket.uri}/{settings.pulumi_project}/{settings.stack}"
        self.parent = CLOUD_PREFIX + build_parent(project, region)
        self.job_defaults: Mapping[str, Any] = {"serviceAccount": account, **(network.fields if network else {})}
        self.encryption_key: str | None = kms_key
        self.labels: Mapping[str, str] = stack.get("labels", {})
        self.for_images: list[pulumi.Resource] = [services, registry]
        options = after(registry, training, bucket, network, access, machines)
        self.for_jobs: list[pulumi.Resource] = [Ledger("ledger", settings.jobs, self.parent, options)]
        self.register_outputs({})


def _is_foreign(account: str, project: str) -> bool:
    """Whether an account belongs to another project: the service agent then needs to create tokens for it."""
    return account.partition("@")[2] != f"{project}.iam.gserviceaccount.com"
