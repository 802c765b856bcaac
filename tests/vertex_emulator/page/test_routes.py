"""What the page is made of, and how it is served."""

import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests

from tests.vertex_emulator.jobs import custom_job as job_record
from tests.vertex_emulator.jobs import custom_job_spec
from tests.vertex_emulator.running import PARENT, RunningEmulator, absent, custom_job, pool
from vertex_emulator.database.records import SUCCEEDED
from vertex_emulator.page.routes import ASSETS, render_shell

OWN = sorted(path for path in ASSETS.iterdir() if path.suffix in (".js", ".css", ".html"))
MOST_BYTES = 400_000


def get(emulator: RunningEmulator, path: str, **headers: str) -> requests.Response:
    return emulator.http.get(f"{emulator.url}{path}", headers=headers)


@contextmanager
def events(emulator: RunningEmulator, query: str = "") -> Iterator[Iterator[str]]:
    """The data of events, once the stream has begun."""
    with requests.get(f"{emulator.url}/vertex_emulator/page/events{query}", stream=True) as reply:
        lines = reply.iter_lines(chunk_size=1, decode_unicode=True)
        assert next(line for line in lines if line.startswith("event:")) == "event: ready"
        yield (line.removeprefix("data: ") for line in lines if line.startswith('data: ["'))


def test_page_forbids_foreign_scripts_and_framing(shared: RunningEmulator) -> None:
    for path, code in (("/", 200), ("/files", 200), ("/schedules", 200), ("/jobs/customJobs/1", 404)):
        reply = get(shared, path)
        policy = reply.headers["content-security-policy"]
        assert (reply.status_code, reply.headers["x-content-type-options"]) == (code, "nosniff")
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|style=", reply.text) == []


def test_answers_of_the_api_may_run_nothing(shared: RunningEmulator) -> None:
    headers = get(shared, f"/v1/{PARENT}/customJobs").headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["cache-control"] == "no-store"


def test_assets_are_sent_again_only_when_changed(shared: RunningEmulator) -> None:
    first = get(shared, "/assets/main.js")
    assert (first.status_code, first.headers["cache-control"]) == (200, "no-cache")
    again = get(shared, "/assets/main.js", **{"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("path", ["/assets/none.js", "/assets/", "/assets/%2e%2e/page.py", "/assets/vendor"])
def test_only_assets_are_served_as_such(shared: RunningEmulator, path: str) -> None:
    assert get(shared, path).status_code == 404


def test_assets_are_small_and_licensed() -> None:
    files = [path for path in ASSETS.rglob("*") if path.suffix in (".js", ".css", ".html", ".svg")]
    assert sum(path.stat().st_size for path in files) < MOST_BYTES
    packages = [folder for folder in (ASSETS / "vendor").iterdir() if folder.is_dir()]
    assert {folder.name for folder in packages} == {"htm", "uplot"}
    told = (ASSETS / "vendor/README.md").read_text()
    for folder in packages:
        assert (folder / "LICENSE").is_file()
        assert f"| `{folder.name}` |" in told


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_assets_neither_name_hosts_nor_insert_markup(path: Path) -> None:
    text = path.read_text()
    assert re.findall(r"https?://|//[a-z]+\.[a-z]", text.replace("gs://", "")) == []
    assert re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text) == []


def test_another_origin_cannot_cancel_a_job(shared: RunningEmulator) -> None:
    name = shared.create(custom_job(pool("import time; time.sleep(60)"), name="not theirs to cancel"))
    for origin in ("http://evil.example", "null", "http://127.0.0.1.evil.example"):
        shared.call("POST", f"v1/{name}:cancel", expect=403, headers={"Origin": origin})
    assert shared.get(name)["state"] not in ("JOB_STATE_CANCELLING", "JOB_STATE_CANCELLED")
    shared.call("POST", f"v1/{name}:cancel", headers={"Origin": shared.url})
    assert shared.ended(name)["state"] == "JOB_STATE_CANCELLED"


def test_file_is_sent_as_download_without_scripts(shared: RunningEmulator) -> None:
    folder = shared.data / "gcs" / "download-tests"
    folder.mkdir()
    (folder / "é.html").write_text("<script>alert(1)</script>")
    reply = get(shared, "/vertex_emulator/page/download?uri=gs://download-tests/é.html")
    assert reply.headers["content-type"] == "application/octet-stream"
    assert reply.headers["content-disposition"].startswith("attachment; filename*=utf-8''%C3%A9.html")
    assert "sandbox" in reply.headers["content-security-policy"]
    assert get(shared, "/vertex_emulator/page/download?uri=gs://download-tests/../x").json()["error"]["code"] == 400


def test_events_name_changed_jobs(shared: RunningEmulator) -> None:
    with events(shared) as all_jobs:
        first = shared.create(absent("first"))
        assert any(first.rpartition("/")[2] in ids for ids in all_jobs)  # jobs of earlier tests may change, too
        shared.ended(first)
        second = shared.create(absent("second"))
        other = second.rpartition("/")[2]
        with events(shared, f"?job={other}") as one_job:
            third = shared.create(absent("third"))
            shared.ended(third)
            shared.call("DELETE", f"v1/{shared.ended(second)['name']}")
            assert next(one_job) == f'["{other}"]'


def test_hundred_open_pages_do_not_block_requests(shared: RunningEmulator) -> None:
    with ExitStack() as pages:
        for _ in range(100):
            pages.enter_context(events(shared))
        assert get(shared, "/readyz").status_code == 200
        assert get(shared, "/vertex_emulator/page/jobs").status_code == 200


def test_open_pages_do_not_delay_shutdown(own: RunningEmulator) -> None:
    with events(own) as told:
        assert own.end() == 0
        assert list(told) == []
    text = (own.data.parent / "data.log").read_text()
    assert "stopped; containers keep running" in text
    assert not re.search("graceful shutdown exceeded|Traceback", text)


def test_closed_page_is_forgotten_quietly(own: RunningEmulator) -> None:
    place = urlsplit(own.url)
    for _ in range(5):
        with socket.create_connection((place.hostname or "", place.port or 0)) as connection:
            connection.sendall(f"GET /vertex_emulator/page/events HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode())
            assert b"200 OK" in connection.recv(1000)
    own.ended(own.create(custom_job({**pool("pass"), "containerSpec": {"imageUri": "localhost/absent:1"}})))
    assert own.end() == 0
    assert "Traceback" not in (own.data.parent / "data.log").read_text()


def test_names_of_jobs_are_escaped() -> None:
    spec = custom_job_spec() | {"displayName": "<script>alert(1)</script>"}
    page = render_shell(job_record(spec), "workerpool0-0", Path("/a & b"))
    assert "<script" not in page and "&lt;script&gt;alert(1)" in page
    assert "vertex-emulator shell 42 --task workerpool0-0 --data &#x27;/a &amp; b&#x27;</code>" in page


def test_ended_jobs_lead_to_their_log() -> None:
    page = render_shell(job_record(state=SUCCEEDED), "workerpool0-0", Path("/data"))
    assert "is in state JOB_STATE_SUCCEEDED" in page
    assert "vertex-emulator logs 42 --task workerpool0-0 --data /data</code>" in page and " shell 42" not in page
