"""Types of the key `network` of a stack file. docs/configuration.md describes each field."""

from typing import Required

from vertex_api.scalar_types import String

from . import field_types
from .closed_typed_dict_base import ClosedTypedDict


class Peering(ClosedTypedDict, total=False):
    """A VPC network that is peered with Google's services. With `prefixLength` the stack creates the peering."""

    network: Required[field_types.NetworkName]
    reservedIpRanges: list[String]
    prefixLength: field_types.Positive
    name: field_types.ComputeName


class DnsPeering(ClosedTypedDict, total=False):
    """A domain, ending with a dot, that jobs resolve in a network of a project."""

    domain: Required[String]
    targetProject: Required[String]
    targetNetwork: Required[String]


class Attachment(ClosedTypedDict, total=False):
    """The network attachment of jobs: an `existing` one, or one to create in a `subnetwork`."""

    existing: field_types.AttachmentName
    subnetwork: String
    name: field_types.ComputeName
    dnsPeering: list[DnsPeering]


class Network(ClosedTypedDict, total=False):
    """The private network that jobs reach: by a `peering` or by an `attachment`."""

    peering: Peering
    attachment: Attachment
