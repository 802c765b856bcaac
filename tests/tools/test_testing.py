"""The programs that only tests run: found, installed, or named with what to do about them."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.setup import programs, testing
from tools.setup.programs import CommandFailed, Output

Program = Callable[[str | Path, str], Path]
ALL = [*testing.PACKAGES, *testing.INSTALL_HINTS]


def make() -> str:
    return testing.make(Output(io.StringIO()))


def test_installed_programs_are_found(program: Program) -> None:
    for name in ALL:
        assert testing.find() is None
        program(name, "")
    assert testing.find() == f"Programs for tests: {', '.join(ALL)}"


def test_packages_of_missing_programs_are_installed(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ALL:
        if name not in ("htpasswd", "docker-registry"):
            program(name, "")
    installed: list[str] = []

    def install(_output: Output, *packages: str) -> None:
        installed.extend(packages)
        program("htpasswd", "")
        program("docker-registry", "")

    monkeypatch.setattr(programs, "can_install", lambda: True)
    monkeypatch.setattr(programs, "install_packages", install)
    assert make() == testing.find() is not None
    assert installed == ["docker-registry", "apache2-utils"]


@pytest.mark.usefixtures("program")
def test_who_may_not_install_is_told_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "can_install", lambda: False)
    lines = make().splitlines()
    assert lines[0] == f"Programs for tests: {', '.join(ALL)} missing; tests that need them are skipped"
    packages = "chromium-headless-shell docker-registry git apache2-utils openssl"
    assert lines[1] == f"  on Debian and Ubuntu: `sudo apt-get install {packages}`"
    assert lines[2:] == [
        "  gcloud: install it from cloud.google.com/sdk",
        "  go: install it from go.dev/dl; it builds Docker's buildx",
    ]


def test_a_failed_installation_does_not_fail_setup(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ALL[1:]:
        program(name, "")

    def fail(_output: Output, *packages: str) -> None:
        raise CommandFailed(f"no {packages[0]} today")

    monkeypatch.setattr(programs, "can_install", lambda: True)
    monkeypatch.setattr(programs, "install_packages", fail)
    missing = "chromium-headless-shell"
    line = f"Programs for tests: {missing} missing; tests that need them are skipped"
    assert make() == f"{line}\n  no {missing} today"
