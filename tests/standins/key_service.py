"""A stand-in for a key service, HashiCorp Vault: the two calls with which `pulumi` keeps a stack's key there.

With a passphrase in its place, every command of `pulumi` derives the key by a million hashes, which is a seventh of the
command's processor time on a small stack.
"""

import json
import threading
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PROVIDER = "hashivault://tests"
"""For `pulumi stack init --secrets-provider`."""
_PREFIX = "vault:v1:"


@cache
def get_environment() -> dict[str, str]:
    """Start the key service for the life of this process, and return the variables that tell `pulumi` where it is."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return {"VAULT_SERVER_URL": f"http://127.0.0.1:{server.server_port}", "VAULT_SERVER_TOKEN": "tests"}


class _Handler(BaseHTTPRequestHandler):
    def do_PUT(self) -> None:
        """`PUT /v1/transit/encrypt/KEY` and `PUT /v1/transit/decrypt/KEY`."""
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.startswith("/v1/transit/encrypt/"):
            data = {"ciphertext": _PREFIX + sent["plaintext"]}
        else:
            data = {"plaintext": sent["ciphertext"].removeprefix(_PREFIX)}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"data": data}).encode())

    def log_message(self, *_: object) -> None: ...
