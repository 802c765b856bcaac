"""A deployer with the documented roles brings up dev, then prod; with any one less it is told which one it lacks."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pulumi
import pytest
import yaml
from vertex_training.targets.gcp import project
from vertex_training.targets.gcp.project import retry_pause

from tests import access_page
from tests.components.projects import load
from tests.components.targets.gcp.graph import Graph, forget_loops
from tests.components.targets.gcp.test_foundation import PLAIN, ZONE, build_foundation_graph, short_module
from tests.components.workflow.schedules import request, scheduled
from tests.standins.permissions import CALLS, ROLES, Deployer, GuardedWorld, places_of
from vertex_api.retry import find_propagation

# The threads of Pulumi's mocks leave an event loop each.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
KEY = "projects/keys/locations/europe-west4/keyRings/k/cryptoKeys/c"
SUBNETWORK = "projects/net-host/regions/europe-west4/subnetworks/jobs"
TRAINERS = "projects/acme-images/locations/us/repositories/trainers"
DEV_IMAGES = "projects/acme-dev/locations/europe-west4/repositories/team-dev"
EVERYTHING: Mapping[str, Any] = {
    "kmsKey": KEY,
    "bucket": {"kmsKey": KEY, "softDelete": "0s"},
    "identity": {"submitters": ["group:ml@example.com"], "secrets": ["hf-token"]},
    "alerts": {"channels": ["ml@example.com"]},
    "tensorboard": {},
    "persistentResource": {"name": "training", "resourcePools": [{"machineSpec": {"machineType": "n1-standard-4"}}]},
}
STACKS: Mapping[str, Mapping[str, Any]] = {
    "dev": {
        **EVERYTHING,
        "registry": {"kmsKey": KEY, "alsoRead": [TRAINERS]},
        "network": {"attachment": {"subnetwork": SUBNETWORK, "dnsPeering": [ZONE]}},
    },
    # By digest: its images are those of dev's repository.
    "prod": {
        **EVERYTHING,
        "project": "acme-prod",
        "projectNumber": "210987654321",
        "registry": {"existing": DEV_IMAGES},
        "network": {"peering": {"network": "projects/777/global/networks/n", "prefixLength": 16}},
    },
}
DATA = """\
data:
  train: {uri: "gs://data-of-others/train/", grant: true}
  orders: {uri: "bq://sales.eu.orders", grant: true}
"""
PLACES = {
    "the project": ["{project}"],
    "the project, the `targetProject` of each `dnsPeering`, and the host project of a `subnetwork`": [
        "{project}",
        "dns-host",
        "net-host",
    ],
    "the project, and the project of an `identity.existing`": ["{project}"],
    "the project of the repository, and each of `registry.alsoRead`": ["acme-dev", TRAINERS],
    "the project, or the bucket if it exists, each of `registry.legacyBuckets`, and of `data` with `grant`": [
        "{project}",
        "data-of-others",
    ],
    "each table of `data` with `grant`": ["sales.eu.orders"],
    "each key": [KEY],
    "each of `identity.secrets`, and of `builder.cloudBuild.secrets`": ["hf-token"],
    "the project of the network": ["{project}", "777"],
    "the subnetwork of a Shared VPC": [SUBNETWORK],
}
"""What the page calls each place, and what that is in these stacks."""


@pytest.fixture(scope="module", autouse=True)
def collected() -> Iterator[None]:
    """Close the event loops, so that no later test warns of them."""
    yield
    forget_loops()


@pytest.fixture(scope="module")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Graph]:
    """What each stack makes, with a schedule."""
    return {name: made(tmp_path_factory.mktemp(name), name) for name in STACKS}


def made(folder: Path, name: str) -> Graph:
    config = {f"vertex-training:{key}": value for key, value in {**PLAIN, **STACKS[name]}.items()}
    known = load(folder, yaml.safe_dump({"config": config}), stack_name=name, jobs=DATA)
    nightly = request(f"team_{name}_nightly", scheduled(f"team_{name}_nightly", "train", {"jobSpec": {}}))
    return build_foundation_graph(known, nightly)


def documented(name: str, graph: Graph) -> frozenset[tuple[str, str]]:
    """The roles of docs/access.md for what a stack makes, each by the place that it is on."""
    touched: dict[str, set[str]] = {}
    for key, each in graph.requests.items():
        kind = f"{short_module(each.type)}.{each.type.rpartition(':')[2]}"
        touched.setdefault(kind, set()).update(places_of(graph.inputs.get(key, {})).values())
    own = STACKS[name].get("project", "acme-dev")
    return frozenset(
        (role, place.format(project=own))
        for role, kind, on in access_page.deployer_roles()
        for place in PLACES.get(on, ())
        if kind in CALLS and place.format(project=own) in touched.get(kind, ())
    )


def up(world: GuardedWorld, graph: Graph, told: list[str]) -> str | None:
    """Create what a stack makes in the order of the engine, and return what is refused for good, if anything."""
    calls = list(graph.calls)
    for name, each in graph.requests.items():
        while calls and name not in calls[0][1]:
            world.invoke(calls.pop(0)[0], {"project": graph.inputs["Service/services-iam"]["project"]})
        if not each.custom or not each.type.startswith("gcp:"):
            continue
        refusals: list[str] = []
        while refusal := world.find_refusal(each.type, graph.inputs[name]):
            refusals.insert(0, refusal)
            if retry_pause(refusals) is None:
                failure: Any = SimpleNamespace(name=name, type=each.type, errors=refusals)
                told += [propagation.remedy] if (propagation := find_propagation(refusal)) else []
                assert each.hooks.on_error and not project._advise(failure)
                return refusal
        world.create(each.type, graph.inputs[name])
    return None


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lines.append)
    return lines


def test_the_documented_roles_bring_up_dev_and_prod(stacks: Mapping[str, Graph], told: list[str]) -> None:
    world = GuardedWorld(Deployer(documented("dev", stacks["dev"])), unknown_attempts=2)
    assert up(world, stacks["dev"], told) is None
    world.deployer = Deployer(documented("prod", stacks["prod"]))
    assert up(world, stacks["prod"], told) is None
    assert not told


@pytest.mark.parametrize("name", STACKS)
def test_a_deployer_with_a_role_less_is_told_which(stacks: Mapping[str, Graph], told: list[str], name: str) -> None:
    roles = documented(name, stacks[name])
    assert {role for role, _ in roles} >= {"roles/storage.admin", "roles/workloadidentity.admin"}
    for role, place in sorted(roles):
        told.clear()
        world = GuardedWorld(Deployer(roles - {(role, place)}))
        if name == "prod":
            world.deployer, prod = Deployer(documented("dev", stacks["dev"])), world.deployer
            assert up(world, stacks["dev"], told) is None
            world.deployer = prod
        refusal = up(world, stacks[name], told)
        assert refusal and any(role in line for line in told), f"without {role} on {place}: {refusal}: {told}"


def test_the_table_covers_all_that_stacks_make(stacks: Mapping[str, Graph]) -> None:
    types = {
        f"{short_module(each.type)}.{each.type.rpartition(':')[2]}"
        for graph in stacks.values()
        for each in graph.requests.values()
        if each.custom and each.type.startswith("gcp:")
    }
    assert types <= CALLS.keys()
    assert {role for role, _, _ in access_page.deployer_roles()} <= ROLES.keys()
