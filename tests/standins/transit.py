"""A stand-in for Vault's transit engine: Pulumi asks it once in a command for the key of a stack's secrets.

From a passphrase it derives the key instead, by a million rounds of a hash: a third of the processor time of a command
on a small stack.
"""

import json
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

PROVIDER = "hashivault://tests"


@cache
def get_variables() -> dict[str, str]:
    """Return the variables with which `pulumi` asks a server that is started now and ends with this process."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Transit)
    Thread(target=server.serve_forever, daemon=True).start()
    return {"VAULT_ADDR": f"http://127.0.0.1:{server.server_port}", "VAULT_TOKEN": "of-the-tests"}


class _Transit(BaseHTTPRequestHandler):
    """Encrypts nothing: what it hands out is what it was given."""

    def do_PUT(self) -> None:
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_encrypted = "ciphertext" in given
        data = {"plaintext": given["ciphertext"]} if is_encrypted else {"ciphertext": given["plaintext"]}
        content = json.dumps({"data": data}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None: ...
