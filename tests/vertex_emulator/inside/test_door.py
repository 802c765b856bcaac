"""What a job reaches of the emulator by the door, and what nobody else does."""

import socket
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from vertex_training.jobs.causes import likely_causes

from tests.vertex_emulator.inside.served import OTHER, ServedDoor, bearer
from tests.vertex_emulator.jobs import pool
from vertex_emulator.database.records import Job, Replica
from vertex_emulator.inside import door, entries, stored
from vertex_emulator.names import Location
from vertex_emulator.replicas.spec import Home

JOBS = "/v1/projects/my-project/locations/us-central1/customJobs"
OTHER_JOBS = JOBS.replace("my-project", "other-project")
STORE = f"{JOBS.rpartition('/')[0]}/metadataStores/default"
SECRET = "/v1/projects/my-project/secrets/hf-token/versions/latest:access"
WRITE = "/v2/entries:write"


@pytest.fixture(scope="module")
def job(served: ServedDoor) -> Job:
    return served.job("1")


def test_a_job_uses_the_services_of_its_project(served: ServedDoor, job: Job) -> None:
    token = bearer(served.door.token(job))
    number = job.location.project_number
    for path in (JOBS, JOBS.replace("my-project", number), JOBS.replace("/v1/", "/v1beta1/"), SECRET, "/storage/v1/b"):
        for headers in ({}, token):  # clients of emulators send none
            assert served.ask(job, path, headers=headers).status_code == 200, path


@pytest.mark.parametrize("path", [JOBS, SECRET, "/storage/v1/b", "/data/a.csv", WRITE, "/healthz", "/vertex_emulator"])
def test_whoever_is_no_job_gets_nothing(served: ServedDoor, job: Job, path: str) -> None:
    for headers in ({}, bearer(served.door.token(job)), bearer("other"), {"X-Goog-Api-Key": "other"}):
        assert served.ask(None, path, headers=headers).status_code in (401, 403), headers


def test_a_job_records_experiments_of_its_project(served: ServedDoor, job: Job) -> None:
    token, stores = bearer(served.door.token(job)), f"{JOBS.rpartition('/')[0]}/metadataStores"
    made = served.ask(job, f"{stores}?metadataStoreId=default", "POST", headers=token, json={})
    assert made.json()["response"]["name"].endswith("/default")
    contexts = f"{stores}/default/contexts"
    served.ask(job, f"{contexts}?contextId=tuning", "POST", headers=token, json={})
    others = f"{OTHER_JOBS.rpartition('/')[0]}/metadataStores"
    assert served.ask(job, f"{others}?metadataStoreId=default", "POST", headers=token, json={}).status_code == 403
    theirs = f"projects/{OTHER.project_number}/locations/us-central1/metadataStores/default/contexts/theirs"
    children = {"childContexts": [theirs]}
    reply = served.ask(job, f"{contexts}/tuning:addContextChildren", "POST", headers=token, json=children)
    assert (reply.status_code, "is none of the contexts of" in reply.text) == (400, True)
    found = served.ask(job, contexts, headers=token, params={"filter": f'parent_contexts:"{theirs}"'})
    assert (found.status_code, found.json()) == (200, {})


def test_a_token_is_of_its_job_alone(served: ServedDoor, job: Job) -> None:
    other = served.job("other")
    assert served.door.token(job) != served.door.token(other)
    reply = served.ask(other, JOBS, headers=bearer(served.door.token(job)))
    assert reply.status_code == 401
    assert "invalid authentication credentials" in reply.json()["error"]["message"]
    for forged in (f"ya29.emulated.{job.id}.", "ya29.emulated", "x", "\xfc"):
        assert served.ask(job, JOBS, headers=bearer(forged)).status_code == 401


def test_a_token_ends_with_its_job(served: ServedDoor) -> None:
    ended = served.job("ended")
    token = bearer(served.door.token(ended))
    assert served.ask(ended, JOBS, headers=token).status_code == 200
    served.end(ended)
    for headers in (token, {}):
        assert served.ask(ended, JOBS, headers=headers).status_code == 401
    assert served.ask(ended, WRITE, "POST", json={"entries": [{"textPayload": "late"}]}).status_code == 401
    assert served.messages(ended) == []


def test_other_projects_are_forbidden(served: ServedDoor, job: Job) -> None:
    places = (OTHER_JOBS, SECRET.replace("my-", "other-"), OTHER_JOBS.replace("other-project", "example.com:p"))
    for path in (*places, OTHER_JOBS.replace("other-project", OTHER.project_number)):
        reply = served.ask(job, path)
        assert (reply.status_code, reply.json()["error"]["status"]) == (403, "PERMISSION_DENIED"), path
    assert served.ask(served.job("theirs", OTHER), OTHER_JOBS).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/healthz",
        "/readyz",
        "/jobs",
        "/vertex_emulator/jobs",
        "/vertex_emulator/faults",
        "/v1/../vertex_emulator/jobs",
        "/v1/projects/my-project%2f..%2f..%2f../vertex_emulator/jobs",
        "/storage/../vertex_emulator/jobs",
        "//vertex_emulator/jobs",
        "/logs/entries:list",
    ],
)
def test_the_emulator_s_own_methods_are_none_of_a_job(served: ServedDoor, job: Job, path: str) -> None:
    token = bearer(served.door.token(job))
    for method in ("GET", "POST", "DELETE"):
        reply = served.ask(job, path, method, json={} if method == "POST" else None, headers=token)
        assert reply.status_code in (403, 404, 405, 501), (method, reply.text)


def test_no_header_says_who_connects(served: ServedDoor, job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        served.network, "replica_at", lambda address: {"10.0.0.1": (job.id, Replica(0, 0))}.get(address)
    )
    headers = {"X-Forwarded-For": "10.0.0.1", "Forwarded": "for=10.0.0.1", "X-Real-IP": "10.0.0.1"}
    assert served.ask(None, JOBS, headers=headers).status_code == 401


def test_a_host_header_leads_nowhere_else(served: ServedDoor, job: Job) -> None:
    host = {"Host": "a/v1/projects/my-project/x?", **bearer(served.door.token(job))}
    assert served.ask(job, "/vertex_emulator/jobs", headers=host).status_code in (400, 404)


@pytest.mark.parametrize(
    "path",
    [
        "/cloud-samples-data/x.csv",
        "/storage/v1/b/cloud-samples-data/o",
        "/storage/v1/b/cloud-samples-data/o/x.csv",
        "/download/storage/v1/b/cloud-samples-data/o/x.csv?alt=media",
    ],
)
def test_what_google_alone_has_is_one_clear_error(served: ServedDoor, job: Job, path: str) -> None:
    reply = served.ask(job, path, headers=bearer(served.door.token(job)))
    message = reply.json()["error"]["message"]
    assert reply.status_code == 404
    assert message.startswith(("The specified bucket does not exist: cloud-samples-data", "No such object: cloud-sam"))
    (cause,) = likely_causes([message])
    assert "cloud-samples-data" in cause and "--inputs DIR" in cause


def resolve_public(monkeypatch: pytest.MonkeyPatch, answer: Callable[[], Any]) -> None:
    """Let the name of public files have an answer of this machine's name servers."""
    of_others = socket.getaddrinfo

    def find(host: Any, *args: Any, **options: Any) -> Any:
        return answer() if host == "commondatastorage.googleapis.com" else of_others(host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", find)


@pytest.mark.parametrize("seconds", [0.0, 1.0])
def test_a_public_file_without_the_internet_is_an_error(
    served: ServedDoor, job: Job, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        time.sleep(seconds)
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    resolve_public(monkeypatch, fail)
    monkeypatch.setattr(door, "_NAME_SECONDS", 0.5)
    reply = served.ask(job, "/tensorflow/mnist.npz")
    reason = "no name server answers" if seconds else "Temporary failure in name resolution"
    assert (reply.status_code, reply.json()["error"]["message"]) == (
        404,
        "The specified bucket does not exist: tensorflow. If it is public, the file is fetched from "
        f"commondatastorage.googleapis.com, which this machine does not find ({reason}).",
    )


def test_what_is_public_is_fetched_from_google(served: ServedDoor, job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_public(monkeypatch, lambda: [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", 443))])
    reply = served.ask(job, "/tensorflow/tf-keras-datasets/a%20b.npz")
    location = "https://commondatastorage.googleapis.com/tensorflow/tf-keras-datasets/a%20b.npz"
    assert (reply.status_code, reply.headers["Location"]) == (307, location)
    assert served.ask(None, "/tensorflow/tf-keras-datasets/a%20b.npz").status_code == 401


def test_files_are_objects_by_either_api(served: ServedDoor, job: Job) -> None:
    folder = served.data.buckets / "data" / "a folder"
    folder.mkdir(parents=True)
    (folder / "a b%#?.csv").write_text("a,b\n1,2\n")
    by_xml = served.ask(job, "/data/a%20folder/a%20b%25%23%3F.csv")
    by_json = served.ask(job, "/download/storage/v1/b/data/o/a%20folder%2Fa%20b%25%23%3F.csv?alt=media")
    assert by_xml.text == by_json.text == "a,b\n1,2\n"
    part = served.ask(job, "/data/a%20folder/a%20b%25%23%3F.csv", headers={"Range": "bytes=4-6"})
    assert (part.status_code, part.text) == (206, "1,2")
    assert served.ask(job, "/data/none.csv").status_code == 404
    assert served.ask(job, "/data/a%20folder/a%20b%25%23%3F.csv", "PUT").status_code == 404


@pytest.mark.parametrize(
    "path", ["/upload/storage/v1/b/{}/o?uploadType=media&name=x", "/storage/v1/b/data/o/a/copyTo/b/{}/o/a"]
)
def test_a_job_makes_no_bucket_by_writing(served: ServedDoor, job: Job, path: str) -> None:
    (served.data.buckets / "data").mkdir(exist_ok=True)
    (served.data.buckets / "data" / "a").write_text("1")
    refused = served.ask(job, path.format("dtaa"), "POST")
    assert (refused.status_code, refused.json()["error"]["message"]) == (
        404,
        "The specified bucket does not exist: dtaa.",
    )
    assert not (served.data.buckets / "dtaa").exists()
    invalid = served.ask(job, path.format("Data"), "POST")
    assert (invalid.status_code, invalid.json()["error"]["message"]) == (400, "Invalid bucket name: 'Data'")
    assert served.ask(job, path.format("data"), "POST").status_code == 200


def test_log_entries_are_lines_of_the_job(served: ServedDoor) -> None:
    job = served.job("writer")
    body = {
        "logName": "projects/my-project/logs/other",
        "resource": {"type": "ml_job", "labels": {"job_id": "1"}},
        "entries": [
            {"textPayload": "ready", "severity": "WARNING"},
            {"jsonPayload": {"message": "plain"}, "severity": "NONE"},
            {"jsonPayload": {"loss": 0.5, "message": "ü"}},
        ],
    }
    assert served.ask(job, WRITE, "POST", json=body).json() == {}
    assert served.messages(job) == [
        ("WARNING", "ready"),
        ("DEFAULT", "plain"),
        ("DEFAULT", '{"loss": 0.5, "message": "ü"}'),
    ]


@pytest.mark.parametrize("given", [None, {}, [1], [{"severity": "INFO"}]])
def test_entries_of_another_form_are_refused(served: ServedDoor, given: Any) -> None:
    job = served.job(f"malformed {given}")
    assert served.ask(job, WRITE, "POST", json={"entries": given}).status_code == 400
    assert served.messages(job) == []


@pytest.mark.parametrize("text", ["x" * 300, "ü" * 150, ""])
def test_a_job_s_entries_have_an_end(served: ServedDoor, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(entries, "MAX_JOB_BYTES", 1000)
    job, count = served.job(f"flood of {text}"), 0
    while served.ask(job, WRITE, "POST", json={"entries": [{"textPayload": text}]}).status_code == 200:
        count += 1
        assert count < 11
    reply = served.ask(job, WRITE, "POST", json={"entries": [{"textPayload": text}]})
    assert (reply.status_code, reply.json()["error"]["status"]) == (429, "RESOURCE_EXHAUSTED")
    assert len(served.messages(job)) == count > 1


@pytest.mark.parametrize(
    ("name", "most", "metadata", "expected"),
    [("MAX_BYTES", 2_000, {}, 6), ("MAX_BYTES", 2_000, {"a": "x" * 300}, 3), ("MAX_OBJECTS", 20, {"a": [{}] * 4}, 2)],
)
def test_what_a_job_stores_has_an_end(
    served: ServedDoor, monkeypatch: pytest.MonkeyPatch, name: str, most: int, metadata: Any, expected: int
) -> None:
    contexts = f"{STORE}/contexts"
    first, second = (served.job(f"{each} of {name} {len(str(metadata))}") for each in ("flood", "other"))
    served.ask(first, f"{STORE.rpartition('/')[0]}?metadataStoreId=default", "POST", json={})
    monkeypatch.setattr(stored, name, most)
    count = 0
    while (reply := served.ask(first, contexts, "POST", json={"metadata": metadata})).status_code == 200:
        count += 1
        assert count < 10
    assert (reply.status_code, reply.json()["error"]["status"]) == (429, "RESOURCE_EXHAUSTED")
    assert "by Vertex AI's methods already" in reply.json()["error"]["message"]
    assert served.ask(first, contexts).status_code == served.ask(second, contexts, "POST", json={}).status_code == 200
    assert count == expected


def test_secrets_are_read_by_token_and_key(served: ServedDoor, job: Job) -> None:
    key = served.variables(job)["SECRET_MANAGER_API_KEY"]
    by_token = served.ask(job, SECRET, headers=bearer(served.door.token(job))).json()
    for headers in ({"X-Goog-Api-Key": key}, bearer(key)):
        assert served.ask(None, SECRET, headers=headers).json() == by_token
        assert served.ask(None, SECRET.replace("my-", "other-"), headers=headers).status_code == 403
    assert served.ask(None, JOBS, headers={"X-Goog-Api-Key": key}).status_code == 401


def test_a_job_s_own_project_is_looked_up(served: ServedDoor, job: Job) -> None:
    number = job.location.project_number
    for name, host in ((number, "127.0.0.1"), ("my-project", "cloudresourcemanager.googleapis.com")):
        found = served.ask(job, f"/v3/projects/{name}", headers={"Host": host}).json()
        assert (found["name"], found["projectId"]) == (f"projects/{number}", "my-project")
        refused = served.ask(job, "/v3/projects/other", headers={"Host": host})
        assert refused.status_code == 403 and "resourcemanager.projects.get" in refused.text
        assert served.ask(None, f"/v3/projects/{name}", headers={"Host": host}).status_code == 401
    others = served.ask(job, "/v3/projects/my-project:getIamPolicy", "POST", headers={"Host": host})
    assert others.status_code == 501


def test_without_secrets_no_variable_names_them(served: ServedDoor) -> None:
    found = served.variables(served.job("without", Location("without", "us-central1")))
    assert "STORAGE_EMULATOR_HOST" in found
    assert [name for name in found if "SECRET" in name] == []


def test_names_of_google_lead_to_the_door(served: ServedDoor, job: Job) -> None:
    home = served.door.home(job)
    host, _, port = home.variables["GCE_METADATA_HOST"].rpartition(":")
    assert (served.network.led[host][80], home.note) == (int(port), "")
    assert set(home.hosts.values()) == {"169.254.169.254"}
    assert {"metadata.google.internal", "storage.googleapis.com", "bigquery.googleapis.com"} <= set(home.hosts)
    bundle, store = home.mounts
    assert home.variables["SSL_CERT_FILE"] == bundle.target and bundle.read_only
    assert home.leading["JAVA_TOOL_OPTIONS"].endswith(f"={store.target}") and store.read_only


def test_without_rules_variables_alone_lead_there(
    served: ServedDoor, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served.network, "obstacle", "the emulator does not run as root")
    home = served.door.home(job)
    assert (home.hosts, home.mounts, home.leading) == ({}, (), {})
    assert "STORAGE_EMULATOR_HOST" in home.variables and "SSL_CERT_FILE" not in home.variables
    assert "the emulator does not run as root" in home.note and "\n" not in home.note


def test_a_job_with_credentials_is_led_nowhere(served: ServedDoor) -> None:
    env = [{"name": "GOOGLE_APPLICATION_CREDENTIALS", "value": "/gcs/keys/key.json"}]
    job = served.job("own", pools=[pool(env=env)])
    assert served.door.home(job) == Home()


def test_a_service_that_is_not_emulated_says_so(served: ServedDoor, job: Job) -> None:
    headers = {"Host": "bigquery.googleapis.com", **bearer(served.door.token(job))}
    error = served.ask(job, "/bigquery/v2/projects/my-project/queries", "POST", headers=headers, json={}).json()
    assert error["error"]["status"] == "UNIMPLEMENTED"
    assert error["error"]["message"].startswith("bigquery.googleapis.com is not emulated at home.")


def test_docker_that_is_down_is_said(served: ServedDoor, job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served.network, "is_down", True)
    reply = served.ask(job, JOBS)
    assert (reply.status_code, reply.json()["error"]["message"]) == (503, "Docker does not answer: it is down")


def test_a_restart_keeps_address_and_tokens(tmp_path: Path) -> None:
    first = ServedDoor(tmp_path)
    with closing(first):
        job = first.job("1")
        before, token = first.variables(job), first.door.token(job)
    second = ServedDoor(tmp_path)
    with closing(second):
        second.network.is_down = True  # the start needs no Docker
        second.door.resume()
        second.network.is_down = False
        assert second.variables(job) == before
        assert second.door.token(job) == token
        assert second.ask(job, JOBS, headers=bearer(token)).status_code == 200


def test_a_port_is_none_of_outgoing_connections(served: ServedDoor, job: Job) -> None:
    first_outgoing = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert 1024 <= int(served.variables(job)["GCE_METADATA_HOST"].rpartition(":")[2]) < first_outgoing
