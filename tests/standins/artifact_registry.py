"""A stand-in for Artifact Registry and for those who give tokens for it.

A real Docker daemon of the tests' own reaches Debian's docker-registry under one of Google's names, behind TLS that it
verifies. The registry takes one access token, as Google's does: as the password of `oauth2accesstoken`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests import certificates, registry
from tests.faults import docker_daemon
from tests.faults.docker_daemon import DockerDaemon
from tests.standins.json_answers import send_json
from tests.vertex_emulator.running import PATIENCE_SECONDS, until

HOST = "europe-west4-docker.pkg.dev"
ADDRESS = "10.71.0.1"
"""Of the registry, in a network of its own; Docker would not verify TLS on 127.0.0.1."""
_CONFIG = """\
version: 0.1
log: {{level: error}}
storage: {{filesystem: {{rootdirectory: {folder}/images}}}}
http: {{addr: "{address}", tls: {{certificate: {folder}/certificate.pem, key: {folder}/key.pem}}}}
auth: {{htpasswd: {{realm: google, path: {folder}/htpasswd}}}}
"""


def why_impossible() -> str:
    """Why it cannot be had here; empty where it can."""
    return docker_daemon.why_impossible() or registry.missing() or ("" if shutil.which("openssl") else "no openssl")


class TokensStandIn:
    """Where Application Default Credentials change a service account's key for an access token.

    It gives `token`, or refuses all where that is None; `asked` counts. `credentials` is the key's file, `private_key`
    what is secret in it.
    """

    def __init__(self, folder: Path, url: str, token: str) -> None:
        self.folder, self.url = folder, url
        self.token: str | None = token
        self.asked = 0
        made = subprocess.run(["openssl", "genpkey", "-algorithm", "RSA"], check=True, capture_output=True, text=True)
        self.private_key = made.stdout.splitlines()[3]
        self.credentials = folder / "google.json"
        account = {"type": "service_account", "client_email": "deployer@acme-dev.iam.gserviceaccount.com"}
        account |= {"private_key": made.stdout, "token_uri": url, "project_id": "acme-dev"}
        self.credentials.write_text(json.dumps(account))

    def write_federation(self, subject: str) -> Path:
        """Write the configuration of an identity pool, to which the token `subject` of another provider is given."""
        (self.folder / "subject").write_text(subject)
        pool = {"type": "external_account", "credential_source": {"file": str(self.folder / "subject")}}
        pool |= {"audience": "//iam.googleapis.com/locations/global/workforcePools/acme/providers/acme"}
        pool |= {"subject_token_type": "urn:ietf:params:oauth:token-type:id_token", "token_url": self.url}
        path = self.folder / "pool.json"
        path.write_text(json.dumps(pool))
        return path


@contextmanager
def tokens(folder: Path, token: str) -> Iterator[TokensStandIn]:
    """The stand-in, on a port of this machine, for as long as the context lasts."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            standin.asked += 1
            answer = {"access_token": standin.token, "expires_in": 3600, "token_type": "Bearer"}
            send_json(self, *((200, answer) if standin.token else (400, {"error": "invalid_grant"})))

        def log_message(self, *arguments: object) -> None:
            """Nothing: a test's output is its own."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        standin = TokensStandIn(folder, f"http://127.0.0.1:{server.server_port}/token", token)
        threading.Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
        yield standin
        server.shutdown()


def write_registry_files(folder: Path, address: str, token: str) -> None:
    """Write what a registry under HOST's name needs in its folder to serve at an address; its file is config.yml."""
    certificates.make(folder / "certificate.pem", folder / "key.pem", HOST, HOST)
    login = ["htpasswd", "-Bbn", "oauth2accesstoken", token]
    (folder / "htpasswd").write_text(subprocess.run(login, check=True, capture_output=True, text=True).stdout)
    (folder / "config.yml").write_text(_CONFIG.format(folder=folder, address=address))


@contextmanager
def artifact_registry(token: str) -> Iterator[DockerDaemon]:
    """A daemon for which HOST is a registry that takes this token."""
    # A short path: a socket's is limited to 107 characters.
    folder = Path(tempfile.mkdtemp(prefix="vertex-google-"))
    write_registry_files(folder, f"{ADDRESS}:443", token)
    (folder / "docker").mkdir()
    variables = {"SSL_CERT_FILE": f"{folder}/certificate.pem"}
    daemon = DockerDaemon(folder / "docker", f"{ADDRESS} {HOST}\n", variables)
    try:
        for command in (["link", "set", "lo", "up"], ["address", "add", f"{ADDRESS}/32", "dev", "lo"]):
            subprocess.run([*daemon.inside, "ip", *command], check=True)
        log = (folder / "log").open("w")
        serve = [*daemon.inside, "docker-registry", "serve", f"{folder}/config.yml"]
        served = subprocess.Popen(serve, stdout=log, stderr=log)
        try:
            probe = [*daemon.inside, "openssl", "s_client", "-connect", f"{HOST}:443"]
            until(lambda: subprocess.run(probe, stdin=subprocess.DEVNULL, capture_output=True).returncode == 0, "TLS")
            yield daemon
        finally:
            served.terminate()
            served.wait(timeout=PATIENCE_SECONDS)
            log.close()
    finally:
        daemon.close()
        shutil.rmtree(folder)
