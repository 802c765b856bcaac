"""Who calls Google's APIs, by the environment and the stack's config: a stand-in reads the tokens."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pulumi import dynamic
from pulumi.dynamic.config import Config
from vertex_training.errors import RegistryRefused, UploadFailed
from vertex_training.images.build_client import BuildClient
from vertex_training.images.registry import GoogleRegistry
from vertex_training.runtime import resource
from vertex_training.runtime.storage import CloudStorage

from tests.standins.google_apis import REGISTRY, GoogleApisStandIn
from vertex_api import credentials
from vertex_api.client import Client, Endpoint
from vertex_api.errors import PermissionDenied
from vertex_api.names import ResourceName

pytestmark = pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl")
NAME = ResourceName.parse("projects/p/locations/us-central1/customJobs/1")
BUILD = "projects/p/locations/us-central1/builds/1"
CLIENTS: dict[str, Callable[[], object]] = {
    "us-central1-aiplatform.googleapis.com": lambda: Client(Endpoint.for_region("us-central1")).require(NAME),
    "logging.googleapis.com": lambda: Client(Endpoint.for_region("us-central1")).log_lines(NAME, 1),
    "cloudbuild.googleapis.com": lambda: BuildClient("https://cloudbuild.googleapis.com", "").get(BUILD),
    "storage.googleapis.com": lambda: CloudStorage().exists("gs://acme/a"),
    REGISTRY: lambda: GoogleRegistry().digest(f"{REGISTRY}/p/r/trainer:1"),
}
KEY, OTHER_KEY, DEFAULT = (f"{name}@acme-dev.iam.gserviceaccount.com" for name in ("key", "other", "default"))
TARGET, DELEGATE = (f"{name}@acme-dev.iam.gserviceaccount.com" for name in ("target", "delegate"))
CANARY = "ya29.canary"
VARIABLES = (
    *("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CREDENTIALS", "GOOGLE_CLOUD_KEYFILE_JSON", "GCLOUD_KEYFILE_JSON"),
    *("GOOGLE_OAUTH_ACCESS_TOKEN", "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT", "GOOGLE_CLOUD_QUOTA_PROJECT"),
    *("STORAGE_EMULATOR_HOST", "CLOUDSDK_CONFIG"),
)


@pytest.fixture(autouse=True)
def service(apis: GoogleApisStandIn, monkeypatch: pytest.MonkeyPatch) -> Iterator[GoogleApisStandIn]:
    """The stand-in, with the key of DEFAULT as Application Default Credentials."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in apis.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(apis.write_key(DEFAULT)))
    apis.callers, apis.delegates, apis.expired, apis.refusal, apis.federation_refusal = {}, [], set(), "", ""
    yield apis
    credentials.use_config({})


def configure(monkeypatch: pytest.MonkeyPatch, config: dict[str, str]) -> None:
    """Let the engine start a provider of a stack with this config."""
    for name in ("listen_for_cancellation", "watch", "report_plain_errors"):
        monkeypatch.setattr(resource.engine, name, lambda: None)
    resource.Provider().configure(dynamic.ConfigureRequest(config=Config(config, "team")))


FORMS: dict[str, tuple[dict[str, str], dict[str, str], str]] = {
    "default": ({}, {}, f"token-of-{DEFAULT}"),
    "key file": ({"GOOGLE_CREDENTIALS": "{key}"}, {}, f"token-of-{KEY}"),
    "key text": ({"GOOGLE_CREDENTIALS": "{key text}"}, {}, f"token-of-{KEY}"),
    "keyfile": ({"GOOGLE_CLOUD_KEYFILE_JSON": "{key}", "GCLOUD_KEYFILE_JSON": "{other}"}, {}, f"token-of-{KEY}"),
    "last keyfile": ({"GOOGLE_CREDENTIALS": "", "GCLOUD_KEYFILE_JSON": "{key}"}, {}, f"token-of-{KEY}"),
    "user": ({"GOOGLE_CREDENTIALS": "{user}"}, {}, "token-of-person"),
    "federation": ({"GOOGLE_APPLICATION_CREDENTIALS": "{pool}"}, {}, "token-of-pipeline"),
    "federation as account": (
        {"GOOGLE_APPLICATION_CREDENTIALS": "{pool of account}"},
        {},
        f"token-of-pipeline-as-{DELEGATE}",
    ),
    "federation text": ({"GOOGLE_CREDENTIALS": "{pool text}"}, {}, "token-of-pipeline"),
    "config's federation": ({}, {"gcp:credentials": "{pool}"}, "token-of-pipeline"),
    "account by federation": (
        {"GOOGLE_CREDENTIALS": "{pool}", "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT": TARGET},
        {},
        f"token-of-pipeline-as-{TARGET}",
    ),
    "account of gcloud": (
        {"GOOGLE_APPLICATION_CREDENTIALS": "{impersonation}"},
        {},
        f"token-of-person-as-{DELEGATE}",
    ),
    "token": ({"GOOGLE_OAUTH_ACCESS_TOKEN": CANARY}, {}, CANARY),
    "token before key": ({"GOOGLE_OAUTH_ACCESS_TOKEN": CANARY, "GOOGLE_CREDENTIALS": "{key}"}, {}, CANARY),
    "token file": ({"GOOGLE_OAUTH_ACCESS_TOKEN": "{token}"}, {}, CANARY),
    "account": ({"GOOGLE_IMPERSONATE_SERVICE_ACCOUNT": TARGET}, {}, f"token-of-{DEFAULT}-as-{TARGET}"),
    "account by token": (
        {"GOOGLE_IMPERSONATE_SERVICE_ACCOUNT": TARGET, "GOOGLE_OAUTH_ACCESS_TOKEN": CANARY},
        {},
        f"{CANARY}-as-{TARGET}",
    ),
    "account by key": (
        {"GOOGLE_IMPERSONATE_SERVICE_ACCOUNT": TARGET, "GOOGLE_CREDENTIALS": "{key}"},
        {},
        f"token-of-{KEY}-as-{TARGET}",
    ),
    "config's key": ({"GOOGLE_OAUTH_ACCESS_TOKEN": "not this"}, {"gcp:credentials": "{key}"}, f"token-of-{KEY}"),
    "config's token": ({"GOOGLE_CREDENTIALS": "{key}"}, {"gcp:accessToken": CANARY}, CANARY),
    "config's account": (
        {"GOOGLE_IMPERSONATE_SERVICE_ACCOUNT": OTHER_KEY},
        {"gcp:impersonateServiceAccount": TARGET},
        f"token-of-{DEFAULT}-as-{TARGET}",
    ),
}


@pytest.mark.parametrize("host", CLIENTS)
@pytest.mark.parametrize("form", FORMS)
def test_each_client_calls_as_the_provider_does(
    service: GoogleApisStandIn, monkeypatch: pytest.MonkeyPatch, form: str, host: str, tmp_path: Path
) -> None:
    variables, config, caller = FORMS[form]
    key, other = service.write_key(KEY), service.write_key(OTHER_KEY)
    user = {"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "person"}
    (tmp_path / "token").write_text(f"{CANARY}\n")
    texts = {"{key}": str(key), "{key text}": key.read_text(), "{other}": str(other), "{user}": json.dumps(user)}
    texts["{token}"] = str(tmp_path / "token")
    pool, impersonation = service.write_federation("pipeline"), service.write_impersonation("person", DELEGATE)
    texts |= {"{pool}": str(pool), "{pool text}": pool.read_text(), "{impersonation}": str(impersonation)}
    texts["{pool of account}"] = str(service.write_federation("pipeline", DELEGATE))
    for name, value in variables.items():
        monkeypatch.setenv(name, texts.get(value, value))
    configure(monkeypatch, {name: texts.get(value, value) for name, value in config.items()})
    CLIENTS[host]()
    assert {*service.callers[host]} == {caller}


def test_delegates_of_the_config_are_sent(service: GoogleApisStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    account = {"gcp:impersonateServiceAccount": TARGET}
    configure(monkeypatch, account | {"gcp:impersonateServiceAccountDelegates": json.dumps([DELEGATE])})
    CLIENTS["storage.googleapis.com"]()
    assert [DELEGATE in each for each in service.delegates] == [True]


def fail(host: str) -> str:
    with pytest.raises((PermissionDenied, UploadFailed, RegistryRefused)) as failed:
        CLIENTS[host]()
    (line,) = str(failed.value).splitlines()
    return line


@pytest.mark.parametrize("host", CLIENTS)
@pytest.mark.parametrize("is_config", [False, True])
def test_an_expired_token_is_named_and_not_shown(
    service: GoogleApisStandIn, monkeypatch: pytest.MonkeyPatch, host: str, is_config: bool
) -> None:
    service.expired = {CANARY}
    place = "gcp:accessToken" if is_config else "GOOGLE_OAUTH_ACCESS_TOKEN"
    if is_config:
        configure(monkeypatch, {place: CANARY})
    else:
        monkeypatch.setenv(place, CANARY)
    line = fail(host)
    assert CANARY not in line and place in line and "expired" in line


@pytest.mark.parametrize("host", CLIENTS)
@pytest.mark.parametrize("text", ["/nowhere/key.json", "{canary", "[]", '{"type": "canary"}', "/"])
def test_unusable_keys_name_the_variable_and_are_not_shown(
    monkeypatch: pytest.MonkeyPatch, host: str, text: str
) -> None:
    monkeypatch.setenv("GOOGLE_CLOUD_KEYFILE_JSON", text)
    line = fail(host)
    assert "no valid Google credentials" in line and "GOOGLE_CLOUD_KEYFILE_JSON: " in line
    assert "canary" not in line and "/nowhere" not in line


@pytest.mark.parametrize("host", CLIENTS)
def test_a_refused_impersonation_says_what_is_missing(
    service: GoogleApisStandIn, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    service.refusal = "Permission 'iam.serviceAccounts.getAccessToken' denied\non resource"
    monkeypatch.setenv("GOOGLE_IMPERSONATE_SERVICE_ACCOUNT", TARGET)
    line = fail(host)
    assert f"GOOGLE_IMPERSONATE_SERVICE_ACCOUNT: Google gives no token of {TARGET} (Permission 'iam.service" in line
    assert "grant roles/iam.serviceAccountTokenCreator on it to who runs `pulumi`" in line


@pytest.mark.parametrize("host", CLIENTS)
def test_an_expired_token_is_no_missing_impersonation(
    service: GoogleApisStandIn, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    service.expired = {CANARY}
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", CANARY)
    monkeypatch.setenv("GOOGLE_IMPERSONATE_SERVICE_ACCOUNT", TARGET)
    line = fail(host)
    assert "GOOGLE_OAUTH_ACCESS_TOKEN: the access token has expired or is not valid; set a new one" in line
    assert CANARY not in line and "serviceAccountTokenCreator" not in line


@pytest.mark.parametrize("host", CLIENTS)
@pytest.mark.parametrize("variable", ["GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CREDENTIALS"])
def test_a_refused_federation_names_its_place(
    service: GoogleApisStandIn, monkeypatch: pytest.MonkeyPatch, host: str, variable: str
) -> None:
    subject = f"ey{'J' * 80}.canary"
    service.federation_refusal = "The given credential {} is rejected by\nthe attribute condition."
    monkeypatch.setenv(variable, str(service.write_federation(subject)))
    line = fail(host)
    assert f"{variable}: Google does not take the credentials (The given credential … is rejected by the attr" in line
    assert "get a new one" in line and "canary" not in line


@pytest.mark.parametrize("host", CLIENTS)
@pytest.mark.parametrize("kind", ["federation", "gcloud"])
def test_a_file_s_refused_account_is_named(
    service: GoogleApisStandIn, monkeypatch: pytest.MonkeyPatch, host: str, kind: str
) -> None:
    service.refusal = "Permission 'iam.serviceAccounts.getAccessToken' denied"
    file = service.write_impersonation("x", TARGET) if kind == "gcloud" else service.write_federation("x", TARGET)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    role = "roles/iam.serviceAccountTokenCreator" if kind == "gcloud" else "roles/iam.workloadIdentityUser"
    line = fail(host)
    assert f"GOOGLE_APPLICATION_CREDENTIALS: Google gives no token of {TARGET} (Permission 'iam.service" in line
    assert f"grant {role} on it" in line


@pytest.mark.parametrize("host", CLIENTS)
@pytest.mark.parametrize("text", ["/nowhere/key.json", '{"type": "service_account"}', "[]"])
@pytest.mark.parametrize("is_file", [False, True])
def test_an_unusable_default_names_its_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, host: str, text: str, is_file: bool
) -> None:
    (tmp_path / "file.json").write_text(text)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "file.json") if is_file else text)
    line = fail(host)
    assert "no valid Google credentials" in line and "GOOGLE_APPLICATION_CREDENTIALS: " in line
    assert is_file or "is not the path of a credential file of Google's" in line


def test_a_token_of_no_person_stays_as_it_is() -> None:
    class Federated:
        token = "ya29.federated"

    assert credentials.personal_token(Federated()) == "ya29.federated"
