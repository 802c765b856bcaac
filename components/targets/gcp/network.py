"""JobNetwork: access of jobs to a private network, by VPC peering or through a network attachment."""

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi_gcp import compute, servicenetworking

from ...schema import shapes

PEER = "servicenetworking.googleapis.com"


class JobNetwork(pulumi.ComponentResource):
    """The resources in a private network that jobs need, and the fields of jobs that refer to them.

    `network` has `peering` or `attachment`. `fields` are those of a CustomJobSpec, as plain text, so a preview shows
    them. `dns_projects` are the projects whose zones jobs resolve names in.
    """

    def __init__(
        self,
        name: str,
        network: shapes.Network,
        *,
        project: str,
        region: str,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("vertex:gcp:JobNetwork", name, None, opts)
        self._name, self._project, self._region = name, project, region
        self.fields: Mapping[str, Any] = (
            self._peer(network["peering"]) if "peering" in network else self._attach(network["attachment"])
        )
        zones = network.get("attachment", {}).get("dnsPeering", [])
        self.dns_projects = tuple(sorted({zone["targetProject"] for zone in zones}))
        self.register_outputs({"fields": self.fields})

    def _peer(self, peering: shapes.Peering) -> dict[str, Any]:
        """Peer a network with Google's services (Google's page on private services access), and return the fields."""
        fields: dict[str, Any] = {"network": peering["network"]}
        ranges = peering.get("reservedIpRanges", [])
        if "prefixLength" in peering:
            address = compute.GlobalAddress(
                self._name,
                name=self._name,
                project=peering["network"].split("/")[1],
                purpose="VPC_PEERING",
                address_type="INTERNAL",
                prefix_length=peering["prefixLength"],
                network=peering["network"],
                opts=pulumi.ResourceOptions(parent=self),
            )
            servicenetworking.Connection(
                self._name,
                network=peering["network"],
                service=PEER,
                reserved_peering_ranges=[*ranges, self._name],
                opts=pulumi.ResourceOptions(parent=self, depends_on=[address]),
            )
            ranges = [*ranges, self._name]
        return {**fields, "reservedIpRanges": ranges} if ranges else fields

    def _attach(self, attachment: shapes.Attachment) -> dict[str, Any]:
        """Connect jobs by a Private Service Connect interface (Google's page on it), and return the fields."""
        interface: dict[str, Any] = {
            "networkAttachment": attachment.get("existing")
            or f"projects/{self._project}/regions/{self._region}/networkAttachments/{self._name}"
        }
        if "subnetwork" in attachment:
            compute.NetworkAttachment(
                self._name,
                name=self._name,
                project=self._project,
                region=self._region,
                connection_preference="ACCEPT_MANUAL",
                subnetworks=[attachment["subnetwork"]],
                # Vertex AI adds its own projects to the accepted ones when a job uses the attachment.
                opts=pulumi.ResourceOptions(parent=self, ignore_changes=["producerAcceptLists"]),
            )
        if "dnsPeering" in attachment:
            interface["dnsPeeringConfigs"] = [dict(zone) for zone in attachment["dnsPeering"]]
        return {"pscInterfaceConfig": interface}
