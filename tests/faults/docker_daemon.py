"""A Docker daemon of the tests' own, which they may stop and kill.

It runs in a network namespace of its own. Without one it would share the machine's `docker0` with the machine's
daemon: by default it takes the bridge over, and with `--bridge=none` it removes it.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.vertex_emulator.running import PATIENCE_SECONDS, until


def why_impossible() -> str:
    """Why no second daemon can run here; empty where one can."""
    if os.geteuid() != 0:
        return "a second Docker daemon needs root"
    missing = [program for program in ("dockerd", "unshare", "nsenter", "mount") if shutil.which(program) is None]
    return f"{', '.join(missing)} not found" if missing else ""


class DockerDaemon:
    """The daemon, with its data below `folder`, which is a disk in memory; `host` is its DOCKER_HOST.

    `hosts` is what it finds in /etc/hosts, if anything else than the machine does; it then runs no containers, as a
    containerd of the machine would not see its mounts. `variables` are added to its environment. What is run by
    `inside` is in its network.
    """

    def __init__(self, folder: Path, hosts: str = "", variables: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self._variables = variables or {}
        self.host = f"unix://{folder}/docker.sock"
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1g", "docker-data", str(folder)], check=True)
        spaces = ["--net", "--mount"] if hosts else ["--net"]
        self._network = subprocess.Popen(["unshare", *spaces, "sleep", "infinity"])
        ours = Path("/proc/self/ns/net").readlink()
        until(lambda: Path(f"/proc/{self._network.pid}/ns/net").readlink() != ours, "the network namespace")
        self.inside = ["nsenter", "-t", str(self._network.pid), *spaces]
        if hosts:
            (folder / "hosts").write_text(hosts)
            until(lambda: Path(f"/proc/{self._network.pid}/comm").read_text() == "sleep\n", "the mount namespace")
            subprocess.run([*self.inside, "mount", "--bind", str(folder / "hosts"), "/etc/hosts"], check=True)
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
        command = [*self.inside, "dockerd", *(f"--{name}={value}" for name, value in options.items())]
        self._log = (self.folder / "log").open("a")
        environment = {**os.environ, **self._variables}
        self.process = subprocess.Popen(command, env=environment, stdout=self._log, stderr=self._log)
        until(self._answers, "the daemon's first answer")

    def _answers(self) -> bool:
        assert self.process.poll() is None, (self.folder / "log").read_text()[-2000:]
        return self.docker("version").returncode == 0

    def end(self) -> None:
        """Stop it, and its containers with it, as every daemon does that is not set to keep them."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE_SECONDS)
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
            subprocess.run(["umount", "--recursive", "--lazy", str(self.folder)], check=True)
            self.folder.rmdir()
