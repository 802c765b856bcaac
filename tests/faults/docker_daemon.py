"""A Docker daemon of the tests' own, which they may stop and kill.

It runs in a network namespace of its own. Without one it would share the machine's `docker0` with the machine's
daemon: by default it takes the bridge over, and with `--bridge=none` it removes it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

from tests.emulator.running import until


def why_impossible() -> str:
    """Why no second daemon can run here; empty where one can."""
    if os.geteuid() != 0:
        return "a second Docker daemon needs root"
    missing = [program for program in ("dockerd", "unshare", "nsenter") if shutil.which(program) is None]
    return f"{', '.join(missing)} not found" if missing else ""


class DockerDaemon:
    """The daemon, with its data below `folder`; `host` is its DOCKER_HOST."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.host = f"unix://{folder}/docker.sock"
        self._network = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        ours = Path("/proc/self/ns/net").readlink()
        until(lambda: Path(f"/proc/{self._network.pid}/ns/net").readlink() != ours, "the network namespace")
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        own = f"vertex-training-test-{self._network.pid}"
        options = {
            "host": self.host,
            "pidfile": f"{self.folder}/pid",
            "data-root": f"{self.folder}/data",
            "exec-root": f"{self.folder}/exec",
            "containerd-namespace": own,
            "containerd-plugins-namespace": f"{own}-plugins",
            "shutdown-timeout": "1",
            "iptables": "false",
            "ip6tables": "false",
        }
        command = ["nsenter", "-t", str(self._network.pid), "--net", "dockerd"]
        command += [f"--{name}={value}" for name, value in options.items()]
        self._log = (self.folder / "log").open("a")
        self.process = subprocess.Popen(command, stdout=self._log, stderr=self._log)
        until(self._answers, "the daemon's first answer")

    def _answers(self) -> bool:
        assert self.process.poll() is None, (self.folder / "log").read_text()[-2000:]
        return self.docker("version").returncode == 0

    def end(self) -> None:
        """Stop it, and its containers with it, as every daemon does that is not set to keep them."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        self._log.close()

    def docker(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """Run `docker …` on it."""
        return subprocess.run(["docker", "--host", self.host, *arguments], capture_output=True)

    def load(self, image: str) -> None:
        """Give it an image of the machine's daemon."""
        with subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE) as saved:
            subprocess.run(["docker", "--host", self.host, "load", "--quiet"], stdin=saved.stdout, check=True)

    def close(self) -> None:
        """End it with all that it holds."""
        try:
            found = self.docker("ps", "-aq").stdout.decode().split()
            if found:
                self.docker("rm", "-f", *found)
            self.end()
        finally:
            self._network.kill()
            self._network.wait()
            shutil.rmtree(self.folder, ignore_errors=True)
