"""What a page of another port of this machine can do in a browser, and how the own page gets in with a token."""

from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Browser, expect

from tests.clients.test_token import BLIND
from tests.vertex_emulator.running import PARENT, RunningEmulator, absent

SEND = """async ([url, body]) => {
  const answers = [];
  for (const options of [
    {headers: {"Content-Type": "text/plain"}, mode: "no-cors"},
    {mode: "no-cors"},
    {headers: {"Content-Type": "text/plain"}, referrerPolicy: "no-referrer", mode: "no-cors"},
    {headers: {"Content-Type": "application/json"}},
  ])
    answers.push(await fetch(url, {method: "POST", body, ...options}).then((reply) => reply.type, () => "failed"));
  return answers;
}"""
SUBMIT = """([url, body]) => {
  const form = document.createElement("form");
  Object.assign(form, {method: "POST", action: url, enctype: "text/plain"});
  const [name, value] = [body.slice(0, -1) + ',"x":"', '"}'];
  form.append(Object.assign(document.createElement("input"), {name, value}));
  document.body.append(form);
  form.submit();
}"""


@pytest.fixture
def other_page(tmp_path: Path) -> Iterator[str]:
    """The address of a page on a port of its own."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    (tmp_path / "index.html").write_text("<body>harmless</body>")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_page_on_another_port_creates_no_job(own: RunningEmulator, browser: Browser, other_page: str) -> None:
    page = browser.new_page()
    page.goto(other_page)
    job = [f"{own.url}/v1/{PARENT}/customJobs", '{"displayName":"evil","jobSpec":{"workerPoolSpecs":[]}}']
    assert page.evaluate(SEND, job) == ["failed"] * 4  # Cross-Origin-Resource-Policy withholds even opaque answers
    page.evaluate(SUBMIT, job)
    expect(page.get_by_text("PERMISSION_DENIED")).to_be_visible()
    assert own.call("GET", f"v1/{PARENT}/customJobs") == {}
    page.close()


def test_link_with_the_token_opens_the_page(tmp_path: Path, browser: Browser) -> None:
    emulator = RunningEmulator(tmp_path / "data", program=("-c", BLIND))
    token = (emulator.data / "token").read_text().strip()
    try:
        page = browser.new_page()
        page.goto(emulator.url)
        expect(page.get_by_text("UNAUTHENTICATED")).to_be_visible()
        page.goto(f"{emulator.url}/?token={token}")
        assert page.url == f"{emulator.url}/"
        assert page.evaluate("document.cookie") == ""
        emulator.http.headers["Authorization"] = f"Bearer {token}"
        emulator.call("POST", f"v1/{PARENT}/customJobs", absent("seen with a cookie"))
        expect(page.get_by_role("row", name="seen with a cookie")).to_be_visible()
        page.close()
    finally:
        emulator.close()
