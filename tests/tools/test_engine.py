"""Which engine is chosen, and that nothing half done is ever chosen."""

import io
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.setup import REQUIREMENTS, cache_folder, engine, go, is_own
from tools.setup.__main__ import lock
from tools.setup.engine import (
    ENGINE_MODULE,
    ENGINE_VERSION,
    LANGUAGE_MODULE,
    PKG,
    PROGRAMS,
    SDK,
    Engine,
    build,
    cached_bin,
    find,
    find_engine,
    install,
    parse_version,
    wrap_host,
)
from tools.setup.programs import CommandFailed, Output, SetupError

Program = Callable[[str | Path, str], Path]
OUTPUT = Output(io.StringIO())


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("3.259.0", (3, 259, 0)),
        ("v3.9.10", (3, 9, 10)),
        ("3.260.0-alpha.1", (3, 260, 0)),
        ("", None),
        ("3.259", None),
        ("dev", None),
    ],
)
def test_version_numbers_are_read_as_pulumi_prints_them(text: str, version: tuple[int, int, int] | None) -> None:
    assert parse_version(text) == version


def test_versions_compare_by_number_not_by_letter() -> None:
    assert parse_version("3.99.0") < parse_version("3.216.0") < parse_version("10.0.0")  # type: ignore[operator]


def test_an_engine_on_path_beats_a_cached_one(program: Program) -> None:
    on_path = program("pulumi", "echo v3.216.0")
    program("pulumi-language-python", "")
    _cache_engine(program)
    assert find_engine() == Engine("3.216.0", on_path.parent)
    assert find() == f"Pulumi: 3.216.0 from {on_path.parent}"


@pytest.mark.parametrize("script", ["echo v3.215.9", "echo", "exit 1", "echo v3.260.0; exit 1"])
def test_an_old_or_broken_engine_is_ignored(program: Program, script: str) -> None:
    program("pulumi", script)
    program("pulumi-language-python", "")
    assert find_engine() is None
    _cache_engine(program)
    assert find_engine() == Engine(ENGINE_VERSION, cached_bin())


def test_an_engine_that_others_may_write_is_ignored(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    _cache_engine(program)
    assert find_engine() == Engine(ENGINE_VERSION, cached_bin())
    cache_folder().chmod(0o777)
    assert find_engine() is None
    with pytest.raises(SetupError, match="other users may write to it"), lock(OUTPUT):
        pass
    cache_folder().chmod(0o755)


@pytest.mark.parametrize(
    ("user", "owner", "mode", "is_ours"),
    [
        (1000, 1000, 0o755, True),
        (1000, 1000, 0o777, False),
        (1000, 4242, 0o755, False),
        (1000, 0, 0o755, True),
        (1000, 0, 0o775, False),
        (0, 4242, 0o755, True),
        (0, 4242, 0o757, False),
    ],
)
def test_a_folder_is_ours_if_no_other_writes(
    user: int, owner: int, mode: int, is_ours: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: user)
    monkeypatch.setattr(Path, "stat", lambda _: os.stat_result((0o40000 | mode, 0, 0, 0, owner, 0, 0, 0, 0, 0)))
    assert is_own(tmp_path) is is_ours


def test_an_engine_without_its_language_host_is_ignored(program: Program) -> None:
    program("pulumi", "echo v3.260.0")
    assert find_engine() is None


def test_the_language_host_is_found_through_a_link(program: Program, tmp_path: Path) -> None:
    program(tmp_path / "opt/pulumi", "echo v3.260.0")
    program(tmp_path / "opt/pulumi-language-python", "")
    (tmp_path / "bin/pulumi").symlink_to(tmp_path / "opt/pulumi")
    assert find_engine() == Engine("3.260.0", tmp_path / "bin")


def test_a_version_query_skips_the_update_check(program: Program) -> None:
    program("pulumi", '[ "$PULUMI_SKIP_UPDATE_CHECK" = true ] && echo v3.260.0')
    program("pulumi-language-python", "")
    assert find_engine() is not None


def test_only_installers_before_the_first_success_run(program: Program) -> None:
    def fill(folder: Path, output: Output) -> None:
        program(folder / "bin/pulumi", f"echo v{ENGINE_VERSION}")

    def untouched(folder: Path, output: Output) -> None:
        raise AssertionError("tried although an earlier way worked")

    way, engine = install([("a", _refuse), ("b", fill), ("c", untouched)], OUTPUT)
    assert (way, engine) == ("b", Engine(ENGINE_VERSION, cached_bin()))
    assert [entry.name for entry in cached_bin().parent.parent.iterdir()] == [f"engine-{ENGINE_VERSION}"]


def test_an_engine_of_another_version_is_not_cached(program: Program) -> None:
    def fill(folder: Path, output: Output) -> None:
        program(folder / "bin/pulumi", "echo v3.258.0")

    with pytest.raises(SetupError, match=f"prints 3.258.0 instead of {ENGINE_VERSION}"):
        install([("a", fill)], OUTPUT)
    assert list(cached_bin().parent.parent.iterdir()) == []


def test_leftovers_of_an_interrupted_set_up_are_removed(program: Program) -> None:
    left_over = cached_bin().parent.with_name(f"engine-{ENGINE_VERSION}.partial-0")
    program(left_over / "bin/pulumi", "half done")
    program(cached_bin() / "pulumi", "broken")

    def fill(folder: Path, output: Output) -> None:
        assert not list(folder.iterdir())
        program(folder / "bin/pulumi", f"echo v{ENGINE_VERSION}")

    install([("a", fill)], OUTPUT)
    assert not left_over.exists()
    assert f"echo v{ENGINE_VERSION}" in (cached_bin() / "pulumi").read_text()


@pytest.mark.usefixtures("program")
def test_failed_installers_are_all_reported() -> None:
    with pytest.raises(SetupError) as failure:
        install([("the installer", _refuse), ("a build", build)], OUTPUT)
    lines = str(failure.value).splitlines()
    assert lines[1:3] == ["  the installer: no network", "  a build: there is no `go` on PATH"]
    assert "Install Pulumi 3.216.0 or later" in lines[-1]
    assert f"Go {go.min_version(ENGINE_MODULE)} or later" in lines[-1]


def test_engine_modules_and_package_have_one_version() -> None:
    locked = re.search(r"^pulumi==(\S+)", REQUIREMENTS.read_text(), re.MULTILINE)
    assert locked
    assert {locked[1], *(go.required_version(ENGINE_MODULE, each) for each in (PKG, SDK))} == {ENGINE_VERSION}


def test_what_engine_and_host_both_require_is_compiled_once() -> None:
    engine_modules, host_modules = (
        dict(re.findall(r"^\t(\S+) (v\S+)", (folder / "go.mod").read_text(), re.MULTILINE))
        for folder in (ENGINE_MODULE, LANGUAGE_MODULE)
    )
    shared = (engine_modules.keys() & host_modules.keys()) - {SDK}
    assert len(shared) > 20
    assert {name: host_modules[name] for name in shared} == {name: engine_modules[name] for name in shared}


def test_a_build_always_checks_checksums(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOFLAGS", "-mod=mod")
    monkeypatch.setenv("GOWORK", "/elsewhere/go.work")
    monkeypatch.setenv("GOPROXY", "a proxy of the user's")
    environment = go.environment()
    assert (environment["GOFLAGS"], environment["GOWORK"]) == ("-mod=readonly", "off")
    assert environment["GOPROXY"] == "a proxy of the user's"


def test_modules_are_fetched_early_only_where_pulumi_s_server_has_no_address(
    program: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program("go", f'echo "$*" >> "{tmp_path}/asked"')
    monkeypatch.setattr(engine, "_has_address", lambda host: True)
    engine.prepare(OUTPUT)
    monkeypatch.setattr(engine, "_has_address", lambda host: False)
    monkeypatch.setenv("https_proxy", "http://proxy.example")
    engine.prepare(OUTPUT)
    assert not (tmp_path / "asked").exists()
    monkeypatch.delenv("https_proxy")
    engine.prepare(OUTPUT)
    assert (tmp_path / "asked").read_text().splitlines() == [f"list -deps {package}" for _, package, _ in PROGRAMS]


def test_a_failed_early_fetch_is_left_to_the_build(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    program("go", "exit 1")
    monkeypatch.setattr(engine, "_has_address", lambda host: False)
    engine.prepare(OUTPUT)


def _cache_engine(program: Program) -> None:
    program(cached_bin() / "pulumi", f"echo v{ENGINE_VERSION}")
    program(cached_bin() / "pulumi-language-python", "")


def _refuse(folder: Path, output: Output) -> None:
    raise CommandFailed("no network")


@pytest.mark.parametrize(
    ("described", "options"), [("runtime:\n  options:\n    virtualenv: .venv\n", " -virtualenv=.venv"), ("", "")]
)
def test_the_built_host_is_told_the_virtual_environment(tmp_path: Path, described: str, options: str) -> None:
    host = tmp_path / "bin" / "pulumi-language-python"
    host.parent.mkdir()
    host.write_text('#!/bin/sh\necho "$@"\n')
    host.chmod(0o755)
    wrap_host(host.parent)
    (tmp_path / "Pulumi.yaml").write_text(described)
    done = subprocess.run([host, "127.0.0.1:1"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == f"-root={tmp_path}{options} 127.0.0.1:1\n"
