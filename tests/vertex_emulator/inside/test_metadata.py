"""The metadata server of a job, as Google's own client and plain requests read it."""

import base64
import importlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from google.auth import compute_engine
from google.auth.compute_engine import _metadata
from google.auth.transport.requests import Request

from tests.vertex_emulator.inside.served import FLAVOR, ServedDoor
from vertex_emulator.database.records import Job
from vertex_emulator.inside import metadata
from vertex_emulator.names import project_number

AGENT = f"service-{project_number('my-project')}@gcp-sa-aiplatform-cc.iam.gserviceaccount.com"
TENANT = metadata.tenant_project("my-project")
NUMBER = project_number(TENANT)
ACCOUNT = "trainer@my-project.iam.gserviceaccount.com"
DEFAULT = "instance/service-accounts/default"


@pytest.fixture(scope="module")
def job(served: ServedDoor) -> Job:
    return served.job("1")


@pytest.fixture
def google(served: ServedDoor, job: Job, monkeypatch: pytest.MonkeyPatch) -> Iterator[Request]:
    """Requests of google-auth in a container of the job."""
    for name, value in {**served.variables(job), "NO_PROXY": "*"}.items():
        monkeypatch.setenv(name, value)
    importlib.reload(_metadata)
    with requests.Session() as session:
        yield Request(session)
    monkeypatch.undo()
    importlib.reload(_metadata)


def test_google_auth_finds_project_and_account(google: Request) -> None:
    assert _metadata.ping(google, retry_count=1)
    assert _metadata.get_project_id(google) == TENANT
    assert _metadata.get_universe_domain(google) == "googleapis.com"
    assert _metadata.get_service_account_info(google) == {
        "aliases": ["default"],
        "email": AGENT,
        "scopes": list(metadata.SCOPES),
    }


def test_google_auth_gets_the_job_s_token(google: Request, served: ServedDoor, job: Job) -> None:
    credentials = compute_engine.Credentials()
    credentials.refresh(google)
    assert (credentials.token, credentials.service_account_email) == (served.door.token(job), AGENT)
    assert not credentials.expired


def test_an_identity_token_names_account_and_audience(google: Request) -> None:
    credentials = compute_engine.IDTokenCredentials(google, "https://a.example", use_metadata_identity_endpoint=True)
    credentials.refresh(google)
    payload = str(credentials.token).split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    assert (claims["aud"], claims["email"]) == ("https://a.example", AGENT)
    assert claims["exp"] > claims["iat"]


def test_an_account_of_the_job_is_its_e_mail(served: ServedDoor) -> None:
    own = served.job("2", serviceAccount=ACCOUNT)
    assert served.metadata(own, f"{DEFAULT}/email").text == ACCOUNT
    assert served.metadata(own, "instance/service-accounts/").text == f"default/\n{ACCOUNT}/\n"
    quoted = ACCOUNT.replace("@", "%40")
    for name in (ACCOUNT, quoted):
        token = served.metadata(own, f"instance/service-accounts/{name}/token").json()["access_token"]
        assert token == served.door.token(own)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("project/project-id", TENANT),
        ("project/numeric-project-id", NUMBER),
        ("instance/region", f"projects/{NUMBER}/regions/us-central1"),
        ("instance/zone", f"projects/{NUMBER}/zones/us-central1-a"),
        ("instance/machine-type", f"projects/{NUMBER}/machineTypes/n1-standard-4"),
        (f"{DEFAULT}/scopes", "https://www.googleapis.com/auth/cloud-platform"),
        (f"{DEFAULT}/aliases", "default"),
        (f"{DEFAULT}/?recursive=true&alt=text", f"aliases default\nemail {AGENT}\nscopes {metadata.SCOPES[0]}\n"),
        (f"{DEFAULT}/", "aliases\nemail\nscopes\n"),
        ("project/", "attributes/\nnumeric-project-id\nproject-id\n"),
        ("project/project-id?alt=json", f'"{TENANT}"'),
    ],
)
def test_a_key_is_its_text(served: ServedDoor, job: Job, path: str, text: str) -> None:
    reply = served.metadata(job, path)
    assert (reply.status_code, reply.text, reply.headers["Metadata-Flavor"]) == (200, text, "Google")


def test_everything_is_one_object(served: ServedDoor, job: Job) -> None:
    found: Any = served.metadata(job, "?recursive=true").json()
    assert found["project"] == {"attributes": {}, "numericProjectId": int(NUMBER), "projectId": TENANT}
    assert set(found["instance"]["serviceAccounts"]) == {"default", AGENT}
    assert "token" not in json.dumps(found)


def test_the_project_is_none_of_the_user_s(served: ServedDoor, job: Job) -> None:
    everything = served.metadata(job, "?recursive=true").text.replace(AGENT, "")
    assert "my-project" not in everything and project_number("my-project") not in everything


@pytest.mark.parametrize("path", ["instance", "project", DEFAULT])
def test_a_list_is_at_its_slash(served: ServedDoor, job: Job, path: str) -> None:
    reply = served.metadata(job, path)
    assert reply.status_code == 301
    assert reply.headers["Location"].endswith(f"/computeMetadata/v1/{path}/")


@pytest.mark.parametrize("headers", [{}, {"Metadata-Flavor": "google"}, {**FLAVOR, "X-Forwarded-For": "1.2.3.4"}])
def test_requests_that_others_could_make_are_refused(served: ServedDoor, job: Job, headers: dict[str, str]) -> None:
    """As Compute Engine does: whoever makes a server fetch an address cannot set its headers."""
    reply = served.ask(job, f"/computeMetadata/v1/{DEFAULT}/token", headers=headers)
    assert (reply.status_code, reply.headers["Metadata-Flavor"]) == (403, "Google")
    assert served.door.token(job) not in reply.text


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "instance/nope", 404),
        ("GET", f"{DEFAULT}/token/more", 404),
        ("GET", "instance/service-accounts/other@example.com/token", 404),
        ("GET", "project/project-id/more", 404),
        ("POST", "project/project-id", 404),
        ("GET", f"{DEFAULT}/identity", 400),
    ],
)
def test_other_keys_are_not_found(served: ServedDoor, job: Job, method: str, path: str, status: int) -> None:
    assert served.metadata(job, path, method=method).status_code == status


def test_a_machine_without_a_job_has_no_metadata(served: ServedDoor) -> None:
    assert served.metadata(None, f"{DEFAULT}/token").status_code == 403
    assert served.ask(None, "/").status_code == 403
