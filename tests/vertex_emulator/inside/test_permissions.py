"""What the calls of jobs need of IAM: each permission once, on what, and what services say where nothing grants it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.vertex_emulator.inside.served import ServedDoor, bearer
from vertex_emulator import names
from vertex_emulator.database.permissions import MAX_NEEDS, Need
from vertex_emulator.database.records import Job
from vertex_emulator.inside import permissions
from vertex_emulator.inside.permissions import Permissions

PLACE = "/v1/projects/my-project/locations/us-central1"
BOARD = f"{PLACE}/tensorboards/1"
RUN = f"{BOARD}/experiments/e/runs/r"
STORE = f"{PLACE}/metadataStores/default"
SECRET = "/v1/projects/my-project/secrets/hf-token/versions/latest:access"
OBJECTS = "/storage/v1/b/acme/o"
UPLOAD = "/upload/storage/v1/b/acme/o?uploadType=media&name="
ACCOUNT = "trainer@acme-dev.iam.gserviceaccount.com"


@pytest.mark.parametrize(
    ("method", "path", "permission"),
    [
        ("GET", f"{PLACE}/customJobs", "customJobs.list"),
        ("POST", f"{PLACE}/hyperparameterTuningJobs", "hyperparameterTuningJobs.create"),
        ("POST", f"{PLACE}/trainingPipelines/1:cancel", "trainingPipelines.cancel"),
        ("DELETE", f"{PLACE}/customJobs/1", "customJobs.delete"),
        ("POST", f"{PLACE}/models:upload", "models.upload"),
        ("GET", f"{PLACE}/models/1@best:listVersions", "models.list"),
        ("GET", f"{PLACE}/models/1/operations/2", "models.get"),
        ("POST", f"{PLACE}/models/1/operations/2:wait", "models.get"),
        ("PATCH", BOARD, "tensorboards.update"),
        ("GET", f"{BOARD}:batchRead", "tensorboardTimeSeries.batchRead"),
        ("POST", f"{BOARD}/experiments/e:write", "tensorboardExperiments.write"),
        ("POST", f"{BOARD}/experiments/e:batchCreate", "tensorboardTimeSeries.batchCreate"),
        ("POST", f"{BOARD}/experiments/e/runs:batchCreate", "tensorboardRuns.batchCreate"),
        ("POST", f"{RUN}:write", "tensorboardRuns.write"),
        ("GET", f"{RUN}/timeSeries/t:read", "tensorboardTimeSeries.read"),
        ("POST", f"{STORE}/contexts/c:addContextArtifactsAndExecutions", "contexts.addContextArtifactsAndExecutions"),
        ("POST", f"{STORE}/executions:purge", "executions.delete"),
    ],
)
def test_methods_of_vertex_ai_name_permissions(method: str, path: str, permission: str) -> None:
    found = permissions.of_call(method, path)
    assert found is not None and found[:2] == (f"aiplatform.{permission}", "project")


@pytest.mark.parametrize(
    "path", ["/", "/storage/v1/b", f"{PLACE}/operations/1", f"{PLACE}/nothing/1", f"{PLACE}/customJobs/1:a-b"]
)
def test_other_paths_name_none(path: str) -> None:
    assert permissions.of_call("GET", path) is None


STORAGE, BIGQUERY = "storage.googleapis.com", "bigquery.googleapis.com"
TABLES = "/bigquery/v2/projects/p/datasets/d/tables"


@pytest.mark.parametrize(
    ("host", "method", "path", "expected"),
    [
        (STORAGE, "GET", "/storage/v1/b", ["storage.buckets.list on project"]),
        (STORAGE, "GET", "/storage/v1/b/acme", ["storage.buckets.get on gs://acme"]),
        (STORAGE, "GET", OBJECTS, ["storage.objects.list on gs://acme"]),
        (STORAGE, "GET", f"{OBJECTS}/in%2Fa", ["storage.objects.get on gs://acme/in/a"]),
        (STORAGE, "GET", f"{OBJECTS}/in/a", ["storage.objects.get on gs://acme/in/a"]),
        (STORAGE, "GET", f"/download{OBJECTS}/in%2Fa", ["storage.objects.get on gs://acme/in/a"]),
        (STORAGE, "HEAD", "/acme/in/a", ["storage.objects.get on gs://acme/in/a"]),
        (STORAGE, "POST", f"/resumable/upload{OBJECTS}", ["storage.objects.create on gs://acme"]),
        (STORAGE, "PUT", f"/upload{OBJECTS}", []),  # the rest of an upload
        (STORAGE, "DELETE", f"{OBJECTS}/a", ["storage.objects.delete on gs://acme/a"]),
        (
            STORAGE,
            "POST",
            f"{OBJECTS}/a/rewriteTo/b/other/o/b%2Fc",
            ["storage.objects.get on gs://acme/a", "storage.objects.create on gs://other/b/c"],
        ),
        (
            STORAGE,
            "POST",
            f"{OBJECTS}/in/a/moveTo/o/b",
            [f"storage.objects.{each}" for each in ("get on gs://acme/in/a", "delete on gs://acme/in/a")]
            + ["storage.objects.create on gs://acme/b"],
        ),
        (STORAGE, "GET", f"{OBJECTS}/a/compose", ["storage.objects.get on gs://acme/a/compose"]),
        (STORAGE, "GET", f"{OBJECTS[:-2]}/acl", []),
        (STORAGE, "POST", f"{OBJECTS}/a/compose", ["storage.objects.create on gs://acme/a"]),
        (BIGQUERY, "POST", "/bigquery/v2/projects/my-project/queries", ["bigquery.jobs.create on project"]),
        (BIGQUERY, "POST", "/upload/bigquery/v2/projects/p/jobs", ["bigquery.jobs.create on projects/p"]),
        (BIGQUERY, "GET", f"{TABLES}/t/data", ["bigquery.tables.getData on bq://p.d.t"]),
        (BIGQUERY, "POST", f"{TABLES}/t/insertAll", ["bigquery.tables.updateData on bq://p.d.t"]),
        (BIGQUERY, "GET", f"{TABLES}/t", ["bigquery.tables.get on bq://p.d.t"]),
        (BIGQUERY, "POST", TABLES, ["bigquery.tables.create on bq://p.d"]),
        (BIGQUERY, "GET", "/bigquery/v2/projects/p/datasets/d", ["bigquery.datasets.get on bq://p.d"]),
        ("pubsub.googleapis.com", "POST", "/v1/projects/p/topics/t:publish", []),
    ],
)
def test_calls_that_are_passed_on_name_permissions(host: str, method: str, path: str, expected: list[str]) -> None:
    number = names.project_number("my-project")
    found = permissions.of_passed(host, method, path.encode(), number)
    assert [f"{permission} on {resource}" for permission, resource in found] == expected


def test_a_call_of_a_stand_in_is_refused_before_it_goes(served: ServedDoor, caller: Job) -> None:
    enforce(served)
    served.data.stand_ins.write_text(json.dumps({"my-project": {BIGQUERY: "http://127.0.0.1:1"}}))
    headers = {"Host": BIGQUERY, **bearer(served.door.token(caller))}
    said = [
        served.ask(caller, path, method, headers=headers, json={}).json()["error"]["message"]
        for method, path in (("POST", "/bigquery/v2/projects/my-project/queries"), ("GET", f"{TABLES}/t/data"))
    ]
    served.data.stand_ins.unlink()
    assert said == [
        "Access Denied: Project my-project: User does not have bigquery.jobs.create permission in project my-project.",
        "Access Denied: Table p:d.t: Permission bigquery.tables.getData denied on table p:d.t (or it may not exist).",
    ]
    assert needs(served, caller) == {("bigquery.jobs.create", "project"), ("bigquery.tables.getData", "bq://p.d.t")}


def enforce(served: ServedDoor, *rules: dict[str, Any], is_enforced: bool = True) -> None:
    said = {"account": ACCOUNT, "enforce": is_enforced, "rules": rules}
    served.data.grants.write_text(json.dumps({"my-project": said}))


@pytest.fixture
def caller(served: ServedDoor, request: pytest.FixtureRequest) -> Iterator[Job]:
    """A job, and a bucket with an object."""
    bucket = served.data.buckets / "acme" / "in"
    bucket.mkdir(parents=True, exist_ok=True)
    (bucket / "a").write_text("1")
    yield served.job(request.node.name)
    served.data.grants.unlink(missing_ok=True)


def ask(served: ServedDoor, job: Job, path: str, method: str = "GET", **options: Any) -> requests.Response:
    return served.ask(job, path, method, headers=bearer(served.door.token(job)), **options)


def needs(served: ServedDoor, job: Job) -> set[tuple[str, str]]:
    with served.database.read() as transaction:
        found = transaction.permissions.of(job.id)
    return {(each.permission.removeprefix("storage."), each.lacking or each.resource) for each in found}


@pytest.mark.parametrize(
    ("path", "method", "body", "expected"),
    [
        ("/storage/v1/b", "GET", None, {("buckets.list", "project")}),
        ("/storage/v1/b/acme", "GET", None, {("buckets.get", "gs://acme")}),
        (OBJECTS, "GET", None, {("objects.list", "gs://acme")}),
        (f"{OBJECTS}/in%2Fa", "GET", None, {("objects.get", "gs://acme")}),
        (f"/download{OBJECTS}/in%2Fa?alt=media", "GET", None, {("objects.get", "gs://acme")}),
        ("/acme/in/a", "GET", None, {("objects.get", "gs://acme")}),
        (f"{UPLOAD}new", "POST", {}, {("objects.create", "gs://acme")}),
        (f"{UPLOAD}in/a", "POST", {}, {("objects.create", "gs://acme"), ("objects.delete", "gs://acme")}),
        (
            f"{OBJECTS}/in%2Fa/rewriteTo/b/acme/o/copy",
            "POST",
            {},
            {("objects.get", "gs://acme"), ("objects.create", "gs://acme")},
        ),
        (
            f"{OBJECTS}/in%2Fa/moveTo/o/moved",
            "POST",
            {},
            {("objects.get", "gs://acme"), ("objects.create", "gs://acme"), ("objects.delete", "gs://acme")},
        ),
        (
            f"{OBJECTS}/joined/compose",
            "POST",
            {"sourceObjects": [{"name": "in/a"}]},
            {("objects.get", "gs://acme"), ("objects.create", "gs://acme")},
        ),
        (
            f"{OBJECTS}/in%2Fa",
            "PATCH",
            {"metadata": {}},
            {("objects.get", "gs://acme"), ("objects.update", "gs://acme")},
        ),
        (f"{OBJECTS}/in%2Fa", "DELETE", None, {("objects.delete", "gs://acme")}),
        (SECRET, "GET", None, {("secretmanager.versions.access", "secrets/hf-token")}),
        ("/v2/entries:write", "POST", {"entries": []}, {("logging.logEntries.create", "project")}),
        (f"{PLACE}/customJobs", "GET", None, {("aiplatform.customJobs.list", "project")}),
    ],
)
def test_a_call_is_noted_once(
    served: ServedDoor, caller: Job, path: str, method: str, body: Any, expected: set[tuple[str, str]]
) -> None:
    assert ask(served, caller, path, method, json=body).status_code < 300
    assert needs(served, caller) == expected
    ask(served, caller, path, method, json=body)
    assert len(needs(served, caller)) - len(expected) in (0, 1)  # now it is there, and is replaced
    del served.door.permissions._known[caller.id]  # as after a restart
    ask(served, caller, path, method, json=body)


def test_calls_of_a_batch_are_noted(served: ServedDoor, caller: Job) -> None:
    enforce(served)
    call = "--b\r\nContent-Type: application/http\r\n\r\nDELETE /storage/v1/b/acme/o/in%2Fa HTTP/1.1\r\n\r\n--b--\r\n"
    headers = {"Content-Type": "multipart/mixed; boundary=b", **bearer(served.door.token(caller))}
    reply = served.ask(caller, "/batch/storage/v1", "POST", data=call, headers=headers)
    assert "HTTP/1.1 403" in reply.text and (served.data.buckets / "acme/in/a").exists()
    assert needs(served, caller) == {("objects.delete", "gs://acme/in/")}


def test_a_key_needs_the_secret_too(served: ServedDoor, caller: Job) -> None:
    enforce(served)
    key = {"X-Goog-Api-Key": served.variables(caller)["SECRET_MANAGER_API_KEY"]}
    reply = served.ask(caller, SECRET, headers=key)
    assert reply.status_code == 403
    assert needs(served, caller) == {("secretmanager.versions.access", "secrets/hf-token")}


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (
            f"{OBJECTS}/in%2Fa",
            f"{ACCOUNT} does not have storage.objects.get access to the Google Cloud Storage object. Permission "
            "'storage.objects.get' denied on resource (or it may not exist).",
        ),
        (
            "/storage/v1/b/acme",
            f"{ACCOUNT} does not have storage.buckets.get access to the Google Cloud Storage bucket. Permission "
            "'storage.buckets.get' denied on resource (or it may not exist).",
        ),
        (
            SECRET,
            "Permission 'secretmanager.versions.access' denied for resource "
            "'projects/my-project/secrets/hf-token/versions/latest' (or it may not exist).",
        ),
        (
            f"{PLACE}/customJobs",
            "Permission 'aiplatform.customJobs.list' denied on resource "
            f"'//aiplatform.googleapis.com/{PLACE.removeprefix('/v1/')}' (or it may not exist).",
        ),
    ],
)
def test_services_refuse_in_their_words(served: ServedDoor, caller: Job, path: str, message: str) -> None:
    enforce(served, is_enforced=False)
    assert ask(served, caller, path).status_code == 200
    enforce(served)
    error = ask(served, caller, path).json()["error"]
    assert (error["code"], error["status"], error["message"]) == (403, "PERMISSION_DENIED", message)


def test_grants_are_of_folders(served: ServedDoor, caller: Job) -> None:
    rule = {"permissions": ["storage.objects.create", "storage.objects.delete"], "below": ["gs://acme/out/"]}
    enforce(served, {**rule, "but": ["gs://acme/out/packages/"], "at": ["gs://acme/in/a"]})
    codes = {name: ask(served, caller, UPLOAD + name, "POST", json={}).status_code for name in ("out/a", "in/a")}
    assert codes == {"out/a": 200, "in/a": 200}
    for name in ("in/ab", "output", "out/packages/a"):
        assert ask(served, caller, UPLOAD + name, "POST", json={}).status_code == 403, name
    lacking = {("objects.create", f"gs://acme{folder}") for folder in ("", "/in/", "/out/")}
    assert needs(served, caller) == lacking | {("objects.delete", "gs://acme")} | {("objects.create", "gs://acme")}


def test_what_is_noted_has_an_end(served: ServedDoor, caller: Job) -> None:
    enforce(served)
    noted = Permissions(served.database, Path("/nowhere"))
    for number in range(2 * MAX_NEEDS):
        noted.require(caller, "storage.objects.get", f"gs://bucket-{number}/{'a' * 2_000}")
    assert len(needs(served, caller)) == MAX_NEEDS
    assert max(len(resource) for _, resource in needs(served, caller)) < 400
    files = [("storage.objects.get", f"gs://other-{number}/a") for number in range(2 * MAX_NEEDS)]
    assert len(noted.of([caller], files)) == MAX_NEEDS


def test_needs_end_with_their_job(served: ServedDoor, caller: Job) -> None:
    with served.database.write() as transaction:
        transaction.permissions.add(caller.id, [Need("a", "b")])
        transaction.jobs.delete(caller.id)
        transaction.permissions.add(caller.id, [Need("c", "d")])
        assert transaction.permissions.of(caller.id) == set()
