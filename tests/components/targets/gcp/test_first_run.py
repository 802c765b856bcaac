"""A first `up` in a fresh project: whatever Google Cloud refuses there passes, is retried, or has been prepared."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from vertex_training.settings.settings import Settings
from vertex_training.targets.gcp.project import retry_pause

from tests.components.projects import load
from tests.components.targets.gcp.graph import Graph
from tests.components.targets.gcp.test_foundation import ALL, PEERED, PLAIN, build_foundation_graph
from tests.standins.gcp.world import World

# The threads of Pulumi's mocks leave an event loop each.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
NETWORK = PEERED["peering"]["network"]
PAGE = (Path(__file__).parents[4] / "docs" / "first-run.md").read_text()


def foundation(folder: Path, stack: str = "dev", **keys: Any) -> Graph:
    """The foundation of a stack without jobs; `network` and the rest are keys of its file."""
    given = {f"vertex-training:{key}": value for key, value in {**PLAIN, "include": [], **keys}.items()}
    known: Settings = load(folder, yaml.safe_dump({"config": given}), stack_name=stack)
    return build_foundation_graph(known)


def bring_up(world: World, made: Graph) -> list[str]:
    """Create all resources, in the order in which the engine hears of them, and return the refusals that passed.

    Fails at the first that does not pass or that is not retried.
    """
    passed: list[str] = []
    calls = list(made.calls)
    for name, request in made.requests.items():
        while calls and name not in calls[0][1]:
            world.invoke(calls.pop(0)[0], {"project": PLAIN["project"]})
        if not request.custom or not request.type.startswith("gcp:"):
            continue
        refusals: list[str] = []
        while refusal := world.find_refusal(request.type, made.inputs[name]):
            refusals.insert(0, refusal)
            assert retry_pause(refusals) and request.hooks.on_error, f"{name}: {refusal}"
            passed.append(refusal)
        world.create(request.type, made.inputs[name])
    return passed


FOREIGN: Mapping[str, Any] = {
    "registry": {"existing": "projects/images/locations/us/repositories/r"},
    "identity": {"existing": "t@other.iam.gserviceaccount.com"},
    "bucket": {"existing": "theirs"},
}
STACKS: Mapping[str, Mapping[str, Any]] = {
    "plain": {},
    "every option and an attachment": {**ALL, "registry": {"kmsKey": ALL["kmsKey"]}},
    "every option and a peering": {**ALL, "registry": {"kmsKey": ALL["kmsKey"]}, "network": PEERED},
    "everything exists": FOREIGN,
}


@pytest.mark.parametrize("stack", STACKS)
def test_the_first_run_passes_in_a_fresh_project(tmp_path: Path, stack: str) -> None:
    made = foundation(tmp_path, **STACKS[stack])
    assert bring_up(World(unknown_attempts=3), made)


def test_without_two_apis_nothing_can_be_enabled(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"Service/services-.*: Error 403: API cloudresourcemanager"):
        bring_up(World(by_hand=()), foundation(tmp_path))
    assert "gcloud services enable cloudresourcemanager.googleapis.com serviceusage.googleapis.com" in PAGE


@pytest.mark.parametrize("network", [PEERED, ALL["network"]])
def test_two_stacks_can_share_a_network(tmp_path: Path, network: Mapping[str, Any]) -> None:
    world = World()
    bring_up(world, foundation(tmp_path, network=network))
    second = dict(network)
    if "peering" in network:  # the range of the first stack is there by now
        second["peering"] = {**network["peering"], "reservedIpRanges": ["acme-dev-team-dev"]}
    bring_up(world, foundation(tmp_path, "prod", network=second))


def test_a_connected_network_keeps_its_ranges(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="Cannot modify allocated ranges"):
        bring_up(World(connected={NETWORK: ["sql"]}), foundation(tmp_path, network=PEERED))
    named = {"peering": {**PEERED["peering"], "reservedIpRanges": ["sql"]}}
    bring_up(World(connected={NETWORK: ["sql"]}), foundation(tmp_path, network=named))


def test_a_destroyed_stack_leaves_the_connection(tmp_path: Path) -> None:
    made = foundation(tmp_path, network=PEERED)
    inputs = made.inputs["Connection/network"]
    assert World().delete(made.requests["Connection/network"].type, inputs) is None


@pytest.mark.parametrize(
    "refusal",
    [
        "Service account … does not exist",
        "does not exist in the resource's hierarchy",
        "Permission denied on Cloud KMS key",
        "has not been used in project … before or it is disabled",
        "You do not have permission to act as service_account",
        "Service agents are being provisioned",
        "Permission 'iam.serviceaccounts.actAs' denied on service account … (or it may not exist)",
        "Workflows service agent does not exist",
        "requires a quota project",
        "already exists",
        "Cannot modify allocated ranges in CreateConnection",
        "Required 'compute.networkAttachments.get' permission",
    ],
)
def test_the_page_explains_each_refusal(refusal: str) -> None:
    assert f"`{refusal}`" in PAGE[PAGE.index("## What each refusal means") :]


@pytest.mark.parametrize("command", ["set-quota-project PROJECT", "--impersonate-service-account DEPLOYER@"])
def test_the_page_has_the_supported_ways_to_sign_in(command: str) -> None:
    assert f"gcloud auth application-default {command}" in PAGE or f"application-default login {command}" in PAGE


@pytest.mark.parametrize(
    "text",
    [
        "gcloud services enable compute.googleapis.com servicenetworking.googleapis.com --project NETWORK_PROJECT",
        "`GOOGLE_OAUTH_ACCESS_TOKEN`",
        "`GOOGLE_IMPERSONATE_SERVICE_ACCOUNT`",
        "`gcp:accessToken`",
        "`gcp:impersonateServiceAccount`",
        "`identity.submitters`",
        "--secrets-provider gcpkms://",
    ],
)
def test_the_page_has_each_step_by_hand(text: str) -> None:
    assert text in PAGE[: PAGE.index("## What each refusal means")]


@pytest.mark.parametrize("folder", ["stacks", "template/stacks"])
def test_the_repository_of_dev_is_protected(folder: str) -> None:
    file = Path(__file__).parents[4] / folder / "Pulumi.dev.yaml"
    assert yaml.safe_load(file.read_text())["config"]["vertex-training:registry"]["protect"] is True
