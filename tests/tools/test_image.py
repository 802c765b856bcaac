"""The base image: present, pulled, or made here."""

import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.setup import image, programs
from tools.setup.image import (
    LABEL,
    TAG,
    add_python,
    build,
    copy_pip_settings,
    find,
    make,
    parse_pip,
    render_pip,
)
from tools.setup.programs import CommandFailed, Output, SetupError

Program = Callable[[str | Path, str], Path]
OUTPUT = Output(io.StringIO())


@pytest.mark.parametrize(
    ("labels", "line"),
    [
        ("null", f"Base image: {TAG}"),
        ("{}", f"Base image: {TAG}"),
        (f'{{"{LABEL}":"debootstrap"}}', f"Base image: {TAG}, made here with debootstrap"),
    ],
)
def test_an_existing_image_is_found(program: Program, labels: str, line: str) -> None:
    program("docker", f"echo '{labels}'")
    assert find() == line


def test_a_missing_image_is_not_found(program: Program) -> None:
    program("docker", "echo 'No such image' >&2; exit 1")
    assert find() is None


def test_a_pulled_image_is_not_built(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "build", lambda *_: pytest.fail("made although it could be pulled"))
    program("docker", f'[ "$1 $2" = "pull {TAG}" ]')
    assert make(OUTPUT) == f"Base image: {TAG}, pulled"


def test_an_image_is_built_if_pulling_fails(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Output] = []
    monkeypatch.setattr(image, "build", made.append)
    program("docker", "exit 1")
    assert make(OUTPUT) == f"Base image: {TAG}, made here with debootstrap because it could not be pulled"
    assert made == [OUTPUT]


def test_a_failed_pull_and_build_are_both_reported(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "can_install", lambda: False)
    program("docker", "echo 'no such host' >&2; exit 1")
    with pytest.raises(SetupError) as failure:
        make(OUTPUT)
    message = str(failure.value)
    assert "no such host" in message
    assert "there is no `debootstrap`" in message
    assert message.endswith("then run `make setup` again.")


def test_a_debootstrap_that_fails_leaves_no_folder_behind(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(image, "WORK_FOLDER", tmp_path / "work")
    (tmp_path / "work").mkdir()
    program("debootstrap", 'for last; do :; done; /bin/mkdir -p "$last/usr"; echo "E: no mirror" >&2; exit 1')
    program("rm", 'exec /bin/rm "$@"')
    with pytest.raises(CommandFailed, match="E: no mirror"):
        build(OUTPUT)
    assert list((tmp_path / "work").iterdir()) == []


def test_the_imported_image_has_label_without_docs(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(image, "WORK_FOLDER", tmp_path)
    program(
        "debootstrap",
        'for last; do :; done; cd "$(/usr/bin/dirname "$last")"; /bin/mkdir -p root/usr/bin root/etc/ssl/certs '
        "root/usr/share/doc root/usr/share/man; : > root/usr/share/doc/changelog; : > root/etc/kept",
    )
    for name in ("tar", "rm"):
        program(name, f'exec /bin/{name} "$@"')
    listing = f'case $a in *.tar) /bin/tar -tf "$a" > "{tmp_path}/content";; esac'
    program("docker", f'for a; do echo "$a" >> "{tmp_path}/asked"; {listing}; done')
    build(OUTPUT)
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked[0] == "import"
    assert asked[-1] == TAG
    assert f"--change=LABEL {LABEL}=debootstrap" in asked
    content = (tmp_path / "content").read_text().split()
    assert "./etc/kept" in content
    assert "./usr/share/doc/changelog" not in content


def test_the_image_has_python_and_unrestricted_pip(tmp_path: Path) -> None:
    library = tmp_path / "usr/lib/python3.11"
    library.mkdir(parents=True)
    (library / "EXTERNALLY-MANAGED").touch()
    (tmp_path / "usr/bin").mkdir()
    add_python(tmp_path)
    assert str((tmp_path / "usr/bin/python").readlink()) == "python3"
    assert not (library / "EXTERNALLY-MANAGED").exists()


def test_the_image_trusts_pip_s_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "own.pem"
    own.write_text("-----BEGIN OUR AUTHORITY-----\n")
    monkeypatch.setenv("PIP_CERT", str(own))
    bundle = tmp_path / "root/etc/ssl/certs/ca-certificates.crt"
    bundle.parent.mkdir(parents=True)
    copy_pip_settings(tmp_path / "root")
    assert bundle.read_text().endswith("\n-----BEGIN OUR AUTHORITY-----\n")
    assert "cert = /etc/ssl/certs/ca-certificates.crt" in (tmp_path / "root/etc/pip.conf").read_text()


CERT = "cert = /etc/ssl/certs/ca-certificates.crt"


def test_variables_override_later_files_override_earlier() -> None:
    system = "[global]\nindex-url = https://system/simple\ntimeout = 15\n"
    user = "[global]\nindex_url = https://user/simple\n[install]\ntrusted-host = user\n"
    options = parse_pip([system, user], {"PIP_DEFAULT_TIMEOUT": "60", "PIP_TRUSTED_HOST": "", "PIPX": "no"})
    assert options == {
        "index-url": "https://user/simple",
        "timeout": "15",
        "trusted-host": "user",
        "default-timeout": "60",
    }


def test_indexes_and_trusted_hosts_reach_the_container() -> None:
    options = {"index-url": "https://mirror/simple", "trusted-host": "mirror\nother", "timeout": "60"}
    assert render_pip(options).splitlines() == [
        "[global]",
        CERT,
        "index-url = https://mirror/simple",
        "trusted-host = mirror other",
        "timeout = 60",
    ]


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:3141/simple",
        "http://127.0.0.1/simple",
        "file:///opt/wheels",
        "https://me:secret@mirror/simple",
        "https://token@mirror/simple",
    ],
)
def test_local_and_secret_indexes_are_left_out(url: str) -> None:
    settings = render_pip({"index-url": url, "extra-index-url": f"{url} https://mirror/simple"})
    assert settings.splitlines() == ["[global]", CERT, "extra-index-url = https://mirror/simple"]


def test_settings_of_this_machine_are_left_out() -> None:
    options = parse_pip([], {"PIP_FIND_LINKS": "/opt/wheels", "PIP_CACHE_DIR": "/c", "PIP_CERT": "/my.pem"})
    assert render_pip(options).splitlines() == ["[global]", CERT]


def test_a_broken_file_is_reported_as_such() -> None:
    with pytest.raises(CommandFailed, match="pip's settings cannot be read"):
        parse_pip(["no section"], {})


@pytest.mark.parametrize("text", ["index-url = {}", "[global]\n{}", "[install]\na = 1\na = {}", "[a]\n[a]\n{}"])
def test_a_broken_file_with_a_password_is_not_quoted(text: str) -> None:
    with pytest.raises(CommandFailed) as failed:
        parse_pip([text.replace("{}", "https://me:canary@mirror/simple\n=")], {})
    assert "canary" not in str(failed.value) and "line " in str(failed.value)
    assert failed.value.__cause__ is None
