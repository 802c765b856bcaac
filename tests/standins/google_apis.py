"""A stand-in for Google's APIs under their own names, for clients that are told of a proxy for https: who calls them.

A call is answered with an empty object, or calls for jobs by an emulator. Tokens say whose they are: of a key
`token-of-<e-mail>`, of a refresh token or the token of an identity provider `token-of-<it>`, of an account that another
caller impersonates `<caller>-as-<account>`. A token that is asked for without a scope has all of a person's log-in, and
with them that of the e-mail: it ends with `EMAIL_SCOPE`.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Self
from urllib.parse import parse_qs

import pytest
import requests

from tests import certificates

EMAIL_SCOPE = "-with-email"
REGISTRY = "europe-west4-docker.pkg.dev"
JOBS = "europe-west4-aiplatform.googleapis.com"
_APIS = (
    "us-central1-aiplatform",
    "bigquery",
    "logging",
    "cloudbuild",
    "storage",
    "oauth2",
    "iamcredentials",
    "sts",
    "openidconnect",
)
_PROJECTS = "cloudresourcemanager"
"""Google's library asks it for the project of a pool by itself."""
_IMPERSONATION = re.compile(r"/v1/projects/-/serviceAccounts/([^:]+):generateAccessToken")


@dataclass
class GoogleApisStandIn:
    """`callers` are whose tokens came with calls, by host. `delegates` are those of the last impersonation.

    Tokens in `expired` are refused, impersonations with `refusal` if there is one, and tokens of an identity provider
    with `federation_refusal`. With `variables`, clients reach it. `vertex` is the address of an emulator.
    """

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)
    callers: dict[str, list[str]] = field(default_factory=dict)
    delegates: list[str] = field(default_factory=list)
    expired: set[str] = field(default_factory=set)
    refusal: str = ""
    federation_refusal: str = ""
    vertex: str = ""
    private_key: str = ""

    def log_in(self, monkeypatch: pytest.MonkeyPatch, email: str, quota_project: str = "") -> Self:
        """Let clients of this process reach it with the credentials of a developer, as if nobody had before."""
        for name, value in self.variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(self.write_person(email, quota_project)))
        self.callers, self.expired, self.refusal = {}, set(), ""
        return self

    def write_key(self, email: str) -> Path:
        """Write the key of a service account."""
        account = {"type": "service_account", "client_email": email, "private_key": self.private_key}
        account |= {"token_uri": "https://oauth2.googleapis.com/token", "project_id": "acme-dev"}
        return self._write(email, account)

    def write_federation(self, subject: str, account: str = "") -> Path:
        """Write the configuration of a pool for the token `subject`, which has a file too; as `account`, if given."""
        source = self.folder / f"subject-{subject}"
        source.write_text(subject)
        pool: dict[str, object] = {"type": "external_account", "credential_source": {"file": str(source)}}
        pool |= {"audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/p"}
        pool |= {"subject_token_type": "urn:ietf:params:oauth:token-type:jwt"}
        pool |= {"token_url": "https://sts.googleapis.com/v1/token"}
        if account:
            pool["service_account_impersonation_url"] = _impersonation_url(account)
        return self._write(f"pool-{subject}{account}", pool)

    def write_person(self, email: str, quota_project: str) -> Path:
        """Write what `gcloud auth application-default login` writes."""
        user = {"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": email}
        return self._write(email, {**user, "quota_project_id": quota_project})

    def write_impersonation(self, refresh_token: str, account: str) -> Path:
        """Write what `gcloud auth application-default login --impersonate-service-account` writes."""
        user = {"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": refresh_token}
        info = {"type": "impersonated_service_account", "source_credentials": user, "delegates": []}
        return self._write("impersonation", {**info, "service_account_impersonation_url": _impersonation_url(account)})

    def _write(self, name: str, info: Mapping[str, object]) -> Path:
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(info))
        return path

    def answer(
        self, host: str, path: str, token: str, body: bytes, quota_project: str = ""
    ) -> tuple[int, dict[str, object]]:
        """Answer a call: its status, and what it says."""
        if host.startswith("sts."):
            (subject,) = parse_qs(body.decode())["subject_token"]
            if self.federation_refusal:
                return 400, {"error": "invalid_grant", "error_description": self.federation_refusal.format(subject)}
            return 200, {
                "access_token": f"token-of-{subject}",
                "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
                "expires_in": 3600,
                "token_type": "Bearer",
            }
        if host.startswith("oauth2."):
            given = {name: value for name, (value,) in parse_qs(body.decode()).items()}
            owner = given.get("refresh_token") or _read_issuer(given["assertion"])
            scope = "" if "scope" in given or "assertion" in given else EMAIL_SCOPE
            return 200, {"access_token": f"token-of-{owner}{scope}", "expires_in": 3600, "token_type": "Bearer"}
        if host.startswith("openidconnect."):
            return _userinfo(token, quota_project)
        token = token.removesuffix(EMAIL_SCOPE)
        if path.endswith("/allowedLocations"):  # which Google's library asks for by itself
            return 200, {"locations": [], "encodedLocations": "0x0"}
        self.callers.setdefault(host, []).append(token)
        if token in self.expired:
            return 401, {"error": {"code": 401, "message": "Request had invalid authentication credentials."}}
        if matched := _IMPERSONATION.fullmatch(path):
            if self.refusal:
                return 403, {"error": {"code": 403, "message": self.refusal}}
            self.delegates = json.loads(body).get("delegates") or []
            return 200, {"accessToken": f"{token}-as-{matched[1]}", "expireTime": "2099-01-01T00:00:00Z"}
        # A job, a build or an object, by whatever its path names.
        return 200, {
            "name": path.partition("?")[0].removeprefix("/v1/"),
            "id": path.rpartition("/")[2],
            "status": "QUEUED",
            "generation": "1",
        }


@contextmanager
def google_apis(folder: Path) -> Iterator[GoogleApisStandIn]:
    """The stand-in, behind a proxy on a port of this machine."""
    hosts = [REGISTRY, JOBS, *(f"{api}.googleapis.com" for api in (*_APIS, _PROJECTS))]
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    certificates.make(certificate, key, "google", *hosts)
    # A short one is checked by each client that reads it in a fifth of the time.
    private_key = subprocess.run(["openssl", "genrsa", "1024"], check=True, capture_output=True, text=True).stdout
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    standin = GoogleApisStandIn(folder, private_key=private_key)

    class Api(BaseHTTPRequestHandler):
        host = ""

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            token = _read_token(self.headers.get("Authorization", ""))
            quota_project = self.headers.get("x-goog-user-project", "")
            status, reply = standin.answer(self.host, self.path, token, body, quota_project)
            content = json.dumps(reply).encode()
            if status == 200 and self.host == JOBS and standin.vertex:
                headers = {"Content-Type": "application/json"}
                url = f"{standin.vertex}{self.path}"
                with requests.request(self.command, url, data=body, headers=headers) as forwarded:
                    status, content = forwarded.status_code, forwarded.content
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Docker-Content-Digest", f"sha256:{'0' * 64}")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815

        def log_message(self, *arguments: object) -> None:
            """Nothing: a test's output is its own."""

    class Proxy(StreamRequestHandler):
        def handle(self) -> None:
            _, address, _ = self.rfile.readline().decode().split()
            while self.rfile.readline().strip():
                pass
            host = address.partition(":")[0]
            if host not in hosts:
                self.wfile.write(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
                return
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            with tls.wrap_socket(self.connection, server_side=True) as connection:
                type("Handler", (Api,), {"host": host})(connection, self.client_address, self.server)  # type: ignore[arg-type]

    class Server(ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Proxy) as server:
        threading.Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
        proxy = f"http://127.0.0.1:{server.server_address[1]}"
        standin.variables = dict.fromkeys(("HTTPS_PROXY", "https_proxy"), proxy)
        standin.variables |= dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
        standin.variables["REQUESTS_CA_BUNDLE"] = str(certificate)
        yield standin
        server.shutdown()


def _userinfo(token: str, quota_project: str) -> tuple[int, dict[str, object]]:
    """Whose a token is, by its scopes. It takes no quota project (terraform-provider-google #10260)."""
    if quota_project:
        message = "Google Identity API has not been used in project before or it is disabled."
        return 403, {"error": {"code": 403, "message": message}}
    if not token.endswith(EMAIL_SCOPE):
        return 401, {"error": "invalid_request", "error_description": "Invalid Credentials"}
    email = token.removesuffix(EMAIL_SCOPE).removeprefix("token-of-")
    return 200, {"sub": "1", "email": email, "email_verified": True}


def _impersonation_url(account: str) -> str:
    return f"https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/{account}:generateAccessToken"


def _read_token(authorization: str) -> str:
    """Return the token of a call; of a self-signed one, as clients make for keys, that of the key."""
    kind, _, text = authorization.partition(" ")
    if kind == "Basic":
        return base64.b64decode(text).decode().partition(":")[2]
    return f"token-of-{_read_issuer(text)}" if text.count(".") == 2 and text.startswith("ey") else text


def _read_issuer(signed: str) -> str:
    payload = signed.split(".")[1]
    return str(json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["iss"])
