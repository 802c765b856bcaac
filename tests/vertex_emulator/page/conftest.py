"""Debian's Chromium without windows of its own, driven by Playwright, and an emulator in memory."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    ViewportSize,
    expect,
    sync_playwright,
)

from tests.vertex_emulator.fakes import Clock, Emulator, Machine, use_clock
from tests.vertex_emulator.running import PATIENCE_SECONDS

FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
SIZE: ViewportSize = {"width": 1280, "height": 800}

EXPECTED = (
    "ERR_NETWORK_CHANGED",
    "ERR_CONNECTION_REFUSED",
    "ERR_CONNECTION_RESET",
    "ERR_EMPTY_RESPONSE",
    "ERR_INCOMPLETE_CHUNKED_ENCODING",  # an emulator that stops cuts off what takes longer than a second
    "status of 404",
    "status of 503",  # what a stop cuts off before it has an answer
)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """A browser; not for the whole run, as its event loop would be in the way of other tests' own."""
    # The shell takes 60 % of the processor's time that Chromium takes for the same pages.
    program = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if program is None:
        pytest.skip("needs Chromium (`make test` installs it on Debian, as root)")
    expect.set_options(timeout=PATIENCE_SECONDS * 1000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS.split())
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def window(browser: Browser) -> Iterator[BrowserContext]:
    """A window: to open one takes as much of the processor as five pages do. Pages here keep nothing in it."""
    window = browser.new_context(viewport=SIZE)
    window.new_page()  # a window ends with its last page
    yield window
    assert window.storage_state() == {"cookies": [], "origins": []}
    window.close()


@pytest.fixture
def visit(window: BrowserContext) -> Iterator[Callable[..., Page]]:
    """Opens pages of its own; at the end, none may have asked another host or written an error to its console.

    A test ends when its pages are where they go to: Chromium never closes one that is told to while it goes to another
    document (measured: 26 of 240), and there is no time limit on that in Playwright.
    """
    asked: list[str] = []
    wrong: list[str] = []

    def requested(request: Request) -> None:
        asked.append(request.url)

    def said(message: ConsoleMessage) -> None:
        # A browser tells of every answer that is no success, though the page expects it.
        if message.type in ("error", "warning") and not any(known in message.text for known in EXPECTED):
            wrong.append(message.text)

    first = len(window.pages)

    def open_(url: str) -> Page:
        page = window.new_page()
        page.set_default_timeout(PATIENCE_SECONDS * 1000)
        page.on("request", requested)
        page.on("console", said)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        lost: list[str] = []
        page.on("requestfailed", lambda request: lost.append(request.url))
        page.goto(url)
        if any(url.endswith("/start.js") for url in lost):  # a network has changed: who looks at it loads it anew, too
            page.goto(url)
        return page

    yield open_
    for page in window.pages[first:]:
        page.wait_for_load_state()
        page.close()
    assert wrong == []
    assert [url for url in asked if not url.startswith("http://127.0.0.1:")] == []


@pytest.fixture
def emulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    clock = Clock()
    use_clock(clock, monkeypatch)
    emulator = Emulator(tmp_path / "data", Machine(clock))
    yield emulator
    emulator.database.close()
