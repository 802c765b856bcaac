"""What a stack grants its jobs in permissions: the same as its program registers, and the keys that grant more."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from vertex_training.program import create_foundation
from vertex_training.targets.gcp.grants import ROLES, Grants
from vertex_training.targets.gcp.storage import inside

from tests.components.targets.gcp.graph import Graph, graph
from tests.components.targets.gcp.test_foundation import GRANTED, JOBS, STACKS, settings
from vertex_emulator.inside.permissions import Grants as Judge
from vertex_emulator.inside.permissions import Rule

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
FOLDERS: list[dict[str, Any]] = [
    {"bucket": {"writableFolders": ["checkpoints", "shared/a/b"]}},
    {"bucket": {"writableFolders": ["/"]}, "identity": {"useVertexAi": False}},
]
TRAINER = "serviceAccount:team-dev@acme-dev.iam.gserviceaccount.com"


def registered(made: Graph, member: str) -> set[tuple[str, str, str]]:
    """Role, what it is on, and condition of all grants to a member."""
    found = set()
    for inputs in made.inputs.values():
        if inputs.get("member") == member and "serviceAccountId" not in inputs:
            table = ".".join(inputs[key] for key in ("project", "datasetId", "tableId") if "tableId" in inputs)
            on = table or inputs.get("bucket") or inputs.get("secretId") or "project"
            found.add((inputs["role"], on, inputs.get("condition", {}).get("expression", "")))
    return found


def condition(where: Any, bucket: str) -> str:
    """The condition of a grant that counts in one folder."""
    folders = [each.removeprefix(f"gs://{bucket}/") for each in where["below"]]
    if folders == [""]:
        return ""
    closed = [each.removeprefix(f"gs://{bucket}/") for each in where.get("but", ())]
    return str(inside(bucket, folders[0], closed)["expression"])


@pytest.mark.parametrize("stack", [*STACKS, *FOLDERS])
def test_grants_are_what_the_program_registers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stack: Any) -> None:
    known = settings(tmp_path, JOBS + GRANTED, **stack)
    monkeypatch.chdir(tmp_path)
    grants = Grants(known)
    said = set()
    for each in grants:
        is_write = each.role == "roles/storage.objectUser"
        said.add((each.role, each.on.split("/")[-1], condition(each.where, each.on) if is_write else ""))
    assert said == registered(graph(lambda: create_foundation(known) and None), f"serviceAccount:{grants.account}")


def judge(grants: Grants) -> Judge:
    return Judge(grants.account, True, [Rule(each.rule) for each in grants])


@pytest.mark.parametrize(
    ("permission", "resource", "is_granted"),
    [
        ("storage.objects.list", "gs://acme-dev-team-dev", True),
        ("storage.objects.get", "gs://acme-dev-team-dev/team/prod/a", True),
        ("storage.objects.create", "gs://acme-dev-team-dev/team/dev/train/a", True),
        ("storage.objects.create", "gs://acme-dev-team-dev/team/", True),
        ("storage.objects.create", "gs://acme-dev-team-dev/team/dev/packages/a", False),
        ("storage.objects.create", "gs://acme-dev-team-dev/team/prod/a", False),
        ("storage.objects.delete", "gs://acme-dev-team-dev/checkpoints/a", True),
        ("storage.objects.get", "gs://data-of-others/any/a", True),
        ("storage.objects.create", "gs://data-of-others/train/a", False),
        ("storage.objects.get", "gs://data-of-others-2/train/a", False),
        ("storage.buckets.create", "project", False),
        ("secretmanager.versions.access", "secrets/hf-token", True),
        ("secretmanager.versions.access", "secrets/hf-token-2", False),
        ("secretmanager.versions.access", "secrets/of-vault", False),
        ("logging.logEntries.create", "project", True),
        ("aiplatform.customJobs.list", "project", True),
        ("bigquery.tables.getData", "bq://sales.eu.orders", True),
        ("bigquery.tables.getData", "bq://sales.eu.orders-2", False),
        ("bigquery.tables.updateData", "bq://sales.eu.orders", False),
        ("bigquery.jobs.create", "project", True),
    ],
)
def test_what_a_stack_lets_jobs_do(tmp_path: Path, permission: str, resource: str, is_granted: bool) -> None:
    secrets = {"identity": {"secrets": ["hf-token", "projects/vault/secrets/of-vault"]}}
    known = settings(tmp_path, JOBS + GRANTED, **secrets, bucket={"writableFolders": ["checkpoints"]})
    assert judge(Grants(known)).has(permission, resource) is is_granted


@pytest.mark.parametrize(
    ("stack", "permission", "place", "line"),
    [
        (
            {"identity": {"secrets": ["a"]}},
            "secretmanager.versions.access",
            "secrets/b",
            "vertex-training:identity: {secrets: [a, b]}",
        ),
        (
            {"bucket": {"writableFolders": ["a/"]}},
            "storage.objects.create",
            "gs://acme-dev-team-dev/b/",
            "vertex-training:bucket: {writableFolders: [a/, b/]}",
        ),
        (
            {},
            "storage.objects.delete",
            "gs://acme-dev-team-dev",
            "vertex-training:bucket: {writableFolders: [/]}",
        ),
        (
            {"identity": {"secrets": ["hf"], "useVertexAi": False}},
            "aiplatform.customJobs.list",
            "project",
            "vertex-training:identity: {secrets: [hf], useVertexAi: true}",
        ),
        (
            {"data": {"raw": {"uri": "gs://raw-data/2026/", "verify": "warn"}, "other": {"uri": "gs://other/"}}},
            "storage.objects.get",
            "gs://raw-data/a/",
            "vertex-training:data: {other: {uri: 'gs://other/'}, "
            "raw: {uri: 'gs://raw-data/2026/', verify: warn, grant: true}}",
        ),
        (
            {},
            "storage.objects.list",
            "gs://acme.photos",
            "vertex-training:data: {acme-photos: {uri: 'gs://acme.photos/', grant: true}}",
        ),
        (
            {},
            "bigquery.tables.getData",
            "bq://sales.eu.orders",
            "vertex-training:data: {sales-eu-orders: {uri: 'bq://sales.eu.orders', grant: true}}",
        ),
    ],
)
def test_keys_grant_what_lacks(tmp_path: Path, stack: Any, permission: str, place: str, line: str) -> None:
    grants = Grants(settings(tmp_path, **stack))
    assert not judge(grants).has(permission, place)
    assert grants.remedies([(permission, place)]) == [line]

    key, _, value = line.removeprefix("vertex-training:").partition(": ")
    assert judge(Grants(settings(tmp_path, **{**stack, key: yaml.safe_load(value)}))).has(permission, place)


def test_data_of_an_included_file_is_granted_there(tmp_path: Path) -> None:
    declared = "data: {raw: {uri: gs://raw-data/2026/, formerly: [old]}}\n"
    lacking = [("storage.objects.get", "gs://raw-data/a/"), ("storage.objects.list", "gs://photos")]
    own, included = Grants(settings(tmp_path, JOBS + declared)).remedies(lacking)
    assert own == "vertex-training:data: {photos: {uri: 'gs://photos/', grant: true}}"
    place, _, line = included.partition(": ")
    assert place == f"jobs.yaml:{(JOBS + declared).count(chr(10))}"
    assert line == "data: {raw: {uri: 'gs://raw-data/2026/', formerly: [old], grant: true}}"
    known = settings(tmp_path, f"{JOBS}{line}\n", data=yaml.safe_load(own.partition(": ")[2]))
    assert all(judge(Grants(known)).has(*each) for each in lacking)


@pytest.mark.parametrize(
    ("stack", "permission", "place", "line"),
    [
        (
            {},
            "storage.objects.create",
            "gs://theirs/a/",
            f"gcloud storage buckets add-iam-policy-binding gs://theirs --member={TRAINER} "
            "--role=roles/storage.objectUser",
        ),
        (
            {"identity": {"existing": TRAINER.partition(":")[2]}},
            "logging.logEntries.create",
            "project",
            f"gcloud projects add-iam-policy-binding acme-dev --condition=None --member={TRAINER} "
            "--role=roles/logging.logWriter",
        ),
        (
            {},
            "bigquery.jobs.create",
            "project",
            f"gcloud projects add-iam-policy-binding acme-dev --condition=None --member={TRAINER} "
            "--role=roles/bigquery.jobUser",
        ),
        ({}, "bigquery.tables.create", "bq://a.b", "bigquery.tables.create on bq://a.b: no key of a stack grants it"),
        ({}, "storage.buckets.list", "project", "storage.buckets.list on the project: no key of a stack grants it"),
        (
            {},
            "storage.objects.create",
            "gs://acme-dev-team-dev/team/",
            "storage.objects.create on gs://acme-dev-team-dev/team/: no key of a stack grants it; write below "
            "AIP_MODEL_DIR",
        ),
    ],
)
def test_what_no_key_grants_is_said(tmp_path: Path, stack: Any, permission: str, place: str, line: str) -> None:
    assert Grants(settings(tmp_path, **stack)).remedies([(permission, place)]) == [line]


def test_a_bucket_at_home_is_granted_as_the_stack_s(tmp_path: Path) -> None:
    known = Grants(settings(tmp_path, bucket={"writableFolders": ["checkpoints"]}))
    home = Judge("", True, [Rule(each.moved("home").rule) for each in known if each.on == known.bucket])
    for folder in ("checkpoints/", "team/dev/", "team/"):
        assert home.has("storage.objects.create", f"gs://home/{folder}"), folder
    assert home.has("storage.objects.get", "gs://home/a") and home.has("storage.buckets.get", "gs://home")
    for place in ("gs://home/a", "gs://home/team/dev/packages/a", f"gs://{known.bucket}/checkpoints/a"):
        assert not home.has("storage.objects.create", place), place


def test_no_role_of_a_stack_is_empty() -> None:
    assert all(ROLES.values())
