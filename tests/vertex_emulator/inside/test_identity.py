"""Real identities: what a stand-in for Google is asked, with whose token, and what is never passed on."""

from __future__ import annotations

import fcntl
import json
import logging
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.standins.google_apis import EMAIL_SCOPE, GoogleApisStandIn
from tests.vertex_emulator.inside.served import OTHER, ServedDoor, bearer
from vertex_emulator.database.records import Job
from vertex_emulator.errors import ApiError, ReplicaCannotStart
from vertex_emulator.inside import identity

ACCOUNT, OWN_ACCOUNT = (f"{name}@acme-dev.iam.gserviceaccount.com" for name in ("trainer", "own"))
DEVELOPER = "dev@acme.dev"
USER_TOKEN = f"token-of-{DEVELOPER}{EMAIL_SCOPE}"
ACCOUNT_TOKEN = f"token-of-{DEVELOPER}-as-{ACCOUNT}"
BIGQUERY, STORAGE = "bigquery.googleapis.com", "storage.googleapis.com"
DATASETS = "/bigquery/v2/projects/acme-dev/datasets"
Call = tuple[str, str, str]
"""What Google gets: the host, the path, and the token."""


@pytest.fixture
def google(apis: GoogleApisStandIn, monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """The calls that Google gets, where a developer is logged in."""
    calls: list[Call] = []
    answer = apis.answer

    def noted(host: str, path: str, token: str, body: bytes, quota_project: str = "") -> tuple[int, dict[str, object]]:
        if host in (BIGQUERY, STORAGE):
            calls.append((host, path, token))
        return answer(host, path, token, body, quota_project)

    monkeypatch.setattr(apis, "answer", noted)
    apis.log_in(monkeypatch, DEVELOPER, "acme-quota")
    return calls


@pytest.fixture
def door(tmp_path: Path) -> Iterator[ServedDoor]:
    found = ServedDoor(tmp_path / "door")
    yield found
    found.close()


def act(door: ServedDoor, kind: str = "account", **more: Any) -> None:
    """Let the jobs of my-project act at Google."""
    folder = door.data.root.stat().st_ino
    entry = {"as": kind, "account": ACCOUNT if kind == "account" else "", "folder": folder, **more}
    door.data.identities.write_text(json.dumps({"my-project": entry}))


def ask(door: ServedDoor, job: Job, path: str, method: str = "GET", host: str = "", **options: Any) -> Any:
    """A request of a job with its token, to a service by its name or to the address in its variables."""
    headers = {**bearer(door.door.token(job)), **({"Host": host} if host else {}), **options.pop("headers", {})}
    return door.ask(job, path, method, headers=headers, **options)


def refusal(reply: requests.Response) -> tuple[int, str]:
    message = str(reply.json()["error"]["message"])
    assert "\n" not in message
    return reply.status_code, message


def test_a_call_has_the_account_s_token(door: ServedDoor, google: list[Call]) -> None:
    act(door)
    assert ask(door, door.job("1"), DATASETS, host=BIGQUERY).json()["name"] == DATASETS
    assert ask(door, door.job("2", serviceAccount=OWN_ACCOUNT), f"{DATASETS}?a=b%20c", "POST", BIGQUERY).ok
    own = f"token-of-{DEVELOPER}-as-{OWN_ACCOUNT}"
    assert google == [(BIGQUERY, DATASETS, ACCOUNT_TOKEN), (BIGQUERY, f"{DATASETS}?a=b%20c", own)]


def test_a_call_has_the_developer_s_own_token(door: ServedDoor, google: list[Call]) -> None:
    act(door, "user")
    assert ask(door, door.job("1", serviceAccount=OWN_ACCOUNT), DATASETS, host=BIGQUERY).ok
    assert google == [(BIGQUERY, DATASETS, USER_TOKEN)]


def test_without_identity_nothing_goes_to_google(door: ServedDoor, google: list[Call]) -> None:
    job = door.job("1")
    status, message = refusal(ask(door, job, DATASETS, host=BIGQUERY))
    assert status == 501 and "run it with --as account or user" in message
    act(door)
    theirs = door.job("2", OTHER)
    assert ask(door, theirs, DATASETS, host=BIGQUERY).status_code == 501
    assert door.ask(None, DATASETS, headers={"Host": BIGQUERY}).status_code == 401
    assert ask(door, job, DATASETS, host=BIGQUERY, headers=bearer("ya29.stolen")).status_code == 401
    door.end(job)
    assert ask(door, job, DATASETS, host=BIGQUERY).status_code == 401
    assert google == []


def test_an_identity_ends_with_its_command(door: ServedDoor, google: list[Call]) -> None:
    job, lock = door.job("1"), door.data.root / "owner.lock"
    act(door, **{"while": lock.name})
    with closing(lock.open("w")) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert ask(door, job, DATASETS, host=BIGQUERY).ok
    assert ask(door, job, DATASETS, host=BIGQUERY).status_code == 501
    assert len(google) == 1


def test_an_identity_of_another_folder_counts_for_nothing(door: ServedDoor, google: list[Call]) -> None:
    act(door, folder=door.data.root.stat().st_ino + 1)
    assert ask(door, door.job("1"), DATASETS, host=BIGQUERY).status_code == 501
    for broken in ("[]", "{", '{"my-project": 1}', '{"my-project": {"as": "user"}}'):
        door.data.identities.write_text(broken)
        assert ask(door, door.job(f"of {broken}"), DATASETS, host=BIGQUERY).status_code == 501
    assert google == []


def test_buckets_that_are_not_here_are_google_s(door: ServedDoor, google: list[Call]) -> None:
    (door.data.buckets / "here").mkdir()
    (door.data.buckets / "here" / "a.csv").write_text("1")
    act(door)
    job = door.job("1")
    paths = ["/storage/v1/b/acme/o?prefix=a", "/storage/v1/b/acme", "/download/storage/v1/b/acme/o/a%2Fb?alt=media"]
    for path in [*paths, "/acme/a/b.csv"]:
        assert ask(door, job, path).ok, path
    assert ask(door, job, "/storage/v1/b/here/o").json()["items"][0]["name"] == "a.csv"
    assert ask(door, job, "/here/a.csv").text == "1"
    assert google == [(STORAGE, path, ACCOUNT_TOKEN) for path in [*paths, "/acme/a/b.csv"]]
    act(door, real=["here"])
    assert ask(door, job, "/storage/v1/b/here/o").ok
    assert google[-1] == (STORAGE, "/storage/v1/b/here/o", ACCOUNT_TOKEN)


WRITES = [
    ("POST", "/upload/storage/v1/b/acme/o?uploadType=media&name=x"),
    ("PUT", "/resumable/upload/storage/v1/b/acme/o?upload_id=1"),
    ("DELETE", "/storage/v1/b/acme/o/x"),
    ("PATCH", "/storage/v1/b/acme/o/x"),
    ("POST", "/storage/v1/b/acme/o/x/compose"),
    ("POST", "/storage/v1/b/other/o/x/rewriteTo/b/acme/o/y"),
]


def test_writes_stay_at_home_unless_named(door: ServedDoor, google: list[Call]) -> None:
    act(door)
    job = door.job("1")
    for method, path in WRITES:
        status, message = refusal(ask(door, job, path, method))
        assert status == 403, path
        assert message == (
            "Writes stay at home, and gs://acme is Google's: --write gs://acme lets them through "
            "(`vertex-training docs google`)."
        )
    assert google == []
    act(door, write=["acme"])
    for method, path in WRITES:
        assert ask(door, job, path, method).ok
    assert google == [(STORAGE, path, ACCOUNT_TOKEN) for _, path in WRITES]


def test_no_grant_and_no_credential_is_passed_on(door: ServedDoor, google: list[Call]) -> None:
    (door.data.buckets / "here").mkdir()
    act(door, "user", write=["acme"])
    job = door.job("1")
    refused = [
        ("POST", f"/v1/projects/-/serviceAccounts/{ACCOUNT}:generateAccessToken", "iamcredentials.googleapis.com"),
        ("POST", f"/v1/projects/acme-dev/serviceAccounts/{ACCOUNT}/keys", "iam.googleapis.com"),
        ("POST", "/token", "oauth2.googleapis.com"),
        ("POST", "/v1/token", "sts.googleapis.com"),
        ("POST", "/v1/projects/acme-dev:setIamPolicy", "cloudresourcemanager.googleapis.com"),
        ("POST", f"{DATASETS}/d/tables/t%3AsetIamPolicy", BIGQUERY),
        ("PUT", "/storage/v1/b/acme/iam", ""),
        ("POST", "/storage/v1/b/acme/o/x/acl", ""),
        ("PATCH", "/storage/v1/b/acme", ""),
        ("DELETE", "/storage/v1/b/acme", ""),
        ("GET", f"{DATASETS}?%24httpMethod=DELETE", BIGQUERY),
        ("POST", "/storage/v1/b/acme/o/x/rewriteTo/b/here/o/y", ""),
    ]
    for method, path, host in refused:
        status, _ = refusal(ask(door, job, path, method, host))
        assert status in (400, 403), path
    for name in ("X-HTTP-Method-Override", "X-Method-Override"):
        assert ask(door, job, "/storage/v1/b/acme/o/x", headers={name: "DELETE"}).status_code == 400
    assert google == []


@pytest.mark.parametrize("path", ["/b/acme/../other", "/b/acme/%2e%2e/other", "/b//o", "/b/a%2F..%2Fb", "http://x/b"])
def test_a_path_that_may_be_another_is_not_passed_on(path: str) -> None:
    with pytest.raises(ApiError, match="is not passed on"):
        identity.require_passable(STORAGE, path.encode(), b"", [])
    identity.require_passable(STORAGE, b"/storage/v1/b/acme/o/a%2Fb..c", b"alt=media", [])


def test_the_token_is_in_no_answer_file_or_log(
    door: ServedDoor, google: list[Call], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    act(door)
    job = door.job("1")
    reply = ask(door, job, DATASETS, host=BIGQUERY)
    token = door.metadata(job, "instance/service-accounts/default/token").json()["access_token"]
    assert token == door.door.token(job)
    assert door.metadata(job, "instance/service-accounts/default/email").text == ACCOUNT
    home = door.door.home(job)
    kept = [file.read_bytes().decode("latin-1") for file in door.data.root.rglob("*") if file.is_file()]
    for canary in (ACCOUNT_TOKEN, f"token-of-{DEVELOPER}", "acme-quota"):
        assert canary not in f"{reply.headers}{reply.text}{token}{home}{caplog.text}"
        assert [text for text in kept if canary in text] == []


def test_a_token_that_google_takes_no_more_is_renewed(
    door: ServedDoor, google: list[Call], apis: GoogleApisStandIn
) -> None:
    act(door)
    job = door.job("1")
    apis.callers.clear()
    apis.expired.add(ACCOUNT_TOKEN)
    assert ask(door, job, DATASETS, host=BIGQUERY).status_code == 401
    apis.expired.clear()
    assert ask(door, job, DATASETS, host=BIGQUERY).ok
    assert len(apis.callers["iamcredentials.googleapis.com"]) == 2


def test_why_there_is_no_token_is_one_line(
    door: ServedDoor, google: list[Call], apis: GoogleApisStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    act(door)
    job = door.job("1")
    apis.refusal = "Permission denied."
    status, message = refusal(ask(door, job, DATASETS, host=BIGQUERY))
    assert status == 401 and f"add-iam-policy-binding {ACCOUNT}" in message
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere")
    status, message = refusal(ask(door, job, DATASETS, host=BIGQUERY))
    assert status == 401 and "gcloud auth application-default login" in message
    assert google == []


def test_google_that_is_not_reached_is_one_line(
    door: ServedDoor, google: list[Call], monkeypatch: pytest.MonkeyPatch
) -> None:
    act(door)
    job = door.job("1")
    assert ask(door, job, DATASETS, host=BIGQUERY).ok
    unknown = refusal(ask(door, job, "/x", host="pubsub.googleapis.com"))
    assert unknown == (
        503,
        "pubsub.googleapis.com fails: the proxy of the environment refuses (502 Bad Gateway) "
        "(`vertex-training docs google`).",
    )
    monkeypatch.delenv("REQUESTS_CA_BUNDLE")
    status, message = refusal(ask(door, job, DATASETS, host=BIGQUERY))
    assert status == 503 and "certificate verify failed" in message.lower()
    assert len(google) == 1


def test_where_no_name_leads_here_the_job_does_not_start(door: ServedDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    act(door)
    job = door.job("1")
    monkeypatch.setattr(door.network, "obstacle", "the emulator does not run as root")
    with pytest.raises(ReplicaCannotStart, match=r"--as cannot work here, .* does not run as root"):
        door.door.home(job)
    monkeypatch.setattr(door.network, "gateway", lambda: None)
    door.door._address = None
    with pytest.raises(ReplicaCannotStart, match=r"--as cannot work here, .* no address of this machine"):
        door.door.home(job)
