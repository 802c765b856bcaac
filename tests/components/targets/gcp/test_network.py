"""What a stack creates in a private network: names of its own, and a connection that others may share."""

import pytest
from vertex_training.schema import shapes
from vertex_training.targets.gcp import JobNetwork
from vertex_training.targets.gcp.network import Interface

from tests.components.targets.gcp.graph import Graph, graph

# The threads of Pulumi's mocks leave an event loop each.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
NETWORK = "projects/1/global/networks/n"
THEIRS = "projects/host/regions/europe-west4/networkAttachments/theirs"


def network(declared: shapes.Network) -> tuple[Graph, JobNetwork]:
    made: list[JobNetwork] = []
    found = graph(
        lambda: made.append(JobNetwork("net", {"project": "acme", "region": "europe-west4", "network": declared}))
    )
    return found, made[0]


def test_a_peering_is_created_with_its_range() -> None:
    peering: shapes.Peering = {"network": NETWORK, "reservedIpRanges": ["old"]}
    found, made = network({"peering": peering})
    assert set(found.inputs) == {"JobNetwork/net"}
    assert made.fields == peering
    found, made = network({"peering": {**peering, "prefixLength": 16, "name": "training"}})
    address = found.inputs["GlobalAddress/net"]
    assert (address["name"], address["prefixLength"]) == ("training", 16)
    assert found.inputs["Connection/net"]["reservedPeeringRanges"] == ["old", "training"]
    assert "GlobalAddress/net" in found.needs("Connection/net")
    assert made.fields["reservedIpRanges"] == ["old", "training"]
    assert made.attachment_project is None


def test_named_ranges_allow_an_update() -> None:
    found, _ = network({"peering": {"network": NETWORK, "prefixLength": 16}})
    assert found.inputs["Connection/net"]["updateOnCreationFail"] is False
    found, _ = network({"peering": {"network": NETWORK, "prefixLength": 16, "reservedIpRanges": ["old"]}})
    assert found.inputs["Connection/net"]["updateOnCreationFail"] is True


def test_a_connection_stays_for_others_after_destroy() -> None:
    found, _ = network({"peering": {"network": NETWORK, "prefixLength": 16}})
    assert found.inputs["Connection/net"]["deletionPolicy"] == "ABANDON"


def test_only_another_network_replaces_the_range() -> None:
    found, _ = network({"peering": {"network": NETWORK, "prefixLength": 16}})
    request = found.requests["GlobalAddress/net"]
    assert list(request.ignoreChanges) == ["network"]
    assert request.replacement_trigger.string_value == NETWORK


def test_an_attachment_is_created_in_a_subnetwork() -> None:
    zone: shapes.DnsPeering = {"domain": "corp.", "targetProject": "dns-host", "targetNetwork": "n"}
    found, made = network({"attachment": {"subnetwork": "sub", "name": "training", "dnsPeering": [zone]}})
    inputs = found.inputs["NetworkAttachment/net"]
    assert (inputs["name"], inputs["subnetworks"]) == ("training", ["sub"])
    name = "projects/acme/regions/europe-west4/networkAttachments/training"
    assert made.fields == {"pscInterfaceConfig": {"networkAttachment": name, "dnsPeeringConfigs": [zone]}}
    assert (made.dns_projects, made.attachment_project, made.host_project) == (("acme", "dns-host"), "acme", None)
    found, made = network({"attachment": {"existing": THEIRS}})
    assert set(found.inputs) == {"JobNetwork/net"}
    assert made.attachment_project == "host"


@pytest.mark.parametrize(
    "subnetwork",
    [
        "projects/net-host/regions/europe-west4/subnetworks/jobs",
        "https://www.googleapis.com/compute/v1/projects/net-host/regions/europe-west4/subnetworks/jobs",
    ],
)
def test_a_subnetwork_of_a_shared_vpc_needs_its_host(subnetwork: str) -> None:
    zone: shapes.DnsPeering = {"domain": "corp.", "targetProject": "dns-host", "targetNetwork": "n"}
    attachment: shapes.Attachment = {"subnetwork": subnetwork, "dnsPeering": [zone]}
    _, made = network({"attachment": attachment})
    assert (made.host_project, made.dns_projects) == ("net-host", ("acme", "dns-host", "net-host"))
    _, made = network({"attachment": {"subnetwork": subnetwork}})
    assert (made.host_project, made.dns_projects) == ("net-host", ())
    _, made = network({"attachment": {**attachment, "grant": False}})
    assert (made.host_project, made.dns_projects) == (None, ("acme",))
    _, made = network({"attachment": {"subnetwork": subnetwork.replace("net-host", "acme")}})
    assert made.host_project is None


def test_a_project_is_known_by_its_number() -> None:
    zones: list[shapes.DnsPeering] = [
        {"domain": "corp.", "targetProject": own, "targetNetwork": "n"} for own in ("acme", "123456789012")
    ]
    declared = "projects/123456789012/regions/europe-west4/subnetworks/jobs"
    attachment: shapes.Attachment = {"subnetwork": declared, "dnsPeering": zones}
    found = Interface(attachment, {"acme", "123456789012"})
    assert (found.host, found.owner, found.dns) == (None, None, [])
