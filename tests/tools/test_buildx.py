"""Docker's buildx: the plugin, a package of it, or a program built from its module, in this order."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.setup import buildx, cache_folder, go, programs
from tools.setup.programs import CommandFailed, Output, SetupError

Program = Callable[[str | Path, str], Path]
VERSION = 'echo "github.com/docker/buildx v0.19.9 48d6a39"'
GO = f"""case "$1" in
list) echo a; echo b;;
build) shift 4; printf '#!/bin/sh\\n%s\\n' '{VERSION}' > "$2"; chmod +x "$2";;
esac"""


def make() -> str:
    return buildx.make(Output(io.StringIO()))


@pytest.fixture(autouse=True)
def _no_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "can_install", lambda: False)


def test_the_plugin_beats_a_cached_program(program: Program) -> None:
    assert buildx.find() is None
    program(buildx.cached(), VERSION)
    assert buildx.find() == f"buildx: 0.19.9 as `{buildx.cached()}`"
    program("docker", f'test "$*" = "buildx version" && {VERSION}')
    assert buildx.find() == "buildx: 0.19.9 as `docker buildx`"


def test_a_program_of_others_is_not_found(program: Program) -> None:
    program(buildx.cached(), VERSION)
    cache_folder().chmod(0o777)
    assert buildx.find() is None


def test_a_package_is_taken_first(program: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install = f'test "$*" = "install -q -y --no-remove docker-buildx" && touch {tmp_path}/installed'
    program("apt-get", f'test "$1" = update || {{ {install}; }}')
    program("docker", f"test -e '{tmp_path}/installed' && {VERSION}")
    program("touch", f"> '{tmp_path}/installed'")
    monkeypatch.setattr(programs, "can_install", lambda: True)
    assert make() == "buildx: 0.19.9 as `docker buildx`, from the package docker-buildx"


def test_a_build_leaves_the_program_alone_in_the_cache(program: Program) -> None:
    program("go", GO)
    program("chmod", 'exec /bin/chmod "$@"')
    assert make() == f"buildx: 0.19.9 as `{buildx.cached()}`, built from its Go modules"
    assert [path.name for path in cache_folder().rglob("*")] == [buildx.cached().parent.name, "buildx"]


def test_a_failed_build_names_every_way(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_output: Output, *packages: str) -> str:
        raise CommandFailed(f"no {packages[0]} today")

    program("go", 'test "$1" = list')
    monkeypatch.setattr(programs, "can_install", lambda: True)
    monkeypatch.setattr(programs, "install_first", fail)
    with pytest.raises(SetupError) as failure:
        make()
    lines = str(failure.value).splitlines()
    assert lines[1:3] == [
        "  a package: no docker-buildx-plugin today",
        "  a build from its Go modules: `go build` ended with exit code 1",
    ]
    assert lines[-1].startswith("Install the package docker-buildx-plugin or docker-buildx, Docker Desktop, or Go")
    assert buildx.find() is None


def test_go_mod_and_sum_are_those_of_the_program() -> None:
    version = go.required_version(buildx.MODULE, buildx.REQUIRED)
    assert f"{buildx.REQUIRED} v{version} h1:" in (buildx.MODULE / "go.sum").read_text()
