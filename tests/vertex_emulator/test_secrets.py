"""Secret Manager for containers: the three lines of the documentation, and who reads which secrets."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from google.api_core import exceptions

from tests.blocks import taken
from tests.vertex_emulator.running import (
    PARENT,
    RunningEmulator,
    custom_job,
    labelled,
    let_first_replica_end_last,
    pool,
    until,
)
from tests.vertex_emulator.test_container_attacks import host_service, needs_root, probe

VALUE = "correct-horse-battery-staple-ü"
NAME = "projects/my-project/secrets/hf-token/versions"
READ = f"""
import base64, hashlib, json, os, urllib.request
url = os.environ["SECRET_MANAGER_API_ENDPOINT"] + "/v1/{NAME}/latest:access"
request = urllib.request.Request(url, headers={{"X-Goog-Api-Key": os.environ["SECRET_MANAGER_API_KEY"]}})
data = base64.b64decode(json.load(urllib.request.urlopen(request))["payload"]["data"])
print(data.decode().encode("punycode").decode()[::-1])
"""
AS_PRINTED = VALUE.encode("punycode").decode()[::-1]
PRINT_ACCESS = "import os; [print(os.environ[f'SECRET_MANAGER_API_{name}']) for name in ('ENDPOINT', 'KEY')]"


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEmulator]:
    """An emulator with secrets of two projects."""
    emulator = RunningEmulator(tmp_path_factory.mktemp("secrets") / "data")
    file = emulator.data / "secrets.json"
    file.write_text(json.dumps({"my-project": {"hf-token": VALUE}, "other-project": {"hf-token": "other"}}))
    file.chmod(0o600)
    yield emulator
    emulator.close()


@pytest.fixture(scope="module")
def access(emulator: RunningEmulator) -> dict[str, str]:
    """What a container gets to reach the secrets of its project."""
    job = emulator.create(custom_job(pool(PRINT_ACCESS)))
    emulator.ended(job)
    host, key = emulator.lines(job)
    return {"SECRET_MANAGER_API_ENDPOINT": host, "SECRET_MANAGER_API_KEY": key}


@pytest.mark.parametrize("replicas", [1, 2])
def test_containers_read_secrets_and_nothing_keeps_them(emulator: RunningEmulator, replicas: int) -> None:
    job = emulator.create(custom_job(*[pool(let_first_replica_end_last(READ))] * replicas))
    assert emulator.ended(job)["state"] == "JOB_STATE_SUCCEEDED", emulator.lines(job)
    assert emulator.lines(job) == [AS_PRINTED] * replicas
    until(lambda: not labelled(job), "the removal of its containers, which comes after their logs are saved")
    files = [file for file in emulator.data.rglob("*") if file.is_file() and file.name != "secrets.json"]
    for file in [*files, emulator.data.parent / f"{emulator.data.name}.log"]:
        assert VALUE.encode() not in file.read_bytes(), file


def test_documented_lines_read_a_secret(access: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**access, "HF_TOKEN": f"{NAME}/latest", "NO_PROXY": "*"}.items():
        monkeypatch.setenv(name, value)
    (lines,) = taken("docs/configuration.md", "python", "import os\nfrom google.cloud import secretmanager")
    found: dict[str, Any] = {}
    exec(lines, found)
    assert found["token"] == VALUE
    read = found["client"].access_secret_version
    assert read(name=f"{NAME}/1").name == read(name=f"{NAME}/latest").name
    with pytest.raises(exceptions.NotFound, match=r"Secret Version \[projects/\d+/secrets/hf-token/versions/2\] not"):
        read(name=f"{NAME}/2")
    with pytest.raises(exceptions.NotFound, match=r"Secret \[projects/\d+/secrets/nope\] not found or has no versions"):
        read(name=f"{NAME.replace('hf-token', 'nope')}/latest")
    with pytest.raises(exceptions.Forbidden, match=r"Permission 'secretmanager.versions.access' denied"):
        read(name=f"{NAME.replace('my-', 'other-')}/latest")


def test_only_secrets_are_served_to_key_holders(emulator: RunningEmulator, access: dict[str, str]) -> None:
    url, key = access["SECRET_MANAGER_API_ENDPOINT"], access["SECRET_MANAGER_API_KEY"]
    assert emulator.http.get(f"{url}/v1/{NAME}/latest:access").status_code == 401
    headers = {"X-Goog-Api-Key": key}
    assert emulator.http.get(f"{url}/v1/{NAME}/latest:access", headers=headers).status_code == 200
    for path in (f"v1/{PARENT}/customJobs", "storage/v1/b", "healthz", "v1/projects/my-project/secrets"):
        assert emulator.http.get(f"{url}/{path}", headers=headers).status_code == 401
    # On its own port, the emulator's user needs no key.
    assert emulator.call("GET", f"v1/{NAME}/latest:access")["payload"].keys() == {"data", "dataCrc32c"}


@needs_root
def test_other_ports_of_the_machine_stay_closed(emulator: RunningEmulator, access: dict[str, str]) -> None:
    with host_service() as port:
        (found,) = probe(emulator, str(port), f"127.0.0.1:{port}")
    assert found["gateway"] == "ConnectionRefusedError"
