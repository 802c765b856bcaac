"""Services: the APIs that a stack needs, enabled in its project."""

from collections.abc import Iterable

import pulumi
from pulumi_gcp import projects

from ...schema import shapes

ALWAYS_REQUIRED = (
    "aiplatform",
    "artifactregistry",
    # The provider reads the project before it enables an API or grants a role (terraform-provider-google #6101,
    # #11435). docs/first-run.md has these two enabled by hand, once; here they are recorded with the others.
    "cloudresourcemanager",
    "serviceusage",
    "iam",
    "logging",
    "storage",
    "workloadidentity",
)
"""The APIs that every stack needs: for jobs, images, grants, service accounts, logs, outputs and service agents."""


def get_required_api_short_names(cloud: shapes.Cloud) -> set[str]:
    """Return the short names of the APIs that a stack with the target gcp needs."""
    apis = set(ALWAYS_REQUIRED)
    if network := cloud.get("network", {}):
        apis.add("compute")
    if "prefixLength" in network.get("peering", {}):
        apis.add("servicenetworking")
    if network.get("attachment", {}).get("dnsPeering"):
        apis.add("dns")
    if "alerts" in cloud:
        apis.add("monitoring")
    cloud_build = cloud.get("builder", {}).get("cloudBuild")
    if cloud_build is not None:
        apis.add("cloudbuild")
    if cloud["identity"].get("secrets") or (cloud_build or {}).get("secrets"):
        apis.add("secretmanager")
    if any("kmsKey" in part for part in (cloud, cloud["registry"], cloud["bucket"])):
        apis.add("cloudkms")
    return apis


class Services(pulumi.ComponentResource):
    """Enabled APIs of a project, by their short names (`aiplatform` is `aiplatform.googleapis.com`).

    Destroying the stack leaves them enabled: other parts of the project may need them.
    """

    def __init__(
        self, name: str, apis: Iterable[str], *, project: str, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("vertex:gcp:Services", name, None, opts)
        options = pulumi.ResourceOptions(parent=self)
        self.enabled = [
            projects.Service(
                f"{name}-{api}",
                project=project,
                service=f"{api}.googleapis.com",
                disable_on_destroy=False,
                opts=options,
            )
            for api in sorted(apis)
        ]
        self.register_outputs({})
