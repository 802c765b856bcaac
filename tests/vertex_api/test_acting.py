"""Tokens to act with, of a stand-in for Google's sign-in: who asks for which, and what is said where none is given."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.standins.google_apis import EMAIL_SCOPE, GoogleApisStandIn
from vertex_api import transport
from vertex_api.acting import TOKEN_SECONDS, Acting
from vertex_api.errors import PermissionDenied, Unavailable

ACCOUNT = "trainer@acme-dev.iam.gserviceaccount.com"
DEVELOPER = "dev@acme.dev"
OWN = f"Bearer token-of-{DEVELOPER}{EMAIL_SCOPE}"


@pytest.fixture
def google(apis: GoogleApisStandIn, monkeypatch: pytest.MonkeyPatch) -> GoogleApisStandIn:
    """Google, where a developer is logged in."""
    return apis.log_in(monkeypatch, DEVELOPER, "acme-quota")


def test_user_is_who_is_logged_in(google: GoogleApisStandIn) -> None:
    headers = Acting().headers()
    assert headers == {"authorization": OWN, "x-goog-user-project": "acme-quota"}


def test_account_is_impersonated_for_minutes(google: GoogleApisStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    bodies: list[bytes] = []
    answer = google.answer

    def noted(host: str, path: str, token: str, body: bytes, quota_project: str = "") -> tuple[int, dict[str, object]]:
        bodies.append(body)
        return answer(host, path, token, body, quota_project)

    monkeypatch.setattr(google, "answer", noted)
    acting = Acting(ACCOUNT)
    assert acting.headers()["authorization"] == f"Bearer token-of-{DEVELOPER}-as-{ACCOUNT}"
    assert acting.headers() == acting.headers()
    assert google.callers == {"iamcredentials.googleapis.com": [f"token-of-{DEVELOPER}"]}
    assert f'"lifetime": "{TOKEN_SECONDS}s"'.encode() in bodies[-1]


def test_a_token_is_renewed_before_its_end(google: GoogleApisStandIn) -> None:
    acting = Acting(ACCOUNT)
    acting.headers()
    acting._current.expiry = datetime.utcnow() + timedelta(seconds=60)
    acting.headers()
    acting.forget()
    acting.headers()
    assert len(google.callers["iamcredentials.googleapis.com"]) == 3


def test_a_missing_right_is_a_command(google: GoogleApisStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    google.refusal = "Permission 'iam.serviceAccounts.getAccessToken' denied on resource (or it may not exist)."
    with pytest.raises(PermissionDenied) as refused:
        Acting(ACCOUNT).headers()
    command = f"gcloud iam service-accounts add-iam-policy-binding {ACCOUNT} --member={{}} "
    role = "--role=roles/iam.serviceAccountTokenCreator"
    assert str(refused.value) == (
        f"Google gives no token of {ACCOUNT} ({google.refusal[:-1]}); grant the right to impersonate it: "
        + command.format('"user:$(gcloud config get account)"')
        + role
    )
    robot = "robot@acme-dev.iam.gserviceaccount.com"
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(google.write_key(robot)))
    with pytest.raises(PermissionDenied) as refused:
        Acting(ACCOUNT).headers()
    assert str(refused.value).endswith(command.format(f"serviceAccount:{robot}") + role)


def test_nobody_logged_in_is_one_line(google: GoogleApisStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere")
    with pytest.raises(PermissionDenied, match=r"no valid Google credentials: .*gcloud auth application-default login"):
        Acting().headers()


def test_later_credentials_count_after_a_failure(google: GoogleApisStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    acting, there = Acting(), str(google.write_person(DEVELOPER, ""))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere")
    with pytest.raises(PermissionDenied):
        acting.headers()
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", there)
    assert acting.headers()["authorization"] == OWN


@contextlib.contextmanager
def answering(head: bytes, *, endless: bool = False) -> Iterator[str]:
    """The address of a server that answers each request so."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, contextlib.suppress(OSError):
                        connection.recv(65_536)
                        connection.sendall(head)
                        while endless:
                            connection.sendall(bytes(1 << 16))

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize(
    ("head", "endless", "said"),
    [
        (
            b"HTTP/1.1 302 Found\r\nLocation: http://evil.test/x\r\nContent-Length: 0\r\n\r\n",
            False,
            "redirects to http",
        ),
        (b"HTTP/1.1 200 OK\r\n\r\n", True, "answers with more than 1 MiB"),
    ],
)
def test_a_sign_in_that_leads_on_or_never_ends_is_one_line(
    head: bytes,
    endless: bool,
    said: str,
    google: GoogleApisStandIn,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(transport, "MAX_ANSWER_BYTES", 1 << 20)
    with answering(head, endless=endless) as url:
        key = google.write_key("robot@acme-dev.iam.gserviceaccount.com")
        (mine := tmp_path / "key.json").write_text(key.read_text().replace("https://oauth2.googleapis.com/token", url))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(mine))
        with pytest.raises(Unavailable) as refused:
            Acting(ACCOUNT).headers()
    assert said in str(refused.value) and "\n" not in str(refused.value)
