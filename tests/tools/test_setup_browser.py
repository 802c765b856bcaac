"""The browser that only tests need: found, installed, or done without."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.setup import browser, debian
from tools.setup.commands import CommandFailed
from tools.setup.console import Console

Program = Callable[[str | Path, str], Path]


def test_an_installed_browser_is_found_on_the_path(program: Program) -> None:
    path = program("chromium", "")
    assert browser.find() == f"Chromium: {path}"


@pytest.fixture
def without_a_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser.shutil, "which", lambda name: None)


@pytest.mark.usefixtures("without_a_browser")
def test_where_nothing_can_be_installed_the_set_up_goes_on_and_says_what_is_skipped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(debian, "can_install", lambda: False)
    assert browser.find() is None
    assert browser.make(Console(io.StringIO())) == "Chromium: none, so tests of the page are skipped"


@pytest.mark.usefixtures("without_a_browser")
def test_an_installation_that_fails_is_told_and_does_not_fail_the_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(console: Console, *packages: str) -> None:
        raise CommandFailed(f"no {packages[0]} today")

    monkeypatch.setattr(debian, "can_install", lambda: True)
    monkeypatch.setattr(debian, "install", fail)
    assert browser.make(Console(io.StringIO())).endswith("tests of the page are skipped. no chromium today")
