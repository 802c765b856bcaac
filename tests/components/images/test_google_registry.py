"""Google's registries, asked over HTTP without Docker, and the tokens for them."""

from collections.abc import Iterator

import google.auth
import pytest
import requests
from vertex_training.errors import RegistryRefused
from vertex_training.images.registry import GoogleRegistry

from tests.standins.artifact_registry import HOST
from tests.standins.proxied_artifact_registry import ProxiedRegistry, proxied_artifact_registry, why_impossible

pytestmark = pytest.mark.skipif(bool(why_impossible()), reason=why_impossible())
TOKEN = "ya29.canary-of-a-google-token"
URI = f"{HOST}/acme-dev/team/trainer:0123456789abcdef"


class Credentials:
    """In place of the Application Default Credentials, which this machine has none of."""

    valid = False
    token = TOKEN

    def refresh(self, request: object) -> None:
        """The token is there already."""


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxiedRegistry]:
    with proxied_artifact_registry(tmp_path_factory.mktemp("registry") / "registry", TOKEN) as made:
        yield made


@pytest.fixture
def credentials(registry: ProxiedRegistry, monkeypatch: pytest.MonkeyPatch) -> Credentials:
    made = Credentials()
    monkeypatch.setattr(google.auth, "default", lambda scopes: (made, "p"))
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")
    for name, value in registry.variables.items():
        monkeypatch.setenv(name, value)
    return made


@pytest.mark.usefixtures("credentials")
def test_a_missing_image_has_no_digest() -> None:
    assert GoogleRegistry().digest(URI) is None


def test_a_refused_token_is_one_line_without_it(credentials: Credentials) -> None:
    credentials.token = f"{TOKEN}-of-someone-else"
    with pytest.raises(RegistryRefused) as refused:
        GoogleRegistry().digest(URI)
    text = str(refused.value)
    assert text.startswith(f"{URI}: its registry refuses: 401 Unauthorized; your account needs roles/artifactregistry")
    assert TOKEN not in text and len(text.splitlines()) == 1


@pytest.mark.usefixtures("credentials")
def test_a_registry_that_does_not_answer_is_named() -> None:
    host = "us-docker.pkg.dev"
    with pytest.raises(RegistryRefused, match=f"no answer from {host}; check that it is reachable"):
        GoogleRegistry().digest(URI.replace(HOST, host))


@pytest.mark.usefixtures("credentials")
@pytest.mark.parametrize("digest", [f"sha256:{'a' * 64}", "sha256:a", "../../a", None])
def test_a_digest_is_taken_in_its_form_alone(digest: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    reply = requests.Response()
    reply.status_code, reply.reason = 200, "OK"
    reply.headers.update({"Docker-Content-Digest": digest} if digest else {})
    monkeypatch.setattr(requests.Session, "head", lambda *_, **__: reply)
    if digest == f"sha256:{'a' * 64}":
        assert GoogleRegistry().digest(URI) == digest
    else:
        with pytest.raises(RegistryRefused, match="its registry refuses: 200 OK"):
            GoogleRegistry().digest(URI)
