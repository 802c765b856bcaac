"""Each component alone: what it creates, under which parent, after what, and that its caller's options win."""

from collections.abc import Callable, Mapping
from typing import Any

import pulumi
import pytest
import vertex_training.targets.gcp
from pulumi_gcp import storage
from vertex_training.plan.folders import WritableFolders
from vertex_training.schema import shapes
from vertex_training.targets.gcp import (
    ImageRegistry,
    JobFailureAlerts,
    JobNetwork,
    PersistentResource,
    RepositoryName,
    SecretAccess,
    ServiceAgentAccess,
    Services,
    StagingBucket,
    Tensorboard,
    TrainingIdentity,
)
from vertex_training.targets.gcp.access import DataAccess, ServiceAgentAccessArgs
from vertex_training.targets.gcp.project import (
    REQUIRED_APIS,
    account_email,
    account_project,
    is_own_account,
    required_apis,
)
from vertex_training.targets.gcp.storage import StagingBucketArgs

from tests.components.targets.gcp.graph import Graph, graph

# The threads of Pulumi's mocks leave an event loop each.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
NUMBER = "123456789012"
PROJECT: Any = {"project": "acme"}
NUMBERED: Any = {**PROJECT, "project_number": NUMBER}
REGION: Any = {**PROJECT, "region": "europe-west4"}
WHERE: Any = {**NUMBERED, **REGION}
KEY = "projects/acme/locations/europe-west4/keyRings/k/cryptoKeys/c"
REPOSITORY = RepositoryName("images", "europe", "team")
FOLDERS = WritableFolders("out", "team/dev/", (), {"account": "train"})
MEMBER = "serviceAccount:train@acme.iam.gserviceaccount.com"

POOL: shapes.ResourcePool = {"machineSpec": {"machineType": "n1-standard-4"}}
MACHINES: shapes.PersistentResource = {"name": "training", "resourcePools": [POOL]}


def agent(service: str) -> str:
    return f"serviceAccount:service-{NUMBER}@{service}.iam.gserviceaccount.com"


def registry(**declared: Any) -> Graph:
    return graph(lambda: ImageRegistry("images", {**WHERE, "registry": shapes.Registry(**declared)}))


def bucket_args(**declared: Any) -> StagingBucketArgs:
    return {**WHERE, "bucket": shapes.Bucket(**declared), "member": MEMBER, "folders": FOLDERS}


def bucket(**declared: Any) -> Graph:
    return graph(lambda: StagingBucket("out", bucket_args(**declared)))


def access(**grants: Any) -> Graph:
    return graph(lambda: ServiceAgentAccess("access", {**NUMBERED, **grants}))


COMPONENTS: dict[str, Callable[[pulumi.ResourceOptions | None], pulumi.ComponentResource]] = {
    "Services": lambda opts: Services("one", {**PROJECT, "apis": ["iam"]}, opts),
    "ImageRegistry": lambda opts: ImageRegistry("one", {**WHERE, "registry": {"kmsKey": KEY}}, opts),
    "TrainingIdentity": lambda opts: TrainingIdentity("one", {**PROJECT, "account": "train"}, opts),
    "StagingBucket": lambda opts: StagingBucket("one", bucket_args(name="out", kmsKey=KEY), opts),
    "JobNetwork": lambda opts: JobNetwork("one", {**REGION, "network": {"attachment": {"subnetwork": "s"}}}, opts),
    "PersistentResource": lambda opts: PersistentResource("one", {**REGION, "resource": MACHINES}, opts),
    "JobFailureAlerts": lambda opts: JobFailureAlerts(
        "one", {**PROJECT, "alerts": {"channels": ["ml@example.com"], "displayName": "failed"}}, opts
    ),
    "SecretAccess": lambda opts: SecretAccess("one", {**PROJECT, "secrets": ["token"], "member": MEMBER}, opts),
    "Tensorboard": lambda opts: Tensorboard("one", {**REGION, "tensorboard": {"displayName": "board"}}, opts),
    "ServiceAgentAccess": lambda opts: ServiceAgentAccess(
        "one", {**NUMBERED, "repository": REPOSITORY, "kms_key": KEY}, opts
    ),
}


def test_the_exports_of_the_folder_are_these() -> None:
    shown = {name for name, value in vars(vertex_training.targets.gcp).items() if isinstance(value, type)}
    assert vertex_training.targets.gcp.__all__ == sorted(shown)


@pytest.mark.parametrize("kind", COMPONENTS)
def test_a_component_is_the_parent_of_its_resources(kind: str) -> None:
    def program() -> None:
        first = Services("first", {**PROJECT, "apis": ["iam"]})
        COMPONENTS[kind](pulumi.ResourceOptions(depends_on=[first], protect=True))

    made = graph(program)
    name = f"{kind}/one"
    assert made.requests[name].type == f"vertex-training:index:{kind}"
    children = made.inputs.keys() - {name, "Services/first", "Service/first-iam"}
    assert children
    assert {made.parent(child) for child in children} == {name}
    assert "Service/first-iam" in made.needs(name)
    assert made.requests[name].protect


def test_all_components_can_share_a_name() -> None:
    graph(lambda: [make(None) for make in COMPONENTS.values()])


def test_a_stack_requires_only_the_apis_it_uses() -> None:
    def beyond(**declared: Any) -> set[str]:
        cloud = shapes.Cloud(**{"registry": {}, "identity": {}, "bucket": {}, **declared})
        return required_apis(cloud) - set(REQUIRED_APIS)

    assert beyond() == beyond(tensorboard={}) == set()
    assert beyond(alerts={"channels": ["a@b.test"]}) == {"monitoring"}
    assert beyond(identity={"secrets": ["token"]}) == {"secretmanager"}
    assert beyond(kmsKey=KEY) == beyond(registry={"kmsKey": KEY}) == beyond(bucket={"kmsKey": KEY}) == {"cloudkms"}
    assert beyond(network={"peering": {"network": "n"}}) == {"compute"}
    assert beyond(network={"peering": {"network": "n", "prefixLength": 16}}) == {"compute", "servicenetworking"}
    assert beyond(network={"attachment": {"existing": "a", "dnsPeering": [{}]}}) == {"compute", "dns"}


def test_apis_of_provider_and_agents_are_enabled() -> None:
    assert {"cloudresourcemanager", "serviceusage", "workloadidentity"} <= set(REQUIRED_APIS)


def test_services_stay_enabled_after_destroy() -> None:
    made = graph(lambda: Services("apis", {**PROJECT, "apis": {"iam", "storage"}}))
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
    assert set(bucket(existing="theirs").inputs) == {
        "StagingBucket/out",
        "BucketIAMMember/out-read",
        "BucketIAMMember/out-view",
        "BucketIAMMember/out-write",
    }


def test_a_key_is_granted_before_its_use() -> None:
    made = registry(kmsKey=KEY)
    assert "CryptoKeyIAMMember/images-key" in made.needs("Repository/images")
    assert "ServiceIdentity/images-agent" in made.needs("CryptoKeyIAMMember/images-key")
    assert made.inputs["CryptoKeyIAMMember/images-key"]["member"] == agent("gcp-sa-artifactregistry")
    made = bucket(name="out", kmsKey=KEY)
    assert "CryptoKeyIAMMember/out-key" in made.needs("Bucket/out")
    assert made.inputs["CryptoKeyIAMMember/out-key"]["member"] == agent("gs-project-accounts")


ASK_FOR_STORAGE_AGENT = "gcp:storage/getProjectServiceAccount:getProjectServiceAccount"


def test_the_storage_agent_exists_before_its_grant() -> None:
    def program() -> None:
        first = Services("first", {**PROJECT, "apis": ["storage"]})
        options = pulumi.ResourceOptions(depends_on=[first])
        StagingBucket("out", bucket_args(name="out", kmsKey=KEY), options)

    made = graph(program)
    ((token, before),) = made.calls
    assert token == ASK_FOR_STORAGE_AGENT
    assert "Service/first-storage" in before and "CryptoKeyIAMMember/out-key" not in before
    previewed = graph(program, preview=True)
    assert previewed.calls == []
    assert previewed.inputs["CryptoKeyIAMMember/out-key"] == made.inputs["CryptoKeyIAMMember/out-key"]
    assert bucket(name="out").calls == []


def test_the_grant_waits_for_the_storage_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusal:
        async def future(self) -> None:
            raise PermissionError("no agent")

    monkeypatch.setattr(storage, "get_project_service_account_output", lambda **_: Refusal())
    with pytest.raises(PermissionError, match="no agent"):
        bucket(name="out", kmsKey=KEY)


def test_a_bucket_is_regional_and_never_public() -> None:
    made = bucket(name="out", deleteAfterDays=30)
    inputs = made.inputs["Bucket/out"]
    assert (inputs["location"], inputs["publicAccessPrevention"]) == ("EUROPE-WEST4", "enforced")
    assert inputs["uniformBucketLevelAccess"] and not inputs["forceDestroy"]
    assert inputs["lifecycleRules"] == [{"action": {"type": "Delete"}, "condition": {"age": 30}}]
    assert {grant["role"] for grant in made.of("BucketIAMMember").values()} == {
        "roles/storage.objectUser",
        "roles/storage.objectViewer",
        "roles/storage.legacyBucketReader",
    }
    assert all("Bucket/out" in made.needs(name) for name in made.of("BucketIAMMember"))


def test_an_account_has_least_privileges_and_submitters() -> None:
    people = ["group:ml@example.com", "user:a@example.com"]
    made = graph(lambda: TrainingIdentity("train", {**PROJECT, "account": "train", "submitters": people}))
    grants = {(inputs["role"], inputs["member"]) for inputs in made.of("IAMMember").values()}
    assert grants == {
        ("roles/logging.logWriter", MEMBER),
        ("roles/aiplatform.user", MEMBER),
        *(("roles/iam.serviceAccountUser", member) for member in people),
    }
    assert all("Account/train" in made.needs(name) for name in made.of("IAMMember"))
    made = graph(lambda: TrainingIdentity("train", {**PROJECT, "account": "train", "uses_vertex_ai": False}))
    assert {inputs["role"] for inputs in made.of("IAMMember").values()} == {"roles/logging.logWriter"}


def test_both_agents_can_pull() -> None:
    made = access(repository=REPOSITORY)
    grants = made.of("RepositoryIamMember")
    assert {inputs["member"] for inputs in grants.values()} == {
        agent("gcp-sa-aiplatform"),
        agent("gcp-sa-aiplatform-cc"),
    }
    for name, inputs in grants.items():
        assert (inputs["project"], inputs["location"], inputs["repository"]) == ("images", "europe", "team")
        assert inputs["role"] == "roles/artifactregistry.reader"
        assert "WorkloadIdentityServiceAgent/access" in made.needs(name)


def test_a_key_is_granted_to_one_agent_alone() -> None:
    (grant,) = access(repository=REPOSITORY, kms_key=KEY).of("CryptoKeyIAMMember").values()
    assert grant == {
        "cryptoKeyId": KEY,
        "role": "roles/cloudkms.cryptoKeyEncrypterDecrypter",
        "member": agent("gcp-sa-aiplatform"),
    }


def test_agents_can_go_without_their_roles() -> None:
    made = access(repository=REPOSITORY, has_agent_roles=False)
    assert made.of("IAMMember") == {}
    assert set(made.of("RepositoryIamMember")) == {
        "RepositoryIamMember/access-pull-vertex",
        "RepositoryIamMember/access-pull-custom-code",
    }
    assert "WorkloadIdentityServiceAgent/access" in made.inputs


MADE_AGENTS = [
    {"principal": agent("gcp-sa-aiplatform"), "role": "roles/aiplatform.serviceAgent"},
    {"principal": f"serviceAccount:service-{NUMBER}@gcp-ri-aiplatform.iam.gserviceaccount.com"},
    {"principal": agent("gcp-sa-vertex-vtc"), "role": "roles/aiplatform.trainingClusterServiceAgent"},
]
"""What Google's page "Create and grant roles to service agents" has as the answer."""


def access_of(made: list[dict[str, str]], **args: Any) -> Graph:
    given: ServiceAgentAccessArgs = {**NUMBERED, **args}  # type: ignore[typeddict-item]
    return graph(lambda: ServiceAgentAccess("access", given), {"WorkloadIdentityServiceAgent": {"serviceAgents": made}})


def test_each_agent_that_is_made_gets_its_role() -> None:
    made = access_of(MADE_AGENTS)
    assert {(inputs["role"], inputs["member"]) for inputs in made.of("IAMMember").values()} == {
        ("roles/aiplatform.serviceAgent", agent("gcp-sa-aiplatform")),
        ("roles/aiplatform.customCodeServiceAgent", agent("gcp-sa-aiplatform-cc")),
        ("roles/aiplatform.trainingClusterServiceAgent", agent("gcp-sa-vertex-vtc")),
    }
    assert made.requests["IAMMember/access-role-gcp-sa-vertex-vtc"].retainOnDelete
    assert access_of(MADE_AGENTS, has_agent_roles=False).of("IAMMember") == {}


def test_agents_that_are_there_are_not_asked_for() -> None:
    made = access_of([], creates_agents=False, repository=REPOSITORY)
    assert made.of("WorkloadIdentityServiceAgent") == {}
    assert set(made.of("IAMMember")) == {"IAMMember/access-role-vertex", "IAMMember/access-role-custom-code"}
    assert len(made.of("RepositoryIamMember")) == 2


def test_agents_read_other_repositories_too() -> None:
    other = RepositoryName("other", "us", "trainers")
    grants = access(repository=REPOSITORY, other_repositories=[other]).of("RepositoryIamMember").values()
    readers = {agent("gcp-sa-aiplatform"), agent("gcp-sa-aiplatform-cc")}
    assert {(each["project"], each["member"]) for each in grants} == {
        (project, member) for project in ("images", "other") for member in readers
    }


def test_data_is_granted_once_a_place() -> None:
    uris = ["gs://acme/train/*.csv", "gs://acme/test/", "bq://sales.eu.orders", "bq://sales.eu.clients"]
    made = graph(lambda: DataAccess("data", {"project": "acme", "uris": uris, "member": MEMBER}))
    assert {(each["bucket"], each["role"]) for each in made.of("BucketIAMMember").values()} == {
        ("acme", "roles/storage.objectViewer"),
        ("acme", "roles/storage.legacyBucketReader"),
    }
    tables = [each for name, each in made.inputs.items() if "tableId" in each]
    assert {(each["project"], each["datasetId"], each["tableId"], each["role"]) for each in tables} == {
        ("sales", "eu", table, "roles/bigquery.dataViewer") for table in ("orders", "clients")
    }
    on_project = {each["role"] for each in made.of("IAMMember").values() if each["project"] == "acme"}
    assert on_project == {"roles/bigquery.jobUser", "roles/bigquery.readSessionUser"}


def test_soft_delete_is_google_s_unless_it_is_given() -> None:
    assert "softDeletePolicy" not in bucket(name="out").inputs["Bucket/out"]
    for text, seconds in (("0s", 0), ("604800s", 604800)):
        policy = bucket(name="out", softDelete=text).inputs["Bucket/out"]["softDeletePolicy"]
        assert policy == {"retentionDurationSeconds": seconds}


def test_all_agents_exist_with_their_roles_and_stay() -> None:
    made = access()
    (agents,) = made.of("WorkloadIdentityServiceAgent").values()
    assert agents == {"parent": f"projects/{NUMBER}/locations/global/serviceProducers/aiplatform.googleapis.com"}
    assert {(inputs["role"], inputs["member"]) for inputs in made.of("IAMMember").values()} == {
        ("roles/aiplatform.serviceAgent", agent("gcp-sa-aiplatform")),
        ("roles/aiplatform.customCodeServiceAgent", agent("gcp-sa-aiplatform-cc")),
    }
    for name in made.of("IAMMember"):
        assert "WorkloadIdentityServiceAgent/access" in made.needs(name)
        assert made.requests[name].retainOnDelete
    assert made.requests["WorkloadIdentityServiceAgent/access"].retainOnDelete


def test_vertex_ai_may_join_an_attachment() -> None:
    made = access(attachment_role_id="training")
    (role,) = made.of("IAMCustomRole").values()
    assert (role["project"], role["roleId"], role["permissions"]) == (
        "acme",
        "training",
        ["compute.networkAttachments.get", "compute.networkAttachments.update", "compute.regionOperations.get"],
    )
    assert made.inputs["IAMMember/access-attachment"] == {
        "project": "acme",
        "role": "projects/acme/roles/training",
        "member": agent("gcp-sa-aiplatform"),
    }
    needed = {"IAMCustomRole/access-attachment", "WorkloadIdentityServiceAgent/access"}
    assert made.needs("IAMMember/access-attachment") >= needed


def test_grants_outside_the_project_are_created() -> None:
    buckets = ("artifacts.old.appspot.com",)
    foreign_account = "t@other.iam.gserviceaccount.com"
    made = access(legacy_buckets=buckets, dns_projects=("dns-host",), foreign_account=foreign_account)
    readers = {agent("gcp-sa-aiplatform"), agent("gcp-sa-aiplatform-cc")}
    assert {inputs["member"] for inputs in made.of("BucketIAMMember").values()} == readers
    legacy = f"serviceAccount:service-{NUMBER}@cloud-ml.google.com.iam.gserviceaccount.com"
    with_legacy = access(legacy_buckets=buckets, has_legacy_agent=True).of("BucketIAMMember").values()
    assert {inputs["member"] for inputs in with_legacy} == {*readers, legacy}
    assert (
        made.inputs["IAMMember/access-dns-dns-host"].items()
        >= {"project": "dns-host", "role": "roles/dns.peer"}.items()
    )
    assert made.inputs["IAMMember/access-tokens"] == {
        "serviceAccountId": "projects/-/serviceAccounts/t@other.iam.gserviceaccount.com",
        "role": "roles/iam.serviceAccountTokenCreator",
        "member": agent("gcp-sa-aiplatform"),
    }


def test_whatever_may_come_too_early_is_retried() -> None:
    grants: ServiceAgentAccessArgs = {
        **NUMBERED,
        "repository": REPOSITORY,
        "kms_key": KEY,
        "legacy_buckets": ["artifacts.old.appspot.com"],
        "dns_projects": ["dns"],
        "foreign_account": "t@other.iam.gserviceaccount.com",
        "attachment_role_id": "role",
    }
    made = graph(
        lambda: [
            *(make(None) for make in COMPONENTS.values()),
            ServiceAgentAccess("all", grants),
        ]
    )
    at_once = {name for name, request in made.requests.items() if request.custom and not is_retried(request)}
    # An API is enabled by two others, which someone has enabled by hand.
    assert at_once == {"Service/one-iam"}


def is_retried(request: Any) -> bool:
    return any(hook.startswith("until-known") for hook in request.hooks.on_error)


DEFAULT_ACCOUNTS = (f"{NUMBER}-compute@developer.gserviceaccount.com", "acme@appspot.gserviceaccount.com")


@pytest.mark.parametrize("email", ["t@acme.iam.gserviceaccount.com", *DEFAULT_ACCOUNTS])
def test_default_accounts_belong_to_their_project(email: str) -> None:
    assert is_own_account(email, "acme", NUMBER)
    assert not is_own_account(email, "other", "210987654321")
    assert not is_own_account(email, "example.com:acme", "210987654321")


def test_a_domain_project_has_valid_names() -> None:
    email = account_email("train", "example.com:acme")
    assert email == "train@acme.example.com.iam.gserviceaccount.com"
    assert is_own_account(email, "example.com:acme", NUMBER)
    of_app_engine = "acme.example.com@appspot.gserviceaccount.com"
    assert account_project(email) == account_project(of_app_engine) == "example.com:acme"
    prefix = RepositoryName("example.com:acme", "europe", "team").image_prefix
    assert prefix == "europe-docker.pkg.dev/example.com/acme/team"


def test_keep_with_mutable_tags_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    warnings: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", warnings.append)
    for declared, count in [({"keep": 3}, 0), ({"immutableTags": False}, 0), ({"keep": 3, "immutableTags": False}, 1)]:
        warnings.clear()
        given = shapes.Registry(**declared)  # type: ignore[typeddict-item]
        graph(lambda given=given: ImageRegistry("images", {**WHERE, "registry": given}), preview=True)  # type: ignore[misc]
        assert len(warnings) == count, declared
    assert "all but the newest 3 versions" in warnings[0]


def test_machines_have_what_jobs_have() -> None:
    zone: shapes.DnsPeering = {"domain": "corp.", "targetProject": "dns-host", "targetNetwork": "n"}
    attached = {"pscInterfaceConfig": {"networkAttachment": "theirs", "dnsPeeringConfigs": [zone]}}
    peered = {"network": "projects/1/global/networks/n", "reservedIpRanges": ["old"]}
    pool: shapes.ResourcePool = {
        "machineSpec": {"machineType": "g2-standard-4", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 1},
        "autoscalingSpec": {"minReplicaCount": 2, "maxReplicaCount": 4},
        "diskSpec": {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 200},
    }

    def made(fields: Mapping[str, Any], **declared: Any) -> dict[str, Any]:
        machines: shapes.PersistentResource = {"name": "training", "resourcePools": [pool]}
        args = {**REGION, "resource": machines, "network": fields, **declared}
        found = graph(lambda: PersistentResource("machines", args))
        return found.inputs["AiPersistentResource/machines"]

    own = {"serviceAccountSpec": {"enableCustomServiceAccount": True}}
    whole = made(attached, kms_key=KEY, labels={"team": "vision"})
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
    assert made(peered).items() >= peered.items()


def test_an_existing_tensorboard_is_named_as_it_is() -> None:
    name = "projects/acme/locations/europe-west4/tensorboards/77"
    boards = []
    made = graph(lambda: boards.append(Tensorboard("board", {**REGION, "tensorboard": {"existing": name}})))
    assert set(made.inputs) == {"Tensorboard/board"}
    assert (boards[0].fields, boards[0].created_name) == ({"tensorboard": name}, None)


def test_failed_jobs_are_told_to_each_channel_once() -> None:
    existing = "projects/acme/notificationChannels/7"
    channels = ["ml@example.com", existing, "ml@example.com"]
    alerts: shapes.Alerts = {"channels": channels, "displayName": "failed"}
    made = graph(lambda: JobFailureAlerts("alerts", {**PROJECT, "alerts": alerts}))
    (channel,) = made.of("NotificationChannel").values()
    assert (channel["type"], channel["labels"]) == ("email", {"email_address": "ml@example.com"})
    (policy,) = made.of("AlertPolicy").values()
    assert policy["notificationChannels"] == ["projects/acme-dev/notificationChannels/5", existing]
    assert policy["alertStrategy"] == {"notificationRateLimit": {"period": "300s"}}
    (condition,) = policy["conditions"]
    assert '(textPayload:"Job failed" OR' in condition["conditionMatchedLog"]["filter"]
    extracted = condition["conditionMatchedLog"]["labelExtractors"]
    assert all(f"${{log.extracted_label.{label}}}" in policy["documentation"]["content"] for label in extracted)


def test_secrets_of_any_project_can_be_read() -> None:
    secrets = ["token", "projects/vault/secrets/token", "token"]
    made = graph(lambda: SecretAccess("secrets", {**PROJECT, "secrets": secrets, "member": MEMBER}))
    grants = made.of("SecretIamMember").values()
    found = sorted((grant["project"], grant["secretId"]) for grant in grants)
    assert found == [("acme", "token"), ("vault", "token")]
    assert {(grant["role"], grant["member"]) for grant in grants} == {("roles/secretmanager.secretAccessor", MEMBER)}
