"""A real registry, Debian's docker-registry, on this machine and with a password."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.ports import reserve_port

PASSWORD = "canary-of-the-registry"
_CONFIG = """\
version: 0.1
log: {{level: error}}
storage: {{filesystem: {{rootdirectory: {folder}/images}}}}
http: {{addr: "127.0.0.1:{port}"}}
auth: {{htpasswd: {{realm: test, path: {folder}/htpasswd}}}}
"""


def missing() -> str | None:
    """Return why no registry can be started here, as the reason of a skip; `None` if one can."""
    programs = [program for program in ("docker-registry", "htpasswd") if not shutil.which(program)]
    return f"needs {' and '.join(programs)} (`make test` installs them on Debian, as root)" if programs else None


NEEDED = pytest.mark.skipif(missing() is not None, reason=str(missing()))
SOCKETS_LEFT_OPEN = pytest.mark.filterwarnings("ignore:.*unclosed <socket", "ignore:Exception ignored in. <socket")
"""The Docker SDK does not close the socket of a response that is an error."""


class Registry:
    """A registry with the account `team`; `url` starts image names, `docker_config` is a folder with the login."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port
        folder.mkdir()
        self.host = f"localhost:{self.port}"
        self.url = f"{self.host}/team"
        passwords = subprocess.run(["htpasswd", "-Bbn", "team", PASSWORD], check=True, capture_output=True, text=True)
        (folder / "htpasswd").write_text(passwords.stdout)
        (folder / "config.yml").write_text(_CONFIG.format(folder=folder, port=self.port))
        self.docker_config = folder / "docker"
        self.docker_config.mkdir()
        login = base64.b64encode(f"team:{PASSWORD}".encode()).decode()
        (self.docker_config / "config.json").write_text(json.dumps({"auths": {self.host: {"auth": login}}}))
        self.start()

    def start(self) -> None:
        """Start the process; images that were pushed before are still there."""
        self._log = (self.folder / "log").open("a")
        self._process = subprocess.Popen(
            ["docker-registry", "serve", str(self.folder / "config.yml")], stdout=self._log, stderr=self._log
        )
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                is_ended = self._process.poll() is not None
                assert not is_ended and time.monotonic() < deadline, (self.folder / "log").read_text()
                time.sleep(0.02)

    def stop(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.wait()
        self._log.close()


@contextmanager
def registry(folder: Path) -> Iterator[Registry]:
    """Run a registry while the context lasts."""
    with reserve_port() as port:
        server = Registry(folder, port)
        try:
            yield server
        finally:
            server.stop()
