"""Services: the APIs that a stack needs, enabled in its project."""

from collections.abc import Iterable

import pulumi
from pulumi_gcp import projects

from ...schema import shapes

ALWAYS = ("aiplatform", "artifactregistry", "iam", "logging", "storage")
"""What every stack uses: jobs, images, the account they run as, their logs and their outputs."""


def needed(stack: shapes.Cloud) -> set[str]:
    """The short names of the APIs that a stack of the target gcp uses."""
    apis = set(ALWAYS)
    network = stack.get("network", {})
    if network:
        apis.add("compute")
    if "prefixLength" in network.get("peering", {}):
        apis.add("servicenetworking")
    if network.get("attachment", {}).get("dnsPeering"):
        apis.add("dns")
    if any("kmsKey" in part for part in (stack, stack["registry"], stack["bucket"])):
        apis.add("cloudkms")
    return apis


class Services(pulumi.ComponentResource):
    """Enabled APIs of a project, by their short names (`aiplatform` is `aiplatform.googleapis.com`).

    Destroying the stack leaves them on: whatever else the project holds may need them.
    """

    def __init__(
        self, name: str, apis: Iterable[str], *, project: str, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("vertex:gcp:Services", name, None, opts)
        self.enabled = [
            projects.Service(
                f"{name}-{api}",
                project=project,
                service=f"{api}.googleapis.com",
                disable_on_destroy=False,
                opts=pulumi.ResourceOptions(parent=self),
            )
            for api in sorted(apis)
        ]
        self.register_outputs({})
