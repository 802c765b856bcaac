"""The foundation of the target gcp as a whole, and what stands on it: what is made, below what, and after what."""

import contextlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml
from vertex_training.program import create_foundation
from vertex_training.schema import shapes
from vertex_training.settings.settings import Settings
from vertex_training.stack import Images, Jobs, Packages, Sources
from vertex_training.targets.gcp import GcpFoundation, Services
from vertex_training.targets.gcp.storage import inside

from tests import access_page
from tests.components.projects import load
from tests.components.targets.gcp.graph import Graph, graph
from tests.components.workflow.schedules import request, scheduled
from tests.standins.gcp.properties import labels_property, problems
from vertex_api.schedules import ScheduleRequest

# The threads of Pulumi's mocks leave an event loop each.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
KEY = "projects/acme-dev/locations/europe-west4/keyRings/k/cryptoKeys/c"
ZONE: shapes.DnsPeering = {"domain": "corp.", "targetProject": "dns-host", "targetNetwork": "n"}
PLAIN: dict[str, Any] = {
    "target": "gcp",
    "project": "acme-dev",
    "projectNumber": "123456789012",
    "region": "europe-west4",
    "include": ["jobs.yaml"],
}
ALL: dict[str, Any] = {
    "kmsKey": KEY,
    "registry": {"kmsKey": KEY, "legacyBuckets": ["artifacts.old.appspot.com"], "legacyAgent": True},
    "bucket": {"kmsKey": KEY, "deleteAfterDays": 30},
    "identity": {"submitters": ["group:ml@example.com"], "secrets": ["hf-token"]},
    "alerts": {"channels": ["ml@example.com"]},
    "network": {"attachment": {"subnetwork": "sub", "dnsPeering": [ZONE]}},
    "persistentResource": {"name": "training", "resourcePools": [{"machineSpec": {"machineType": "n1-standard-4"}}]},
    "tensorboard": {},
    "labels": {"team": "vision"},
    "builder": {"cloudBuild": {"secrets": {"token": "projects/acme-dev/secrets/pip-token/versions/3"}}},
}
PEERED = {"peering": {"network": "projects/1/global/networks/n", "prefixLength": 16}}
JOBS = """\
images: {trainer: {context: trainer}}
packages: {script: {script: trainer/train.py}}
customJobs:
  train:
    jobSpec:
      workerPoolSpecs:
        - machineSpec: {machineType: n1-standard-4}
          containerSpec: {imageUri: "${images.trainer}", args: ["${packages.script}"]}
    lifecycle: {wait: true}
"""
CLOUD = "GcpFoundation/gcp"
PARTS = {
    "Services/services": {f"Service/services-{api}" for api in ("aiplatform", "artifactregistry", "iam", "logging")}
    | {f"Service/services-{api}" for api in ("storage", "compute", "dns", "cloudkms", "cloudresourcemanager")}
    | {f"Service/services-{api}" for api in ("serviceusage", "workloadidentity", "monitoring", "secretmanager")}
    | {"Service/services-cloudbuild"},
    "ImageRegistry/registry": {
        "Repository/registry",
        "ServiceIdentity/registry-agent",
        "CryptoKeyIAMMember/registry-key",
    },
    "TrainingIdentity/identity": {
        "Account/identity",
        "IAMMember/identity-logs",
        "IAMMember/identity-vertex",
        "IAMMember/identity-group:ml@example.com",
    },
    "StagingBucket/bucket": {
        "Bucket/bucket",
        "BucketIAMMember/bucket-read",
        "BucketIAMMember/bucket-view",
        "BucketIAMMember/bucket-write",
        "CryptoKeyIAMMember/bucket-key",
    },
    "BuilderIdentity/builder": {
        "Account/builder",
        "IAMMember/builder-logs",
        "IAMMember/builder-group:ml@example.com",
        "RepositoryIamMember/builder-push",
        "BucketIAMMember/builder-sources",
    },
    "SecretAccess/builder-secrets": {"SecretIamMember/builder-secrets-projects/acme-dev/secrets/pip-token"},
    "JobNetwork/network": {"NetworkAttachment/network"},
    "PersistentResource/machines": {"AiPersistentResource/machines"},
    "JobFailureAlerts/alerts": {"AlertPolicy/alerts", "NotificationChannel/alerts-ml@example.com"},
    "SecretAccess/secrets": {"SecretIamMember/secrets-hf-token"},
    "Tensorboard/tensorboard": {"AiTensorboard/tensorboard"},
    "ServiceAgentAccess/access": {
        "WorkloadIdentityServiceAgent/access",
        "IAMCustomRole/access-attachment",
        "IAMMember/access-attachment",
        *(f"IAMMember/access-role-{agent}" for agent in ("vertex", "custom-code")),
        *(f"RepositoryIamMember/access-pull-{agent}" for agent in ("vertex", "custom-code")),
        "CryptoKeyIAMMember/access-key-vertex",
        *(f"BucketIAMMember/access-artifacts.old.appspot.com-{agent}" for agent in ("vertex", "custom-code", "legacy")),
        "IAMMember/access-dns-acme-dev",
        "IAMMember/access-dns-dns-host",
    },
}
"""Each component of a foundation that is asked for all there is, and what it makes."""
MADE = set.union(*PARTS.values())
LEDGER = "Ledger/job-names"
"""Stands between the foundation and its jobs."""
ABOVE = {"TrainingImage/trainer", "PythonPackage/script", "CustomJob/train", "Completion/wait-for-jobs"}
"""What stands on it."""
KNOWN_LATER = {
    "TrainingImage": {"digest": "sha256:1"},
    "CustomJob": {"run": {"name": "1", "state": "JOB_STATE_PENDING", "page": "", "logs": ""}},
    "Completion": {"results": {"train": {"state": "JOB_STATE_SUCCEEDED"}}},
}


def settings(folder: Path, jobs: str = JOBS, **stack: Any) -> Settings:
    (folder / "trainer").mkdir(exist_ok=True)
    (folder / "trainer" / "Dockerfile").write_text("FROM scratch\nCOPY . /\n")
    (folder / "trainer" / "train.py").touch()
    config = {f"vertex-training:{key}": value for key, value in {**PLAIN, **stack}.items()}
    return load(folder, yaml.safe_dump({"config": config}), jobs=jobs)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """The whole program on a foundation that is asked for all there is."""
    folder = tmp_path_factory.mktemp("whole")
    known = settings(folder, **ALL)

    def program() -> None:
        ground = create_foundation(known)
        sources = Sources(Images(known, ground), Packages(known, ground))
        Jobs(known, ground, sources)

    with contextlib.chdir(folder):
        return graph(program, KNOWN_LATER)


def build_foundation_graph(known: Settings, *schedules: ScheduleRequest, are_outputs: bool = False) -> Graph:
    """The foundation alone, or with schedules on it, whose requests may be outputs."""

    def program() -> None:
        ground = GcpFoundation("gcp", known)
        for number, schedule in enumerate(schedules):
            above = pulumi.ComponentResource("vertex-training:index:Schedule", f"nightly{number or ''}")
            options = pulumi.ResourceOptions(parent=above, depends_on=[*ground.job_dependencies])
            request = pulumi.Output.from_input(schedule) if are_outputs else schedule
            ground.create_schedule(f"nightly{number or ''}", request, options)

    return graph(program)


def test_only_declared_resources_are_created(whole: Graph) -> None:
    assert set(whole.inputs) == {CLOUD, *PARTS, *MADE, LEDGER, *ABOVE}


def test_the_foundation_is_the_parent_of_its_components(whole: Graph) -> None:
    assert {part: whole.parent(part) for part in PARTS} == {
        **dict.fromkeys(PARTS, CLOUD),
        "SecretAccess/builder-secrets": "BuilderIdentity/builder",
    }
    for part, made in PARTS.items():
        assert {name: whole.parent(name) for name in made} == dict.fromkeys(made, part)


def test_tokens_are_those_that_states_have_recorded(whole: Graph) -> None:
    assert whole.requests[CLOUD].type == "vertex-training:index:GcpFoundation"
    for part in PARTS:
        assert whole.requests[part].type == f"vertex-training:index:{part.partition('/')[0]}"
    for name in ABOVE:
        assert whole.requests[name].type == f"pulumi-python:dynamic/vertex-training:{name.partition('/')[0]}"


def test_services_are_enabled_first(whole: Graph) -> None:
    services = PARTS["Services/services"]
    for name in MADE - services | ABOVE:
        assert services <= list_upstream(whole, name), name
    for name in services:
        assert not list_upstream(whole, name) & MADE


def test_a_job_waits_for_grants_image_and_package(whole: Graph) -> None:
    assert whole.needs("CustomJob/train") >= {LEDGER, "TrainingImage/trainer", "PythonPackage/script"}
    assert whole.needs(LEDGER) >= MADE
    assert "CustomJob/train" in whole.needs("Completion/wait-for-jobs")


def test_jobs_refer_to_a_new_tensorboard(whole: Graph) -> None:
    job, board = whole.inputs["CustomJob/train"], whole.inputs["AiTensorboard/tensorboard"]
    assert job["spec"]["jobSpec"]["tensorboard"] == "${tensorboard.name}"
    assert job["tensorboard"] == "projects/acme-dev/locations/europe-west4/tensorboards/77"
    assert board["encryptionSpec"] == {"kmsKeyName": KEY}
    assert (board["displayName"], board["labels"]) == ("team-dev", {"team": "vision"})
    assert PARTS["ServiceAgentAccess/access"] <= list_upstream(whole, "AiTensorboard/tensorboard")


def test_images_wait_for_repository_and_bucket(whole: Graph) -> None:
    assert "Repository/registry" in whole.needs("TrainingImage/trainer")
    assert "Bucket/bucket" in list_upstream(whole, "PythonPackage/script")


def test_grants_wait_for_their_member_and_resource(whole: Graph) -> None:
    agents = "WorkloadIdentityServiceAgent/access"
    for name in PARTS["ServiceAgentAccess/access"] - {agents, "IAMCustomRole/access-attachment"}:
        assert list_upstream(whole, name) >= {agents, "Repository/registry"}, name
        assert name in list_upstream(whole, "AiPersistentResource/machines")
    assert "Account/identity" in list_upstream(whole, "SecretIamMember/secrets-hf-token")
    assert list_upstream(whole, "BucketIAMMember/bucket-write") >= {"Bucket/bucket", "Account/identity"}


STACKS: list[dict[str, Any]] = [
    {},
    ALL,
    {"network": PEERED},
    {"identity": {"existing": "t@other.iam.gserviceaccount.com"}},
    {"tensorboard": {"displayName": "Team", "protect": True}},
    {"alerts": {"channels": ["projects/acme-dev/notificationChannels/7"], "notificationRateLimit": "3600s"}},
    {"identity": {"secrets": ["projects/vault/secrets/hf-token"]}},
    {"registry": {"project": "images", "location": "europe", "keep": 20}, "bucket": {"existing": "theirs"}},
    {"bucket": {"softDelete": "604800s"}, "registry": {"alsoRead": ["projects/images/locations/us/repositories/r"]}},
]
GRANTED = """\
data:
  train: {uri: "gs://data-of-others/train/", grant: true}
  own: {uri: "gs://acme-dev-team-dev/seed/", grant: true}
  orders: {uri: "bq://sales.eu.orders", grant: true}
"""


@pytest.mark.parametrize("stack", STACKS)
def test_the_real_provider_has_every_property(tmp_path: Path, stack: dict[str, Any]) -> None:
    made = build_foundation_graph(settings(tmp_path, **stack))
    resources = {name: request.type for name, request in made.requests.items() if request.custom and name != LEDGER}
    assert resources
    assert {name: list(problems(token, made.inputs[name])) for name, token in resources.items()} == {
        name: [] for name in resources
    }


def short_module(token: str) -> str:
    """`projects` of `gcp:projects/service:Service`, `vertex` of `pulumi-python:dynamic/vertex-training:CustomJob`."""
    module, _, last = token.split(":")[1].partition("/")
    return last if module == "dynamic" else module


def test_deployers_roles_are_documented(whole: Graph, tmp_path: Path) -> None:
    schedule = request("team_dev_nightly", scheduled("team_dev_nightly", "train", {"jobSpec": {}}))
    graphs = [whole, *(build_foundation_graph(settings(tmp_path, **stack), schedule) for stack in STACKS)]
    graphs.append(build_foundation_graph(settings(tmp_path, JOBS + GRANTED)))
    tokens = {request.type for made in graphs for request in made.requests.values() if request.custom}
    tokens |= {
        f"pulumi-python:dynamic/vertex-training:{name}" for name in ("HyperparameterTuningJob", "TrainingPipeline")
    }
    types = {f"{short_module(token)}.{token.rpartition(':')[2]}" for token in tokens}
    assert types == {name for _, name, _ in access_page.deployer_roles()}


POLICY_ADMINS = {
    "bigquery.IamMember": "roles/bigquery.dataOwner",
    "artifactregistry.RepositoryIamMember": "roles/artifactregistry.admin",
    "kms.CryptoKeyIAMMember": "roles/cloudkms.admin",
    "projects.IAMMember": "roles/resourcemanager.projectIamAdmin",
    "secretmanager.SecretIamMember": "roles/secretmanager.admin",
    "serviceaccount.IAMMember": "roles/iam.serviceAccountAdmin",
    "storage.BucketIAMMember": "roles/storage.admin",
}
"""The roles that may set policies, by the type of the grant: IAM's reference of predefined roles."""


def test_the_deployers_roles_allow_grants() -> None:
    documented = {(name, role) for role, name, _ in access_page.deployer_roles()}
    assert {row for row in documented if row[0].lower().endswith("iammember")} == set(POLICY_ADMINS.items())
    # Reading APIs is not enough, nor is using a network, nor (Google's page "Create a persistent resource") Vertex AI.
    assert [role for name, role in documented if name == "vertex.AiPersistentResource"] == ["roles/aiplatform.admin"]
    assert ("projects.Service", "roles/serviceusage.serviceUsageAdmin") in documented
    assert ("servicenetworking.Connection", "roles/compute.networkAdmin") in documented


def test_the_deployers_roles_reach_other_projects(tmp_path: Path) -> None:
    foreign = {
        "registry": {"existing": "projects/images/locations/us/repositories/r"},
        "identity": {"existing": "t@other.iam.gserviceaccount.com"},
    }
    graphs = [build_foundation_graph(settings(tmp_path, **foreign, network=net)) for net in (PEERED, ALL["network"])]
    outside = {
        f"{short_module(request.type)}.{request.type.rpartition(':')[2]}"
        for made in graphs
        for name, request in made.requests.items()
        if made.inputs.get(name, {}).get("project", "acme-dev") != "acme-dev" or name == "IAMMember/access-tokens"
    }
    places = {name: on for _, name, on in access_page.deployer_roles() if name in outside}
    assert set(places) >= {"projects.IAMMember", "serviceaccount.IAMMember", "compute.GlobalAddress"}
    assert [name for name, on in places.items() if on == "the project"] == []


def test_an_attachment_elsewhere_is_granted_by_its_owner(tmp_path: Path) -> None:
    def roles(project: str) -> list[str]:
        existing = f"projects/{project}/regions/europe-west4/networkAttachments/a"
        made = build_foundation_graph(settings(tmp_path, network={"attachment": {"existing": existing}}))
        return list(made.of("IAMCustomRole"))

    own = ["IAMCustomRole/access-attachment"]
    assert (roles("acme-dev"), roles("123456789012"), roles("host")) == (own, own, [])


def test_a_default_account_gets_no_grant_of_tokens(tmp_path: Path) -> None:
    existing = "123456789012-compute@developer.gserviceaccount.com"
    made = build_foundation_graph(settings(tmp_path, identity={"existing": existing}))
    assert "IAMMember/access-tokens" not in made.inputs


def test_agents_roles_can_be_somebody_elses(tmp_path: Path) -> None:
    def roles(identity: dict[str, Any]) -> set[str]:
        made = build_foundation_graph(settings(tmp_path, identity=identity))
        return {name for name in made.of("IAMMember") if name.startswith("IAMMember/access-role-")}

    existing = {"existing": "t@acme-dev.iam.gserviceaccount.com"}
    both = {"IAMMember/access-role-vertex", "IAMMember/access-role-custom-code"}
    assert roles({}) == roles({"agentRoles": True}) == both
    assert roles({"agentRoles": False}) == roles({**existing, "agentRoles": False}) == set()


def test_jobs_write_to_their_folders_only(tmp_path: Path) -> None:
    elsewhere = "    jobSpec:\n      baseOutputDirectory: {outputUriPrefix: gs://acme-dev-team-dev/shared/models}\n"
    made = build_foundation_graph(
        settings(
            tmp_path,
            jobs=JOBS.replace("    jobSpec:\n", elsewhere),
            bucket={"writableFolders": ["checkpoints"]},
        )
    )
    writers = {
        name: inputs for name, inputs in made.of("BucketIAMMember").items() if inputs["role"].endswith("objectUser")
    }
    assert set(writers) == {
        "BucketIAMMember/bucket-write",
        "BucketIAMMember/bucket-write-checkpoints/",
        "BucketIAMMember/bucket-write-shared/models/",
    }
    for name in ("team/dev/train/1/model/saved", "team/dev/", "team/", "checkpoints/a", "shared/models/a", "shared/"):
        assert can_write(writers.values(), name), name
    for name in ("team/dev/packages/p.tar.gz", "team/dev/build-sources/d.tar.gz", "team/prod/a", "team/dev2/a", "a"):
        assert not can_write(writers.values(), name), name
    for name in ("shared/a", "shared/models2/a", "team/a", "dev/a", "xteam/dev/a"):
        assert not can_write(writers.values(), name), name
    readers = {name: inputs for name, inputs in made.of("BucketIAMMember").items() if name not in writers}
    assert {inputs["role"] for inputs in readers.values() if "condition" not in inputs} == {
        "roles/storage.legacyBucketReader",
        "roles/storage.objectViewer",
    }


def test_the_whole_bucket_is_writable_on_request(tmp_path: Path) -> None:
    made = build_foundation_graph(settings(tmp_path, bucket={"existing": "theirs", "writableFolders": ["/", "a"]}))
    (writer,) = (inputs for inputs in made.of("BucketIAMMember").values() if inputs["role"].endswith("objectUser"))
    assert "condition" not in writer


def test_conditions_keep_within_iams_limits() -> None:
    deep = "/".join(["a" * 9] * 30) + "/"
    closed = ("team/dev/packages/", "team/dev/build-sources/")
    for condition in (inside("out", deep), inside("out", "team/dev/", closed)):
        assert len(re.findall(r"&&|\|\||!", condition["expression"])) <= 12  # type: ignore[arg-type]


def test_quotes_in_a_folder_end_no_text() -> None:
    condition = inside("out", 'a" || "b/')
    assert can_write([{"condition": condition}], 'a" || "b/c', "out")
    assert not can_write([{"condition": condition}], "b/c", "out")


def can_write(grants: Iterable[Any], name: str, bucket: str = "acme-dev-team-dev") -> bool:
    """Whether one of the conditions is true for an object, by the parts of CEL that they use."""
    texts = re.compile(r'("(?:\\.|[^"\\])*")')
    allowed = []
    for grant in grants:
        parts = texts.split(grant["condition"]["expression"])
        for index in range(0, len(parts), 2):
            code = parts[index].replace("resource.name", "name").replace("startsWith", "startswith")
            parts[index] = code.replace("&&", " and ").replace("||", " or ").replace("!", " not ")
        allowed.append(eval("".join(parts), {"name": f"projects/_/buckets/{bucket}/objects/{name}"}))
    return any(allowed)


def test_training_code_may_go_without_vertex_ai(tmp_path: Path) -> None:
    made = build_foundation_graph(settings(tmp_path, identity={"useVertexAi": False}))
    assert "IAMMember/identity-vertex" not in made.inputs


def test_the_grants_equal_the_documented_table(tmp_path: Path) -> None:
    theirs = "trainer@other.iam.gserviceaccount.com"
    keys = {part: f"{KEY}-{part.partition('.')[0]}" for part in ("kmsKey", "registry.kmsKey", "bucket.kmsKey")}
    dev = ALL | {
        "kmsKey": keys["kmsKey"],
        "registry": {
            **ALL["registry"],
            "kmsKey": keys["registry.kmsKey"],
            "alsoRead": ["projects/images/locations/us/repositories/trainers"],
        },
        "bucket": {"kmsKey": keys["bucket.kmsKey"]},
        "network": {
            "attachment": {"subnetwork": "projects/net/regions/europe-west4/subnetworks/jobs", "dnsPeering": [ZONE]}
        },
    }
    prod = {
        "registry": {"existing": "projects/acme-dev/locations/europe-west4/repositories/theirs"},
        "identity": {"existing": theirs},
        "bucket": {"existing": "theirs"},
    }
    found = [
        list(build_foundation_graph(settings(tmp_path, jobs, **stack)).inputs.values())
        for jobs, stack in ((JOBS + GRANTED, dev), (JOBS, prod))
    ]
    on = {key: f"`{part}`" for part, key in keys.items()} | {
        "team-dev": "the repository",
        "acme-dev": "the project",
        "acme-dev-team-dev": "the bucket",
        "projects/acme-dev/serviceAccounts/team-dev@acme-dev.iam.gserviceaccount.com": "the training account",
        "artifacts.old.appspot.com": "`registry.legacyBuckets`",
        "projects/acme-dev/serviceAccounts/team-dev-build@acme-dev.iam.gserviceaccount.com": "the builder account",
        "hf-token": "`identity.secrets`",
        "pip-token": "`builder.cloudBuild.secrets`",
        "dns-host": "`targetProject` of each `dnsPeering`",
        "net": "the host project of a `subnetwork`",
        "trainers": "each of `registry.alsoRead`",
        "data-of-others": "the bucket of `data` with `grant`",
        "orders": "the table of `data` with `grant`",
        f"projects/-/serviceAccounts/{theirs}": "an `identity.existing` of another project",
    }
    who = access_page.principals("123456789012", "acme-dev", "team-dev") | {
        "group:ml@example.com": "`identity.submitters`",
        f"serviceAccount:{theirs}": "training account",
    }
    granted = access_page.made(found[0], who, on)
    # On the page, what is only with something else says so.
    rows = {(role, to, place.partition(", with ")[0]) for role, to, place in access_page.grants()}
    reader = {row for row in rows if row[0] == "roles/artifactregistry.reader" and row[2] == "the repository"}
    of_prod = access_page.made(found[1], who, on | {"theirs": "what exists"})
    assert of_prod == {
        *((role, to, "what exists") for role, to, _ in reader),
        ("roles/storage.objectUser", "training account", "folders of what exists"),
        ("roles/storage.objectViewer", "training account", "what exists"),
        ("roles/storage.legacyBucketReader", "training account", "what exists"),
        ("roles/aiplatform.serviceAgent", "Vertex AI agent", "the project"),
        ("roles/aiplatform.customCodeServiceAgent", "Custom Code agent", "the project"),
        ("roles/iam.serviceAccountTokenCreator", "Vertex AI agent", "an `identity.existing` of another project"),
    }
    assert granted | {grant for grant in of_prod if not grant[2].endswith("what exists")} == rows


def test_options_of_the_caller_apply_to_all_resources(tmp_path: Path) -> None:
    known = settings(tmp_path, **ALL)

    def program() -> None:
        first = Services("first", {"project": "acme-dev", "apis": ["iam"]})
        above = pulumi.ComponentResource("team:platform:Training", "above")
        options = pulumi.ResourceOptions(parent=above, depends_on=[first], protect=True)
        GcpFoundation("gcp", known, options)

    made = graph(program)
    assert made.parent(CLOUD) == "Training/above"
    for name in {CLOUD, *PARTS, *MADE}:
        assert made.requests[name].protect, name
        assert "Service/first-iam" in list_upstream(made, name), name


@pytest.mark.parametrize(
    ("part", "resource"),
    [("bucket", "Bucket/bucket"), ("registry", "Repository/registry"), ("tensorboard", "AiTensorboard/tensorboard")],
)
def test_protection_applies_only_where_declared(tmp_path: Path, part: str, resource: str) -> None:
    made = build_foundation_graph(settings(tmp_path, **{part: {"protect": True}}))
    assert [name for name, request in made.requests.items() if request.protect] == [resource]


@pytest.mark.parametrize("network", [PEERED, ALL["network"]])
def test_all_that_can_have_labels_has_the_stack_s(tmp_path: Path, network: dict[str, Any]) -> None:
    nightly = request("nightly", scheduled("nightly", "train", {"jobSpec": {}}))
    found = build_foundation_graph(settings(tmp_path, **{**ALL, "network": network}), nightly)
    labels = {
        name: found.inputs[name].get(key)
        for name, request in found.requests.items()
        if request.type.startswith("gcp:") and (key := labels_property(request.type))
    }
    range_ = {"GlobalAddress/network"} if network == PEERED else set()
    assert labels.keys() >= {"AlertPolicy/alerts", "Workflow/nightly-workflow", *range_}
    assert labels == dict.fromkeys(labels, ALL["labels"])


def test_own_labels_override_those_of_the_stack(tmp_path: Path) -> None:
    of = {"labels": {"team": "vision", "env": "dev"}, "bucket": {"labels": {"env": "own"}}}
    found = build_foundation_graph(settings(tmp_path, **of))
    assert found.inputs["Repository/registry"]["labels"] == of["labels"]
    assert found.inputs["Bucket/bucket"]["labels"] == {"team": "vision", "env": "own"}


def test_monitoring_has_only_labels_that_begin_with_a_letter(tmp_path: Path) -> None:
    found = build_foundation_graph(settings(tmp_path, **{**ALL, "labels": {"team": "vision", "3d": "yes"}}))
    assert found.inputs["AlertPolicy/alerts"]["userLabels"] == {"team": "vision"}
    assert found.inputs["Bucket/bucket"]["labels"] == {"team": "vision", "3d": "yes"}


def list_upstream(made: Graph, name: str) -> set[str]:
    """All that is there before the engine is told of a resource: what it and its parents need, and so on."""
    found: set[str] = set()
    pending = [name]
    while pending:
        at = pending.pop()
        needed = made.needs(at) | ({made.parent(at)} if made.requests[at].parent else set())
        pending += needed - found
        found |= needed
    return found & made.requests.keys() - {name}
