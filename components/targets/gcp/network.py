"""JobNetwork: the connection of jobs to a private network, by VPC peering or through a network attachment."""

import re
from collections.abc import Mapping
from typing import Any, Required, TypedDict

from pulumi import ResourceOptions
from pulumi_gcp import compute, servicenetworking

from ...schema import shapes
from .project import Component

_PEER = "servicenetworking.googleapis.com"
_SUBNETWORK_PROJECT = re.compile(r"(?:^|/)projects/([^/]+)/regions/")
"""In the name of a subnetwork, or in its URL; a subnetwork by its id alone is in the stack's own project."""


class JobNetworkArgs(TypedDict, total=False):
    """`network` is that of a stack file: it has `peering` or `attachment`. A range has `labels`."""

    project: Required[str]
    region: Required[str]
    network: Required[shapes.Network]
    labels: Mapping[str, str] | None


class JobNetwork(Component):
    """The resources in a private network that jobs need, and the fields of jobs that refer to them.

    `fields` are those of a CustomJobSpec, as plain text, so a preview shows them. `attachment_project` has the network
    attachment. In `dns_projects` Vertex AI's agent needs to peer zones, and `host_project` has the subnetwork of a
    Shared VPC; with `attachment.grant: false`, only what is to be granted in the stack's own project is there.
    """

    def __init__(self, name: str, args: JobNetworkArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__(name, opts, args.get("labels"))
        network = args["network"]
        attachment = network.get("attachment")
        self.fields: Mapping[str, Any] = (
            self._attach(name, attachment, args["project"], args["region"])
            if attachment is not None and "peering" not in network
            else self._peer(name, network["peering"])
        )
        self.host_project: str | None = None
        self.dns_projects: tuple[str, ...] = ()
        if attachment is not None and "peering" not in network:
            self._find_grants(attachment, args["project"])
        interface = self.fields.get("pscInterfaceConfig")
        self.attachment_project = interface["networkAttachment"].split("/")[1] if interface else None
        self.register_outputs({"fields": self.fields})

    def _find_grants(self, attachment: shapes.Attachment, project: str) -> None:
        """Find the projects in which Vertex AI's agent needs a role.

        Source: Google's page "Set up a Private Service Connect interface", on the roles of the service agent.
        """
        zones, is_granted = attachment.get("dnsPeering", []), attachment.get("grant", True)
        host = _SUBNETWORK_PROJECT.search(attachment.get("subnetwork", "")) if is_granted else None
        if host and host[1] != project:
            self.host_project = host[1]
        others = [*(zone["targetProject"] for zone in zones), *filter(None, [self.host_project])]
        self.dns_projects = tuple(sorted({project, *(others if is_granted else ())})) if zones else ()

    def _peer(self, name: str, peering: shapes.Peering) -> dict[str, Any]:
        """Peer a network with Google's services (Google's page on private services access), and return the fields."""
        network, ranges = peering["network"], peering.get("reservedIpRanges", [])
        if "prefixLength" in peering:
            range_name = peering.get("name", name)
            address = compute.GlobalAddress(
                name,
                name=range_name,
                project=network.split("/")[1],
                purpose="VPC_PEERING",
                address_type="INTERNAL",
                prefix_length=peering["prefixLength"],
                network=network,
                # Jobs need the network's project by its number; Compute Engine answers with the project's id, and the
                # provider would replace the range at each update. Only another network in the stack does.
                opts=ResourceOptions.merge(
                    self.advising(), ResourceOptions(ignore_changes=["network"], replacement_trigger=network)
                ),
            )
            servicenetworking.Connection(
                name,
                network=network,
                service=_PEER,
                reserved_peering_ranges=[*ranges, range_name],
                # A network has one connection to Google's services, and creating it again fails with "Cannot modify
                # allocated ranges in CreateConnection" (terraform-provider-google #3294, #16697). The provider can
                # update the one that is there, but the update drops each range that is not named: only who has named
                # the present ones gets it.
                update_on_creation_fail=bool(ranges),
                # Others may use the connection, and Google releases it only some time after the last of them
                # (terraform-provider-google #16275, #19908).
                deletion_policy="ABANDON",
                opts=self.advising(address),
            )
            ranges = [*ranges, range_name]
        return {"network": network, **({"reservedIpRanges": ranges} if ranges else {})}

    def _attach(self, name: str, attachment: shapes.Attachment, project: str, region: str) -> dict[str, Any]:
        """Connect jobs by a Private Service Connect interface (Google's page on it), and return the fields."""
        attachment_name = attachment.get("name", name)
        if "subnetwork" in attachment:
            compute.NetworkAttachment(
                name,
                name=attachment_name,
                project=project,
                region=region,
                connection_preference="ACCEPT_MANUAL",
                subnetworks=[attachment["subnetwork"]],
                # Vertex AI adds its own projects to the accepted ones when a job uses the attachment.
                opts=ResourceOptions.merge(self.retrying(), ResourceOptions(ignore_changes=["producerAcceptLists"])),
            )
        own_name = f"projects/{project}/regions/{region}/networkAttachments/{attachment_name}"
        interface: dict[str, Any] = {"networkAttachment": attachment.get("existing") or own_name}
        if "dnsPeering" in attachment:
            interface["dnsPeeringConfigs"] = [dict(zone) for zone in attachment["dnsPeering"]]
        return {"pscInterfaceConfig": interface}
