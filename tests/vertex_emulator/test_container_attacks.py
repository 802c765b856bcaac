"""What a hostile training container cannot do to the machine it runs on. The first process of each is root."""

import json
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.vertex_emulator.running import (
    PATIENCE_SECONDS,
    RunningEmulator,
    command,
    custom_job,
    labelled,
    let_first_replica_end_last,
    pool,
    until,
)
from vertex_emulator import server

MB = 1 << 20
PROBE = """
import json, socket, struct, sys
def connect(host, port):
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
        return "connected"
    except OSError as error:
        return type(error).__name__
routes = [line.split() for line in open("/proc/net/route")][1:]
# On an internal network there is no default route; the bridge has the network's first address.
networks = [int(route[1], 16) for route in routes if route[1] != "00000000"]
gateway = socket.inet_ntoa(struct.pack(">I", socket.ntohl(networks[0]) + 1)) if networks else "172.17.0.1"
found = {"gateway": connect(gateway, sys.argv[1]), "metadata": connect("169.254.169.254", 8080)}
found.update({host: connect(host, port) for host, port in (pair.split(":") for pair in sys.argv[2:])})
print(json.dumps({"message": "probe", **found}))
"""

SERVERS = ["168.63.129.16", "100.100.100.200"]  # of Azure and Alibaba Cloud
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root sets rules of the firewall")


@contextmanager
def host_service() -> Iterator[int]:
    """A service on every address of this machine; its port."""
    with socket.create_server(("0.0.0.0", 0)) as listener:

        def accept() -> None:
            while True:
                try:
                    listener.accept()[0].close()
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]


def run(emulator: RunningEmulator, script: str, *args: str, replicas: int = 1, **container: Any) -> list[str]:
    """What the containers of a job that succeeds write."""
    pools = [pool(script, args=list(args), **container)]
    pools += [pool(script, replicas - 1, args=list(args), **container)] * (replicas > 1)
    name = emulator.create(custom_job(*pools))
    assert emulator.ended(name)["state"] == "JOB_STATE_SUCCEEDED", emulator.lines(name)
    return emulator.lines(name)


def probe(emulator: RunningEmulator, *args: str, replicas: int = 1) -> list[dict[str, str]]:
    """What each replica of a job reaches."""
    script = let_first_replica_end_last(PROBE)
    pools = [pool(script, args=list(args))] + [pool(script, replicas - 1, args=list(args))] * (replicas > 1)
    name = emulator.create(custom_job(*pools))
    emulator.ended(name)
    entries = emulator.entries(name, 'resource.labels.task_name!="service"')
    return [entry["jsonPayload"] for entry in entries]


@needs_root
@pytest.mark.parametrize("replicas", [1, 2])
def test_host_services_and_metadata_are_unreachable(shared: RunningEmulator, replicas: int) -> None:
    with host_service() as port:
        address = f"{socket.gethostbyname(socket.gethostname())}:{port}"
        for found in probe(shared, str(port), address, *(f"{host}:80" for host in SERVERS), replicas=replicas):
            assert found["gateway"] == "ConnectionRefusedError"
            assert {found[host] for host in ("metadata", *SERVERS)} == {"ConnectionRefusedError"}
            assert found[address.partition(":")[0]] != "connected"
    assert "network    containers reach the internet, but not this machine, except the emulator" in status(shared)


LISTEN = """
import socket, sys, time
with socket.create_server(("", 3333)) as server:
    print(socket.gethostbyname(socket.gethostname()), flush=True)
    server.accept()
"""


def test_jobs_do_not_reach_each_other(shared: RunningEmulator) -> None:
    listening = shared.create(custom_job(pool(LISTEN)))
    (address,) = until(lambda: shared.lines(listening), "the first line")
    (found,) = probe(shared, "1", f"{address}:3333")
    assert found[address] != "connected"
    shared.call("POST", f"v1/{listening}:cancel", {})
    shared.ended(listening)


RESOLVE = """
import socket
print(socket.gethostbyname(socket.gethostname()))
try:
    socket.gethostbyname("example.com")
except OSError:
    print("no name")
"""


def test_containers_without_egress_reach_nothing_else(tmp_path: Path) -> None:
    emulator = RunningEmulator(tmp_path / "data", "--no-egress")
    try:
        with host_service() as port:
            (found,) = probe(emulator, str(port), "192.0.2.1:80", "1.1.1.1:53")
        assert "connected" not in (found["metadata"], found["192.0.2.1"], found["1.1.1.1"])
        (first, second) = probe(emulator, "1", "1.1.1.1:53", replicas=2)
        assert "connected" not in (*first.values(), *second.values())
        assert run(emulator, RESOLVE) == ["127.0.0.1", "no name"]
        emulator.end()
        emulator.options = ()
        emulator.start()  # the option is remembered
        assert any("neither the internet" in line for line in status(emulator))
    finally:
        emulator.close()


def status(emulator: RunningEmulator) -> list[str]:
    """The lines of `vertex-emulator status`."""
    return command("status", data=emulator.data).stdout.splitlines()


@needs_root
def test_reset_removes_networks_and_firewall_rules(own: RunningEmulator) -> None:
    pools = (pool("import time; time.sleep(600)"), pool("import time; time.sleep(600)"))
    name = own.create(custom_job(*pools))
    until(lambda: len(labelled(name)) == 2, "its containers")
    assert len(network_names(get_emulator_id(own))) == 1
    rules = list_rules(get_emulator_id(own))
    assert "reject" in rules
    own.end()
    assert list_rules(get_emulator_id(own)) == rules  # its containers go on
    own.start()
    run(own, "pass")
    assert list_rules(get_emulator_id(own)) == rules
    own.end(9)
    identity = get_emulator_id(own)
    assert command("reset", "--yes", data=own.data).returncode == 0
    assert (network_names(identity), list_rules(identity)) == ([], "")


@needs_root
def test_flushed_rules_are_added_again(own: RunningEmulator) -> None:
    run(own, "pass")
    subprocess.run(["nft", "delete", "table", "inet", f"vertex_{get_emulator_id(own)}"], check=True)
    own.end()
    own.prepare = await_removal_of_rules
    own.start()
    with host_service() as port:
        (found,) = probe(own, str(port))
    assert found["gateway"] == "ConnectionRefusedError"
    until(lambda: not list_container_ids(get_emulator_id(own)), "the removal of its containers")
    assert list_rules(get_emulator_id(own))
    own.end()  # an idle one leaves no rules
    assert list_rules(get_emulator_id(own)) == ""


def await_removal_of_rules() -> None:
    """Let a stop wait for Docker for as long as it takes."""
    server._STOP_SECONDS = PATIENCE_SECONDS


def list_container_ids(identity: str) -> list[str]:
    """The containers of an emulator."""
    command = ["docker", "ps", "-aq", "--filter", f"label=vertex-training.emulator={identity}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def get_emulator_id(emulator: RunningEmulator) -> str:
    import sqlite3

    with sqlite3.connect(emulator.data / "emulator.db") as connection:
        return str(connection.execute("SELECT value FROM settings WHERE key = 'emulator'").fetchone()[0])


def network_names(identity: str) -> list[str]:
    """The networks of an emulator."""
    label = f"label=vertex-training.emulator={identity}"
    done = subprocess.run(
        ["docker", "network", "ls", "--format", "{{.Name}}", "-f", label], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def list_rules(identity: str) -> str:
    """The firewall's rules of an emulator; empty without any."""
    table = f"vertex_{identity}"
    return subprocess.run(["nft", "list", "table", "inet", table], capture_output=True, text=True).stdout


INSIDE = """
import json, os, pathlib, shutil, subprocess
def attempt(action):
    try:
        action()
        return "done"
    except OSError as error:
        return type(error).__name__
open("/gcs/attack/file", "w").close()
with open("/proc/self/status") as file:
    status = dict(line.rstrip().split(":\\t", 1) for line in file if ":\\t" in line)
shutil.copy("/usr/bin/id", "/gcs/attack/id")
os.chmod("/gcs/attack/id", 0o4755)
limits = map(pathlib.Path, ("/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max"))
print(json.dumps({
    "message": "inside",
    "effective": int(status["CapEff"], 16),
    "no new privileges": status["NoNewPrivs"],
    "socket": os.path.exists("/var/run/docker.sock"),
    "pids": next(limit.read_text().strip() for limit in limits if limit.exists()),
    "user of setuid": subprocess.check_output(["/gcs/attack/id", "-u"], user=65534, group=65534, text=True).strip(),
    "mknod": attempt(lambda: os.mknod("/gcs/attack/disk", 0o60666, os.makedev(8, 0))),
    "setcap": attempt(lambda: os.setxattr(
        "/gcs/attack/file", "security.capability", bytes.fromhex("0100000202000000000000000000000000000000"))),
    "packet": attempt(lambda: __import__("socket").socket(17, 3)),
    "chown": attempt(lambda: os.chown("/gcs/attack/file", 1000, 1000)),
    "buckets": [attempt(action) for action in (
        lambda: os.mkdir("/gcs/atack"), lambda: os.rename("/gcs/attack", "/gcs/other"),
        lambda: os.symlink("/etc", "/gcs/link"), lambda: os.chmod("/gcs", 0o700))],
}))
"""
KEPT_CAPABILITIES = sum(1 << number for number in (0, 1, 3, 5, 6, 7, 10, 18))


@pytest.fixture(scope="module")
def inside(shared: RunningEmulator) -> dict[str, Any]:
    """What a container finds out about itself."""
    (shared.data / "gcs" / "attack").mkdir(exist_ok=True)
    name = shared.create(custom_job(pool(INSIDE)))
    assert shared.ended(name)["state"] == "JOB_STATE_SUCCEEDED", shared.lines(name)
    (entry,) = shared.entries(name, 'resource.labels.task_name!="service"')
    found: dict[str, Any] = entry["jsonPayload"]
    return found


def test_dangerous_capabilities_are_dropped(inside: dict[str, Any]) -> None:
    assert inside["effective"] == KEPT_CAPABILITIES
    assert (inside["mknod"], inside["setcap"], inside["packet"]) == ("PermissionError",) * 3
    assert inside["chown"] == "done"


def test_container_neither_makes_nor_replaces_buckets(inside: dict[str, Any]) -> None:
    assert inside["buckets"] == ["OSError"] * 4  # a read-only file system


def test_container_has_no_privileges_or_docker_socket(inside: dict[str, Any]) -> None:
    assert (inside["no new privileges"], inside["socket"]) == ("1", False)


def test_setuid_programs_gain_nothing_in_containers(inside: dict[str, Any]) -> None:
    assert inside["user of setuid"] == "65534"


def test_pids_are_limited_without_options(inside: dict[str, Any]) -> None:
    assert inside["pids"] == "8192"


FORKS = """
import os, time
children = []
try:
    while len(children) < 100_000:
        child = os.fork()
        if child == 0:
            time.sleep(600)
            os._exit(0)
        children.append(child)
except OSError as error:
    print(len(children), type(error).__name__, flush=True)
"""


def test_fork_flood_stays_within_limit(tmp_path: Path) -> None:
    emulator = RunningEmulator(tmp_path / "data", "--pids-limit", "300")
    try:
        (line,) = run(emulator, FORKS)
        count, error = line.split()
        assert (int(count) < 300, error) == (True, "BlockingIOError")
        assert emulator.call("GET", "healthz")["status"] == "ok"
    finally:
        emulator.close()


FLOOD = """
import sys
line = "x" * 99 + chr(10)
for number in range(int(sys.argv[1])): sys.stdout.write(f"{number:08} " + line)
sys.stdout.flush()
"""


def log_warnings(emulator: RunningEmulator, name: str) -> list[str]:
    """The warnings about logs in the log of a job."""
    return [text for text in emulator.lines(name, 'severity="WARNING"') if "log" in text]


def test_log_below_limit_is_whole_and_silent(tmp_path: Path) -> None:
    emulator = RunningEmulator(tmp_path / "data", "--log-limit-mb", "2")
    try:
        name = emulator.create(custom_job(pool(FLOOD, args=["9000"])))
        assert emulator.ended(name)["state"] == "JOB_STATE_SUCCEEDED"
        until(lambda: not labelled(name), "the removal of its container")
        saved = read_saved_log(emulator, name)
        assert [int(text[:8]) for text in saved] == list(range(9000))
        assert log_warnings(emulator, name) == []
    finally:
        emulator.close()


def read_saved_log(emulator: RunningEmulator, name: str) -> list[str]:
    """The lines of the saved log of a job of one replica."""
    (file,) = (emulator.data / "logs" / name.rpartition("/")[2]).glob("*.jsonl")
    return [json.loads(line)[2] for line in file.read_text().splitlines()]


def test_50_mb_of_log_are_bounded_and_reported(tmp_path: Path) -> None:
    emulator = RunningEmulator(tmp_path / "data", "--log-limit-mb", "8")
    try:
        lines = 50 * MB // 109
        name = emulator.create(custom_job(pool(FLOOD + "import time; time.sleep(600)", args=[str(lines)])))
        (container,) = until(lambda: labelled(name), "its container")
        read_last_line = ["docker", "logs", "--tail", "1", container]  # the file has no name while it is rotated
        until(
            lambda: subprocess.run(read_last_line, capture_output=True).stdout.startswith(b"%08d " % (lines - 1)),
            "the last line",
        )
        inspected = subprocess.run(
            ["docker", "inspect", "-f", "{{.LogPath}}", container], capture_output=True, text=True, check=True
        )
        path = Path(inspected.stdout.strip())
        assert sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*")) < 11 * MB
        emulator.call("POST", f"v1/{name}:cancel", {})
        emulator.ended(name)
        until(lambda: not labelled(name), "the removal of its container")
        kept = [int(text[:8]) for text in read_saved_log(emulator, name)]
        assert kept == list(range(kept[0], lines))
        (warning,) = log_warnings(emulator, name)
        assert warning.startswith("The log of workerpool0-0 reached its limit of 8 MB")
    finally:
        emulator.close()
