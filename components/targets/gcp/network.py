"""JobNetwork: the connection of jobs to a private network, by VPC peering or through a network attachment."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Required, TypedDict

from pulumi import ResourceOptions
from pulumi_gcp import compute, servicenetworking

from ...schema import shapes
from .project import Component

_PEER = "servicenetworking.googleapis.com"
_PROJECT = re.compile(r"(?:^|/)projects/([^/]+)/regions/")
"""In the name of a subnetwork or an attachment, or in its URL; by its id alone, it is in the stack's own project."""


@dataclass(frozen=True)
class Interface:
    """The other projects of a Private Service Connect interface, for a project that is called as `own` says.

    Source: Google's page "Set up a Private Service Connect interface", on the roles of the service agent.
    """

    attachment: shapes.Attachment
    own: Collection[str]

    @property
    def owner(self) -> str | None:
        """The project of an attachment that exists."""
        return self._other(self.attachment.get("existing", ""))

    @property
    def host(self) -> str | None:
        """The project of the subnetwork, which is the host of a Shared VPC."""
        return self._other(self.attachment.get("subnetwork", ""))

    @property
    def dns(self) -> list[str]:
        """The projects that Vertex AI's agent peers zones in: that of each zone, and the host of a Shared VPC."""
        zones = self.attachment.get("dnsPeering", [])
        named = {*(zone["targetProject"] for zone in zones), *filter(None, [self.host if zones else None])}
        return sorted(named.difference(self.own))

    def _other(self, name: str) -> str | None:
        found = _PROJECT.search(name)
        return found[1] if found and found[1] not in self.own else None


class JobNetworkArgs(TypedDict, total=False):
    """`network` is that of a stack file: it has `peering` or `attachment`. A range has `labels`.

    With `project_number`, names that have the project's number are known to be of the project itself.
    """

    project: Required[str]
    project_number: str
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
        self.attachment_project: str | None = None
        self.dns_projects: tuple[str, ...] = ()
        if attachment is not None and "peering" not in network:
            project, is_granted = args["project"], attachment.get("grant", True)
            interface = Interface(attachment, {project, args.get("project_number", project)})
            self.host_project = interface.host if is_granted else None
            self.attachment_project = interface.owner or project
            if attachment.get("dnsPeering"):
                self.dns_projects = (project, *(interface.dns if is_granted else ()))
        self.register_outputs({"fields": self.fields})

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
