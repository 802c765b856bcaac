"""What must not pass: pages of other sites, credentials, paths out of the data folder, bytes that a terminal obeys."""

import gc
import http.client
import json
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.vertex_emulator.running import PARENT, RunningEmulator, absent, command, custom_job, pool
from tests.vertex_emulator.test_studies import REPORT, study
from vertex_emulator.data_folder import DataFolder

JSON = {"Content-Type": "application/json"}
CANARY = "canary-4711-secret"


def port(emulator: RunningEmulator) -> int:
    found = urlsplit(emulator.url).port
    assert found is not None
    return found


def raw(emulator: RunningEmulator, *parts: bytes) -> bytes:
    """The head of the answer to bytes that no ordinary client sends."""
    with closing(socket.create_connection(("127.0.0.1", port(emulator)))) as connection:
        for part in parts:
            connection.sendall(part)
        return connection.recv(4096)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://127.0.0.1.evil.example"},
        {"Origin": "https://localhost.evil.example:8080"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://user@localhost"},
        {"Origin": "file://"},
        {"Origin": "http://127.0.0.1"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://localhost"},
        {"Host": "rebound.evil.example"},
        {"Host": "0.0.0.0"},
        {"Host": "[::ffff:10.0.0.1]"},
        {"Host": "localhost@evil.example"},
        {"Host": "localhost#evil.example"},
        {"Host": "localhost?evil.example"},
        {"Host": "[::1]evil.example"},
        {"Host": "evil.example[::1]"},
        {"Host": ""},
    ],
)
@pytest.mark.parametrize(("method", "path"), [("POST", f"v1/{PARENT}/customJobs"), ("DELETE", "v1/x"), ("GET", "")])
def test_other_sites_and_rebound_names_are_rejected(
    shared: RunningEmulator, headers: dict[str, str], method: str, path: str
) -> None:
    reply = shared.http.request(method, f"{shared.url}/{path}", json=absent("evil"), headers=headers)
    assert reply.status_code == 403
    assert "access-control-allow-origin" not in reply.headers


@pytest.mark.parametrize(
    "path", [f"v1/{PARENT}/customJobs", "vertex_emulator/faults", "storage/v1/b", "upload/storage/v1/b/x/o?name=y"]
)
def test_page_on_another_port_changes_nothing(shared: RunningEmulator, path: str) -> None:
    same_host = {"Origin": f"http://127.0.0.1:{port(shared) - 1}", "Content-Type": "text/plain"}
    reply = shared.http.post(f"{shared.url}/{path}", data=json.dumps(absent("evil")), headers=same_host)
    assert reply.status_code == 403
    assert "only the emulator's own page" in reply.json()["error"]["message"]


@pytest.mark.parametrize(
    "path", [f"v1/{PARENT}/customJobs", "v2/entries:list", "vertex_emulator/faults", "storage/v1/b"]
)
@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "", "application/json2"])
def test_body_without_json_type_is_rejected(shared: RunningEmulator, path: str, content_type: str) -> None:
    headers = {"Content-Type": content_type}
    reply = shared.http.post(f"{shared.url}/{path}", data=json.dumps(absent("x")), headers=headers)
    assert reply.status_code == 415
    fix = f'Content-Type is "{content_type}"; it must be application/json (curl: -H "Content-Type: application/json").'
    assert reply.json()["error"]["message"] == fix


def test_json_type_may_name_an_encoding(shared: RunningEmulator) -> None:
    headers = {"Content-Type": "Application/JSON; charset=UTF-8"}
    body = json.dumps(absent("x"))
    reply = shared.http.post(f"{shared.url}/v1/{PARENT}/customJobs", data=body, headers=headers)
    assert reply.status_code == 200


def test_second_origin_or_host_is_rejected(shared: RunningEmulator) -> None:
    for second in (b"Origin: http://localhost\r\nOrigin: http://evil.example\r\n", b"Host: evil.example\r\n"):
        head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + second + b"\r\n"
        assert raw(shared, head).split()[1] in (b"400", b"403")


@pytest.mark.parametrize(
    "path", ["", "healthz", "vertex_emulator", "storage/v1/b", "nowhere", f"v1/{PARENT}/customJobs"]
)
def test_no_other_page_may_embed_a_response(shared: RunningEmulator, path: str) -> None:
    for headers in ({}, {"Origin": "http://evil.example"}):
        reply = shared.http.get(f"{shared.url}/{path}", headers=headers)
        assert reply.headers["cross-origin-resource-policy"] == "same-origin"


def test_preflight_of_another_origin_is_rejected(shared: RunningEmulator) -> None:
    headers = {"Origin": "http://evil.example", "Access-Control-Request-Method": "DELETE"}
    reply = shared.http.options(f"{shared.url}/v1/{PARENT}/customJobs/1", headers=headers)
    assert reply.status_code == 403
    assert "access-control-allow-origin" not in reply.headers


@pytest.mark.skipif(not Path("/proc/net/if_inet6").exists(), reason="this machine has no IPv6")
def test_ipv6_loopback_is_served_without_flag(tmp_path: Path) -> None:
    emulator = RunningEmulator(tmp_path / "data", "--host", "::1")
    try:
        assert emulator.url.startswith("http://[::1]:")
        assert emulator.call("GET", "healthz")["status"] == "ok"
        assert emulator.http.get(f"{emulator.url}/healthz", headers={"Host": "evil.example"}).status_code == 403
    finally:
        emulator.close()


def test_credentials_are_neither_needed_nor_kept_anywhere(own: RunningEmulator) -> None:
    headers = {"Authorization": f"Bearer {CANARY}", "Cookie": f"session={CANARY}", "X-Goog-Api-Key": CANARY}
    query = {"key": CANARY, "access_token": CANARY, "oauth_token": CANARY}
    name = own.call("POST", f"v1/{PARENT}/customJobs", absent("x"), headers=headers, params=query)["name"]
    own.call("GET", f"v1/{name}", headers=headers, params=query)
    own.call("GET", f"v1/{PARENT}/customJobs/1", expect=404, headers=headers, params=query)
    own.call("POST", "v2/entries:list", {"filter": ""}, expect=400, headers=headers, params=query)
    own.http.get(f"{own.url}/nowhere", headers=headers, params=query)
    own.ended(name)
    own.end()
    files = [path for path in own.data.parent.rglob("*") if path.is_file()]
    assert {"emulator.db", "data.log"} <= {path.name for path in files}
    assert [path for path in files if CANARY.encode() in path.read_bytes()] == []


def test_body_without_length_is_limited(shared: RunningEmulator) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(5 << 4):
            yield b" " * (1 << 16)

    reply = shared.http.post(f"{shared.url}/v1/{PARENT}/customJobs", data=endless())
    assert reply.status_code == 413


def test_malformed_body_leaves_no_traceback(own: RunningEmulator) -> None:
    chunked = b"Transfer-Encoding: chunked\r\n\r\n"
    answer = raw(own, b"POST /v1/x HTTP/1.1\r\nHost: evil.example\r\n" + chunked + b"no chunk\r\n\r\n")
    assert answer.split()[1] == b"400"
    with closing(socket.create_connection(("127.0.0.1", port(own)))) as connection:
        connection.sendall(b"GET /vertex_emulator/page/events HTTP/1.1\r\nHost: localhost\r\n" + chunked)
        assert connection.recv(4096).split()[1] == b"200"
        connection.sendall(b"no chunk\r\n\r\n")
        while connection.recv(4096):
            pass
    own.end()
    assert "Traceback" not in own.data.with_suffix(".log").read_text()


def test_headers_without_end_are_refused(shared: RunningEmulator) -> None:
    head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 200_000
    try:
        answer = raw(shared, head)
    except ConnectionError:  # it hangs up without reading the rest
        answer = b""
    assert answer == b"" or answer.split()[1] in (b"400", b"431")
    assert shared.call("GET", "healthz")["status"] == "ok"


@pytest.mark.parametrize(
    "path",
    [
        f"/v1/{PARENT}/customJobs/..%2f..%2f..%2fetc%2fpasswd",
        f"/v1/{PARENT}/customJobs/%2e%2e",
        f"/v1/{PARENT}/customJobs/%00",
        "/v1/../../etc/passwd",
        "/v1/projects/..%2f..%2fetc/locations/x/customJobs/1",
        "/jobs/customJobs/..%2f..%2femulator.db",
        "/vertex_emulator/jobs/..%2f..%2femulator.db",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/emulator.db",
    ],
)
def test_no_path_leads_to_a_file(shared: RunningEmulator, path: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port(shared))
    connection.request("GET", path)
    reply = connection.getresponse()
    text = reply.read()
    connection.close()
    assert reply.status in (400, 404)
    assert b"root:" not in text
    assert b"SQLite" not in text


def test_names_that_look_like_paths_stay_names(shared: RunningEmulator) -> None:
    parent = "projects/..%2f..%2fescaped/locations/us-central1"
    reply = shared.http.post(f"{shared.url}/v1/{parent}/customJobs", json=absent("../../escaped\0"))
    assert reply.status_code in (200, 400, 404)
    assert not list(shared.data.parent.glob("escaped*"))
    folders = {path.name for path in shared.data.iterdir() if path.is_dir()}
    assert folders <= {"gcs", "logs", "trials", "uploads", "nfs", "lustre", "debugger"}


def test_output_directory_through_container_link_is_rejected(shared: RunningEmulator) -> None:
    (shared.data / "gcs" / "links").mkdir(exist_ok=True)
    (shared.data / "gcs" / "links").chmod(0o777)
    name = shared.create(
        custom_job(pool("import os; os.path.lexists('/gcs/links/out') or os.symlink('/etc', '/gcs/links/out')"))
    )
    assert shared.ended(name)["state"] == "JOB_STATE_SUCCEEDED"
    body = custom_job(pool("pass"), baseOutputDirectory={"outputUriPrefix": "gs://links/out/x"})
    error = shared.call("POST", f"v1/{PARENT}/customJobs", body, expect=400)["error"]
    assert "symbolic link" in error["message"]
    assert not Path("/etc/x").exists()


def test_metric_file_neither_blocks_nor_discloses_anything(tmp_path: Path) -> None:
    data = DataFolder.open(tmp_path)
    secret = tmp_path / "secret"
    secret.write_text(CANARY)
    gc.collect()  # closes what other tests have left
    open_files = len(list(Path("/proc/self/fd").iterdir()))
    for number, leave in enumerate((os.mkfifo, os.mkdir, lambda path: path.symlink_to(secret))):
        leave(data.create_metric_folder(str(number)) / "output.metrics")
        assert data.read_metrics(str(number)) == ""
    assert len(list(Path("/proc/self/fd").iterdir())) == open_files
    (data.create_metric_folder("huge") / "output.metrics").touch()
    os.truncate(data.trials / "huge" / "output.metrics", 1 << 36)
    assert len(data.read_metrics("huge")) <= 4 << 20


def test_a_metric_pipe_delays_no_trial(shared: RunningEmulator) -> None:
    script = "import os; os.mkfifo(os.environ['CLOUD_ML_HP_METRIC_FILE'])\n"
    bad = shared.create(study(script, trials=1, parallel=1), "hyperparameterTuningJobs")
    good = shared.create(study(REPORT, trials=1, parallel=1), "hyperparameterTuningJobs")
    assert shared.ended(good)["state"] == "JOB_STATE_SUCCEEDED"
    assert "without reporting the metric" in shared.ended(bad)["trials"][0]["infeasibleReason"]


def test_terminal_output_has_no_control_characters(shared: RunningEmulator) -> None:
    script = (
        "import json, sys; out = sys.stdout\n"
        "out.write('\\x1b]0;title\\x07\\x1b[2Jplain\\tz\\x9bm \\u202eevil\\n')\n"
        "out.write(json.dumps({'message': '\\x1b[31mred'}) + '\\n')\n"
        'out.write(\'{"loss": NaN}\\n{"half": "\\\\ud800"}\\n{"huge": 1e999}\\n\')\n'
    )
    name = shared.create(custom_job(pool(script, env=[{"name": "PYTHONIOENCODING", "value": "utf-8"}])))
    shared.ended(name)
    shown = command("logs", name, "--task", "workerpool0-0", data=shared.data).stdout
    assert not set(shown) & {chr(code) for code in (*range(9), *range(11, 32), *range(127, 160), 0x202E)}
    texts = [line.split("  ", 1)[1].strip() for line in shown.splitlines()]
    assert texts == [
        "workerpool0-0  \\x1b]0;title\\x07\\x1b[2Jplain\tz\\x9bm \\u202eevil",
        "workerpool0-0  \\x1b[31mred",
        'workerpool0-0  {"loss": NaN}',
        'workerpool0-0  {"half": "\\ud800"}',
        'workerpool0-0  {"huge": 1e999}',
    ]
    assert "\x1b[31mred" in command("logs", name, "--raw", data=shared.data).stdout


@pytest.mark.parametrize("value", ['"\\ud800"', "NaN", "Infinity", "1e999"])
def test_unrepresentable_values_are_rejected(shared: RunningEmulator, value: str) -> None:
    body = f'{{"displayName": {value}, "jobSpec": {{"workerPoolSpecs": []}}}}'
    reply = shared.http.post(f"{shared.url}/v1/{PARENT}/customJobs", data=body.encode(), headers=JSON)
    assert reply.status_code == 400
    assert reply.json()["error"]["status"] == "INVALID_ARGUMENT"


def test_database_logs_token_and_lock_are_private(shared: RunningEmulator) -> None:
    private = [*shared.data.glob("emulator.db*"), *(shared.data / name for name in ("logs", "token", "lock"))]
    assert len(private) >= 4
    for path in private:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
