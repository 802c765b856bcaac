"""JobNetwork: access of jobs to a private network, by VPC peering or through a network attachment."""

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi import ResourceOptions
from pulumi_gcp import compute, servicenetworking

from ...schema.config_types import Attachment, Network, Peering

PEER = "servicenetworking.googleapis.com"


class JobNetwork(pulumi.ComponentResource):
    """The resources in a private network that jobs need, and the fields of jobs that refer to them.

    `network` has `peering` or `attachment`. `fields` are those of a CustomJobSpec, as plain text, so a preview shows
    them. `dns_projects` are the projects whose zones jobs resolve names in.
    """

    def __init__(
        self, name: str, network: Network, *, project: str, region: str, opts: ResourceOptions | None = None
    ) -> None:
        super().__init__("vertex:gcp:JobNetwork", name, None, opts)
        self.fields: Mapping[str, Any] = (
            self._build_peering_fields_and_create_if_new(name, network["peering"])
            if "peering" in network
            else self._build_attachment_fields_and_create_if_new(name, network["attachment"], project, region)
        )
        zones = network.get("attachment", {}).get("dnsPeering", [])
        self.dns_projects = tuple(sorted({zone["targetProject"] for zone in zones}))
        self.register_outputs({"fields": self.fields})

    def _build_peering_fields_and_create_if_new(self, name: str, peering: Peering) -> dict[str, Any]:
        """Peer a network with Google's services (Google's page on private services access), and return the fields."""
        network, ranges = peering["network"], peering.get("reservedIpRanges", [])
        if "prefixLength" in peering:
            address = compute.GlobalAddress(
                name,
                name=name,
                project=network.split("/")[1],
                purpose="VPC_PEERING",
                address_type="INTERNAL",
                prefix_length=peering["prefixLength"],
                network=network,
                opts=ResourceOptions(parent=self),
            )
            ranges = [*ranges, name]
            options = ResourceOptions(parent=self, depends_on=[address])
            servicenetworking.Connection(
                name, network=network, service=PEER, reserved_peering_ranges=ranges, opts=options
            )
        return {"network": network, **({"reservedIpRanges": ranges} if ranges else {})}

    def _build_attachment_fields_and_create_if_new(
        self, name: str, attachment: Attachment, project: str, region: str
    ) -> dict[str, Any]:
        """Connect jobs by a Private Service Connect interface (Google's page on it), and return the fields."""
        if "subnetwork" in attachment:
            compute.NetworkAttachment(
                name,
                name=name,
                project=project,
                region=region,
                connection_preference="ACCEPT_MANUAL",
                subnetworks=[attachment["subnetwork"]],
                # Vertex AI adds its own projects to the accepted ones when a job uses the attachment.
                opts=ResourceOptions(parent=self, ignore_changes=["producerAcceptLists"]),
            )
        resource_name = attachment.get("existing") or f"projects/{project}/regions/{region}/networkAttachments/{name}"
        interface: dict[str, Any] = {"networkAttachment": resource_name}
        if "dnsPeering" in attachment:
            interface["dnsPeeringConfigs"] = [dict(zone) for zone in attachment["dnsPeering"]]
        return {"pscInterfaceConfig": interface}
