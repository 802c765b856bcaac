"""Each component alone: what it creates, under which parent, after what, and that its caller's options win."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pulumi
import pytest

import components.targets.gcp
from components.schema import config_types
from components.targets.gcp import (
    Grants,
    ImageRegistry,
    JobNetwork,
    PersistentResource,
    RepositoryName,
    ServiceAgentAccess,
    Services,
    StagingBucket,
    TrainingIdentity,
)
from components.targets.gcp.enabled_apis import ALWAYS_REQUIRED, get_required_api_short_names
from components.targets.gcp.grant_creation_retries import MAX_PAUSE_SECONDS, MAX_TRIES, compute_retry_pause
from tests.components.targets.gcp.graph import Graph, forget_loops, graph

# The threads of Pulumi's mocks leave an event loop each.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
NUMBER = "123456789012"
WHERE: dict[str, Any] = {"project": "acme", "project_number": NUMBER, "region": "europe-west4"}
KEY = "projects/acme/locations/europe-west4/keyRings/k/cryptoKeys/c"
REPOSITORY = RepositoryName("images", "europe", "team")
MEMBER = "serviceAccount:train@acme.iam.gserviceaccount.com"

POOL: config_types.ResourcePool = {"machineSpec": {"machineType": "n1-standard-4"}}
MACHINES: config_types.PersistentResource = {"name": "training", "resourcePools": [POOL]}


@pytest.fixture(scope="module", autouse=True)
def collected() -> Iterator[None]:
    """Close the event loops, so that no later test warns of them."""
    yield
    forget_loops()


def agent(service: str) -> str:
    return f"serviceAccount:service-{NUMBER}@{service}.iam.gserviceaccount.com"


def registry(**declared: Any) -> Graph:
    return graph(lambda: ImageRegistry("images", config_types.Registry(**declared), **WHERE))


def bucket(**declared: Any) -> Graph:
    return graph(lambda: StagingBucket("out", config_types.Bucket(**declared), member=MEMBER, **WHERE))


def access(grants: Grants) -> Graph:
    return graph(lambda: ServiceAgentAccess("access", grants, project="acme", project_number=NUMBER))


COMPONENTS: dict[str, Callable[[pulumi.ResourceOptions | None], pulumi.ComponentResource]] = {
    "vertex:gcp:Services": lambda opts: Services("one", ["iam"], project="acme", opts=opts),
    "vertex:gcp:ImageRegistry": lambda opts: ImageRegistry("one", {"kmsKey": KEY}, **WHERE, opts=opts),
    "vertex:gcp:TrainingIdentity": lambda opts: TrainingIdentity("one", "train", project="acme", opts=opts),
    "vertex:gcp:StagingBucket": lambda opts: StagingBucket(
        "one", {"name": "out", "kmsKey": KEY}, member=MEMBER, **WHERE, opts=opts
    ),
    "vertex:gcp:JobNetwork": lambda opts: JobNetwork(
        "one", {"attachment": {"subnetwork": "s"}}, project="acme", region="europe-west4", opts=opts
    ),
    "vertex:gcp:PersistentResource": lambda opts: PersistentResource(
        "one", MACHINES, project="acme", region="europe-west4", opts=opts
    ),
    "vertex:gcp:ServiceAgentAccess": lambda opts: ServiceAgentAccess(
        "one", Grants(REPOSITORY, kms_key=KEY), project="acme", project_number=NUMBER, opts=opts
    ),
}


def test_the_exports_of_the_folder_are_these() -> None:
    shown = {name for name, value in vars(components.targets.gcp).items() if isinstance(value, type)}
    assert components.targets.gcp.__all__ == sorted(shown)


@pytest.mark.parametrize("token", COMPONENTS)
def test_a_component_is_the_parent_of_its_resources(token: str) -> None:
    def program() -> None:
        first = Services("first", ["iam"], project="acme")
        COMPONENTS[token](pulumi.ResourceOptions(depends_on=[first], protect=True))

    made = graph(program)
    name = f"{token.rpartition(':')[2]}/one"
    assert made.requests[name].type == token
    children = made.inputs.keys() - {name, "Services/first", "Service/first-iam"}
    assert children
    assert {made.parent(child) for child in children} == {name}
    assert "Service/first-iam" in made.needs(name)
    assert made.requests[name].protect


def test_all_components_can_share_a_name() -> None:
    graph(lambda: [make(None) for make in COMPONENTS.values()])


def test_a_stack_requires_only_the_apis_it_uses() -> None:
    def beyond(**declared: Any) -> set[str]:
        return get_required_api_short_names(config_types.Cloud(**{"registry": {}, "bucket": {}, **declared})) - set(
            ALWAYS_REQUIRED
        )

    assert beyond() == set()
    assert beyond(kmsKey=KEY) == beyond(registry={"kmsKey": KEY}) == beyond(bucket={"kmsKey": KEY}) == {"cloudkms"}
    assert beyond(network={"peering": {"network": "n"}}) == {"compute"}
    assert beyond(network={"peering": {"network": "n", "prefixLength": 16}}) == {"compute", "servicenetworking"}
    assert beyond(network={"attachment": {"existing": "a", "dnsPeering": [{}]}}) == {"compute", "dns"}


def test_services_stay_enabled_after_destroy() -> None:
    made = graph(lambda: Services("apis", {"iam", "storage"}, project="acme"))
    assert made.of("Service") == {
        f"Service/apis-{api}": {"project": "acme", "service": f"{api}.googleapis.com", "disableOnDestroy": False}
        for api in ("iam", "storage")
    }


def test_a_repository_deletes_old_untagged_images() -> None:
    (made,) = registry(keep=20).of("Repository").values()
    assert made["dockerConfig"] == {"immutableTags": True}
    assert [policy["id"] for policy in made["cleanupPolicies"]] == ["delete-untagged", "delete-old", "keep-newest"]
    assert made["cleanupPolicies"][2]["mostRecentVersions"] == {"keepCount": 20}
    (made,) = registry(immutableTags=False, labels={"team": "ml"}).of("Repository").values()
    assert (made["dockerConfig"], made["labels"]) == ({"immutableTags": False}, {"team": "ml"})


def test_a_repository_is_created_in_another_project() -> None:
    made = registry(project="images", location="europe", repository="team", kmsKey=KEY)
    (repository,) = made.of("Repository").values()
    assert (repository["project"], repository["location"], repository["repositoryId"]) == ("images", "europe", "team")
    assert made.of("CryptoKeyIAMMember") == {}


def test_existing_resources_are_not_created() -> None:
    assert set(registry(existing="projects/p/locations/l/repositories/r").inputs) == {"ImageRegistry/images"}
    assert set(registry(url="registry.example.com/team").inputs) == {"ImageRegistry/images"}
    assert set(bucket(existing="theirs").inputs) == {"StagingBucket/out", "BucketIAMMember/out-write"}


def test_a_key_is_granted_before_its_use() -> None:
    made = registry(kmsKey=KEY)
    assert "CryptoKeyIAMMember/images-key" in made.needs("Repository/images")
    assert "ServiceIdentity/images-agent" in made.needs("CryptoKeyIAMMember/images-key")
    assert made.inputs["CryptoKeyIAMMember/images-key"]["member"] == agent("gcp-sa-artifactregistry")
    made = bucket(name="out", kmsKey=KEY)
    assert "CryptoKeyIAMMember/out-key" in made.needs("Bucket/out")
    assert made.inputs["CryptoKeyIAMMember/out-key"]["member"] == agent("gs-project-accounts")


def test_a_bucket_is_regional_and_never_public() -> None:
    made = bucket(name="out", deleteAfterDays=30)
    inputs = made.inputs["Bucket/out"]
    assert (inputs["location"], inputs["publicAccessPrevention"]) == ("EUROPE-WEST4", "enforced")
    assert inputs["uniformBucketLevelAccess"] and not inputs["forceDestroy"]
    assert inputs["lifecycleRules"] == [{"action": {"type": "Delete"}, "condition": {"age": 30}}]
    assert made.needs("BucketIAMMember/out-write") >= {"Bucket/out"}


def test_an_account_has_least_privileges_and_submitters() -> None:
    people = ["group:ml@example.com", "user:a@example.com"]
    made = graph(lambda: TrainingIdentity("train", "train", project="acme", submitters=people))
    grants = {(inputs["role"], inputs["member"]) for inputs in made.of("IAMMember").values()}
    assert grants == {
        ("roles/logging.logWriter", MEMBER),
        ("roles/aiplatform.user", MEMBER),
        *(("roles/iam.serviceAccountUser", member) for member in people),
    }
    assert all("Account/train" in made.needs(name) for name in made.of("IAMMember"))


def test_both_agents_can_pull_from_an_existing_repository() -> None:
    made = access(Grants(REPOSITORY))
    grants = made.of("RepositoryIamMember")
    assert {inputs["member"] for inputs in grants.values()} == {
        agent("gcp-sa-aiplatform"),
        agent("gcp-sa-aiplatform-cc"),
    }
    for name, inputs in grants.items():
        assert (inputs["project"], inputs["location"], inputs["repository"]) == ("images", "europe", "team")
        assert inputs["role"] == "roles/artifactregistry.reader"
        assert "ServiceIdentity/access" in made.needs(name)


def test_grants_outside_the_project_are_created() -> None:
    made = access(Grants(None, None, ("artifacts.old.appspot.com",), ("dns-host",), "t@other.iam.gserviceaccount.com"))
    legacy = f"serviceAccount:service-{NUMBER}@cloud-ml.google.com.iam.gserviceaccount.com"
    assert {inputs["member"] for inputs in made.of("BucketIAMMember").values()} == {
        agent("gcp-sa-aiplatform"),
        agent("gcp-sa-aiplatform-cc"),
        legacy,
    }
    assert (
        made.inputs["IAMMember/access-dns-dns-host"].items()
        >= {"project": "dns-host", "role": "roles/dns.peer"}.items()
    )
    assert made.inputs["IAMMember/access-tokens"] == {
        "serviceAccountId": "projects/-/serviceAccounts/t@other.iam.gserviceaccount.com",
        "role": "roles/iam.serviceAccountTokenCreator",
        "member": agent("gcp-sa-aiplatform"),
    }
    assert set(access(Grants(None)).inputs) == {"ServiceAgentAccess/access", "ServiceIdentity/access"}


def network(declared: config_types.Network) -> tuple[Graph, JobNetwork]:
    made: list[JobNetwork] = []
    found = graph(lambda: made.append(JobNetwork("net", declared, project="acme", region="europe-west4")))
    return found, made[0]


def test_a_peering_is_created_with_its_range() -> None:
    peering: config_types.Peering = {"network": "projects/1/global/networks/n", "reservedIpRanges": ["old"]}
    found, made = network({"peering": peering})
    assert set(found.inputs) == {"JobNetwork/net"}
    assert made.fields == peering
    found, made = network({"peering": {**peering, "prefixLength": 16}})
    assert found.inputs["GlobalAddress/net"]["prefixLength"] == 16
    assert found.inputs["Connection/net"]["reservedPeeringRanges"] == ["old", "net"]
    assert "GlobalAddress/net" in found.needs("Connection/net")
    assert made.fields["reservedIpRanges"] == ["old", "net"]


def test_an_attachment_is_created_in_a_subnetwork() -> None:
    zone: config_types.DnsPeering = {"domain": "corp.", "targetProject": "dns-host", "targetNetwork": "n"}
    found, made = network({"attachment": {"subnetwork": "sub", "dnsPeering": [zone]}})
    assert found.inputs["NetworkAttachment/net"]["subnetworks"] == ["sub"]
    name = "projects/acme/regions/europe-west4/networkAttachments/net"
    assert made.fields == {"pscInterfaceConfig": {"networkAttachment": name, "dnsPeeringConfigs": [zone]}}
    assert made.dns_projects == ("dns-host",)
    found, made = network({"attachment": {"existing": "theirs"}})
    assert set(found.inputs) == {"JobNetwork/net"}


def test_a_grant_to_an_unknown_account_is_retried() -> None:
    unknown = "Error 400: Service account x does not exist., badRequest"
    assert [compute_retry_pause([unknown] * count) for count in (1, 2, 3)] == [1.0, 2.0, 4.0]
    assert compute_retry_pause([unknown] * (MAX_TRIES - 1)) == MAX_PAUSE_SECONDS
    assert compute_retry_pause([unknown] * MAX_TRIES) is None
    assert compute_retry_pause(["Error 403: denied", unknown]) is None


def test_machines_have_network_key_and_labels_of_jobs() -> None:
    zone: config_types.DnsPeering = {"domain": "corp.", "targetProject": "dns-host", "targetNetwork": "n"}
    _, attached = network({"attachment": {"existing": "theirs", "dnsPeering": [zone]}})
    _, peered = network({"peering": {"network": "projects/1/global/networks/n", "reservedIpRanges": ["old"]}})
    pool: config_types.ResourcePool = {
        "machineSpec": {"machineType": "g2-standard-4", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 1},
        "autoscalingSpec": {"minReplicaCount": 2, "maxReplicaCount": 4},
        "diskSpec": {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 200},
    }

    def made(fields: Mapping[str, Any], **declared: Any) -> dict[str, Any]:
        machines: config_types.PersistentResource = {"name": "training", "resourcePools": [pool]}
        where = {"project": "acme", "region": "europe-west4", "network": fields}
        found = graph(lambda: PersistentResource("machines", machines, **where, **declared))
        return found.inputs["AiPersistentResource/machines"]

    own = {"serviceAccountSpec": {"enableCustomServiceAccount": True}}
    whole = made(attached.fields, kms_key=KEY, labels={"team": "vision"})
    assert whole == {
        "name": "training",
        "project": "acme",
        "location": "europe-west4",
        "resourcePools": [
            {
                **pool,
                "replicaCount": "2",
                "autoscalingSpec": {"minReplicaCount": "2", "maxReplicaCount": "4"},
            }
        ],
        "pscInterfaceConfig": {"networkAttachment": "theirs", "dnsPeeringConfigs": [zone]},
        "encryptionSpec": {"kmsKeyName": KEY},
        "labels": {"team": "vision"},
        "resourceRuntimeSpec": own,
    }
    assert (
        made(peered.fields).items() >= {"network": "projects/1/global/networks/n", "reservedIpRanges": ["old"]}.items()
    )
