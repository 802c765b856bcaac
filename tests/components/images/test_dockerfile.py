"""Dockerfiles and contexts that do not build: each is one line, with file, line and remedy, before Docker is asked."""

import os
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pulumi
import pytest
from vertex_training import trees
from vertex_training.errors import BuildFailed
from vertex_training.images import builders, declaration
from vertex_training.images.builders import ClassicBuilder
from vertex_training.images.context import DockerfileContext
from vertex_training.images.declaration import built_violations, image_violations
from vertex_training.images.dockerfile import Dockerfile
from vertex_training.schema import shapes

BASE = "FROM python:3.11-slim-bookworm\n"
BROKEN: dict[str, tuple[str | bytes, str]] = {
    "a misspelt FROM": ("FORM a\n", ":1: FORM is no instruction; did you mean FROM?"),
    "a misspelt RUN": (f"{BASE}RUN x \\\n  y\nRUNN z\n", ":4: RUNN is no instruction; did you mean RUN?"),
    "a line not continued": (
        f"{BASE}RUN a\n  && b\n",
        ":3: && is no instruction; if it continues the line before, end",
    ),
    "a heredoc without its end": (f"{BASE}RUN cat <<EOF\nhello\n", ":3: hello is no instruction; did you mean SHELL?"),
    "nothing": ("", ":1: is empty; let it begin with FROM and the image that it builds upon"),
    "comments alone": ("# to do\n\n", ":1: is empty; let it begin with FROM"),
    "ARG alone": ("ARG A=1\n", ":1: has no FROM; add one"),
    "RUN before FROM": (
        f"RUN a\n{BASE}",
        ":1: RUN stands before the first FROM, where only ARG may; move it below one",
    ),
    "FROM without an image": ("FROM\n", ":1: FROM has no argument; write what it is to set"),
    "FROM with two words": ("FROM a b\n", ":1: FROM must be FROM IMAGE or FROM IMAGE AS NAME (a b)"),
    "a bad stage's name": ("FROM a AS 1-b\n", ':1: "1-b" is no name of a stage; use letters'),
    "COPY to nowhere": (f"{BASE}COPY train.py\n", ":2: COPY has no destination; write what it copies, and where to"),
    "ENV without a name": (f"{BASE}ENV\n", ":2: ENV has no argument"),
    "USER without a name": (f"{BASE}\nUSER  \n", ":3: USER has no argument"),
    "WORKDIR without a folder": (f"{BASE}WORKDIR\n", ":2: WORKDIR has no argument"),
    "SHELL as a text": (f"{BASE}SHELL bash\n", ":2: SHELL must be a list in JSON"),
    "a missing file": (f"{BASE}COPY trian.py /\n", ":2: COPY of trian.py, which is not in d1/; correct the path"),
    "a file above": (
        f"{BASE}COPY ../lib /lib\n",
        ":2: COPY of lib, which is not in d1/; correct the path, which b",
    ),
    "an ignored file": (
        f"{BASE}COPY data.csv /\n",
        ":2: COPY of data.csv, which is excluded by .dockerignore; include",
    ),
    "an empty folder": (
        f"{BASE}COPY a empty /x/\n",
        ":2: COPY of empty, which is an empty folder, which no context has",
    ),
    "own output": (
        f"{BASE}COPY .emulator/x /\n",
        ":2: COPY of .emulator/x, which is written by Pulumi or this package",
    ),
    "ADD of a missing file": (f'{BASE}ADD ["b c", "/"]\n', ":2: ADD of b c, which is not in d1/"),
    "a misspelt flag": (f"{BASE}COPY --chwon=1 a /\n", ":2: COPY has no --chwon; did you mean --chown?"),
    "a flag without a value": (f"{BASE}COPY --from /a /b\n", ":2: COPY --from has no value; write --from=…"),
    "an option as a command": (
        f"{BASE}CMD --lr=1\n",
        ':2: CMD takes no flags; write a list in JSON, such as CMD ["--lr"]',
    ),
    "a name in capitals": ("FROM Python:3.11\n", ':1: FROM "Python:3.11" must be the name of an image'),
    "an address": ("FROM https://a.test/b\n", ':1: FROM "https://a.test/b" must be the name of an image'),
    "an image of nothing": (
        "ARG A=b\nFROM ${BASE_IMAGE}\n",
        ":2: ${BASE_IMAGE} is empty; write ARG BASE_IMAGE=IMAGE above the",
    ),
    "half an image": ("ARG TAG=3.11:x\nFROM python:$TAG\n", ':2: FROM "python:3.11:x" must be the name of an image'),
    "ENV without a value": (
        f"{BASE}ENV A=1 B\n",
        ":2: ENV must be NAME=value (B); put a value with blanks into quotes",
    ),
    "LABEL without a value": (f"{BASE}LABEL a\n", ":2: LABEL must be NAME=value (a)"),
    "half a quote": (f'{BASE}ENV A="x\n', ':2: ENV has a quote without its other one (A="x); add that'),
    "an unknown health check": (f"{BASE}HEALTHCHECK curl x\n", ":2: HEALTHCHECK must be HEALTHCHECK CMD COMMAND or"),
    "a port's name": (f"{BASE}EXPOSE http\n", ":2: EXPOSE must be ports, such as 8080 or 8080/udp (http)"),
    "FROM in ONBUILD": (f"{BASE}ONBUILD FROM a\n", ":2: ONBUILD takes no FROM; write another instruction there"),
    "SHELL with single quotes": (f"{BASE}SHELL ['bash']\n", ":2: SHELL must be a list in JSON"),
    "UTF-16": (BASE.encode("utf-16"), " is UTF-16 or no text; save it as UTF-8"),
}
"""What a Dockerfile says, and what is said of it."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return context(tmp_path / "d1")


def context(folder: Path) -> Path:
    """Make a context without a Dockerfile, with a link, an ignored file, and some that this package writes."""
    (folder / "empty").mkdir(parents=True)
    for name in ("a", "data.csv", "train.py"):
        (folder / name).touch()
    (folder / ".emulator").mkdir()
    (folder / ".emulator/x").touch()
    (folder / "link").symlink_to("empty")
    (folder / ".dockerignore").write_text("data.csv\n")
    return folder


def found(folder: Path, target: str = "") -> list[str]:
    """Return what is said of an image, equally of one that is declared and one of a program."""
    each = shapes.Image(context=folder.name, target=target) if target else shapes.Image(context=folder.name)
    messages = [message for _, message in image_violations(folder.parent, each)]
    assert messages == [message for _, message in built_violations(folder.parent, each)]
    return messages


@pytest.mark.parametrize("name", BROKEN)
def test_what_no_builder_accepts_is_named_by_line(folder: Path, name: str) -> None:
    content, message = BROKEN[name]
    (folder / "Dockerfile").write_bytes(content if isinstance(content, bytes) else content.encode())
    (shown,) = found(folder)
    assert shown.startswith(f"d1/Dockerfile{message}")


def test_all_wrong_lines_are_named_at_once(folder: Path) -> None:
    (folder / "Dockerfile").write_text("FORM a\nRUNN b\nCOPY\n")
    assert [shown.split(": ")[0] for shown in found(folder)] == [f"d1/Dockerfile:{line}" for line in (1, 2, 3)]


def test_a_missing_target_is_named(folder: Path) -> None:
    (folder / "Dockerfile").write_text("FROM a AS Slim\nFROM b\n")
    (shown,) = found(folder, target="slimm")
    assert shown == 'd1/Dockerfile:2: no stage is called "slimm", the target; did you mean slim?'
    assert found(folder, target="SLIM") == found(folder, target="1") == []


def test_a_misspelt_platform_is_named(folder: Path) -> None:
    (folder / "Dockerfile").write_text(BASE)
    for platform, meant in {
        "linux/amd": "linux/amd64",
        "linux/arm65": "linux/arm64",
    }.items():
        (message,) = (text for _, text in image_violations(folder.parent, {"context": "d1", "platform": platform}))
        assert message == f'"{platform}" is no platform; did you mean {meant}?'
    for platform in ("linux/amd64", "amd64", "linux/amd64/v3", "linux/arm64/v8", "linux/x86_64", "windows/amd64"):
        assert [*image_violations(folder.parent, {"context": "d1", "platform": platform})] == []


ACCEPTED: dict[str, str | bytes] = {
    "CRLF and a mark of UTF-8": "\ufeffFROM a\r\nRUN b \\\r\n  c\r\nCOPY a /\r\n",
    "Latin-1": b"FROM a\n# caf\xe9\n",
    "comments in a command": "FROM a\nRUN b \\\n# why\n\n  && c\n",
    "another escape": "# escape=`\nFROM a\nRUN b `\n  c\nWORKDIR C:\\\n",
    "a heredoc": "FROM a\nRUN <<EOF cat\nFORM\nEOF\nCOPY <<-'END' <<B /x/\n\tFORM\n\tEND\nFORM\nB\nRUN b\n",
    "lower case": "arg X=1\nfrom a as b\ncopy --chown=1 a /\n",
    "what another build is to run": "FROM a\nONBUILD CPY a b\n",
    "commands without arguments": "FROM a\nCMD\nENTRYPOINT\n",
    "what only a builder finds": "FROM a\nCOPY *.txt $HOME/x a link/x c[1] 'b c' /\nADD https://a.test/b git@c:d /\n",
    "what a stage has that is not needed": "FROM a AS b\nCOPY none /\nFROM c\nCOPY --from=d /x /y\n",
    "another frontend": "# syntax=docker/dockerfile:1-labs\nFORM a\n",
    "another frontend, as JSON": '{"syntax": "acme/frontend"}\nsteps: []\n',
    "what has blanks and quotes": 'FROM a\nENV A="b c" D=\'e "\' F=g\\ h\nENV OLD a text\n',
    "labels and ports": "FROM a\nLABEL a=b \\\n  c=d\nEXPOSE 80 $P 1-2/udp\n",
    "images by arguments": "ARG R=a.test/b\nARG T\nFROM $R/c:${T:-1} AS base\nFROM base\nFROM $TARGETARCH\n",
    "several arguments": "ARG A=python B=3.11\nFROM $A:$B\nARG C D=1\nFROM ${A:+x}\n",
    "flags of each": "FROM --platform=linux/amd64 a\nHEALTHCHECK --retries=5 CMD x\nRUN --new x\nCOPY --from=b /c /d\n",
    "a script's first line": "#!/usr/bin/env buildx\nFROM a\n",
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_a_builder_accepts_is_not_refused(folder: Path, name: str) -> None:
    content = ACCEPTED[name]
    (folder / "Dockerfile").write_bytes(content if isinstance(content, bytes) else content.encode())
    assert found(folder) == []


def test_needed_stages_are_followed(folder: Path) -> None:
    (folder / "Dockerfile").write_text(
        "FROM a AS one\nCOPY 1 /\nFROM one AS two\nCOPY 2 /\nFROM a AS three\nRUN --mount=type=bind,from=two x\n"
        "FROM a AS four\nCOPY 4 /\nFROM a\nCOPY --from=three /t /t\n"
    )
    assert [line for line, *_ in Dockerfile.parse((folder / "Dockerfile").read_text()).copied(None)] == [2, 4]
    assert [line for line, *_ in Dockerfile.parse("FROM a AS b\nCOPY c /\nFROM $X\n").copied(None)] == [2]


def _directory(file: Path) -> None:
    file.mkdir()


def _link(file: Path) -> None:
    file.symlink_to("nowhere")


def _socket(file: Path) -> None:
    here = Path.cwd()
    os.chdir(file.parent)  # the path of a socket is at most 107 bytes
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(file.name)
    os.chdir(here)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda file: None, "there is no d1/Dockerfile; write one, or name another with dockerfile"),
        (_directory, "d1/Dockerfile is a folder; rename it, or name a file in it with dockerfile"),
        (_link, "d1/Dockerfile is a link to nowhere, which is not there; correct it, or write a file"),
        (_socket, "d1/Dockerfile is no file that can be read, but a socket"),
    ],
)
def test_what_is_no_dockerfile_is_named(folder: Path, make: Callable[[Path], None], message: str) -> None:
    make(folder / "Dockerfile")
    (shown,) = found(folder)
    assert shown.startswith(message)


def test_an_unreadable_dockerfile_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "Dockerfile").write_text(BASE)

    def deny(*_: object) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(trees, "read", deny)
    assert found(folder) == ["d1/Dockerfile cannot be read (Permission denied); make it a file that you may read"]


BUILDKIT = {
    "RUN --mount=type=cache,target=/root/.cache pip install uv": "RUN --mount needs BuildKit; without it, leave the ca",
    "RUN --mount=type=cache,target=/c --mount=from=uv,target=/u x": (
        "RUN --mount needs BuildKit; without it, leave the cache out, as it only saves time, and COPY the files before"
    ),
    "RUN --mount=type=cache,target=/c --mount=type=ssh x": "RUN --mount needs BuildKit",
    "RUN --mount=target=/x,type=bind true": "RUN --mount needs BuildKit; without it, COPY the files before it",
    "RUN --mount=target=/x true": "RUN --mount needs BuildKit; without it, COPY the files before it",
    "RUN --mount=type=secret,id=t true": "RUN --mount needs BuildKit",
    "RUN --network=none true": "RUN --network needs BuildKit",
    "COPY --link a /": "COPY --link needs BuildKit; without it, leave --link out",
    "COPY --chown=1 --chmod=755 a /": "COPY --chmod needs BuildKit; without it, write RUN chmod below it",
    "ADD --checksum=sha256:0 https://a.test/b /": "ADD --checksum needs BuildKit; without it, write RUN with curl",
    "ADD git@a.test:b.git /": "ADD of a git address needs BuildKit; without it, write RUN git clone",
    "COPY <<EOF /app/main.py\nprint()\nEOF": "COPY << needs BuildKit; without it, write the text to a file",
    "RUN <<EOF\npip install a\nEOF": "RUN << needs BuildKit; without it, join the commands by && and end lines with \\",
    "copy a train.py .": "COPY of several files to . needs BuildKit; without it, end the destination with /",
    "FROM --platform=$BUILDPLATFORM a": "FROM with $BUILDPLATFORM needs BuildKit; without it, write ARG BUILDPLATFORM=",
}


@pytest.mark.parametrize("step", BUILDKIT)
def test_what_needs_buildkit_is_named_before_the_build(
    folder: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    (folder / "Dockerfile").write_text(f"{BASE}RUN a \\\n  b\n{step}\n")
    assert found(folder) == []
    monkeypatch.chdir(folder.parent)
    context = DockerfileContext(folder, "Dockerfile", {}, None, "linux/amd64")
    with pytest.raises(BuildFailed) as failed:
        ClassicBuilder().build(context, "x:1", {}, print)
    first, second = str(failed.value).splitlines()
    assert first == f"x:1 cannot be built by Docker's classic builder; {builders.INSTALL_BUILDX}:"
    assert second.startswith(f"  d1/Dockerfile:4: {BUILDKIT[step]}")


@pytest.mark.parametrize(
    ("here", "outcome"),
    [
        ({"has_plugin": True}, None),
        ({"cached_buildx": Path("buildx")}, None),
        (
            {"can_get_buildx": True},
            "`pulumi up` installs or builds Docker's buildx first, which takes some minutes",
        ),
        ({}, f"Docker here has none, so this machine cannot build d: {builders.INSTALL_BUILDX}"),
    ],
)
def test_a_preview_says_what_becomes_of_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, here: dict[str, object], outcome: str | None
) -> None:
    monkeypatch.chdir(folder.parent)
    warned: list[str] = []
    monkeypatch.setattr(pulumi, "warn", lambda text, _: warned.append(text))
    for name in ("has_plugin", "cached_buildx", "can_get_buildx"):
        monkeypatch.setattr(builders, name, partial(here.get, name))
    for steps in ("RUN --network=none true\n", ""):
        (folder / "Dockerfile").write_text(f"{BASE}{steps}")
        context = DockerfileContext(folder, "Dockerfile", {}, None, "linux/amd64")
        declaration.warn_classic("d", context, SimpleNamespace())  # type: ignore[arg-type]
    assert len(warned) == (outcome is not None)
    assert not outcome or warned[0].startswith(f"d1/Dockerfile:2: RUN --network needs BuildKit. {outcome}")


def test_the_classic_builder_gets_buildkit_s_arguments(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}
    client = SimpleNamespace(
        api=SimpleNamespace(build=lambda **options: given.update(options["buildargs"]) or []),
        version=lambda: {"Os": "linux", "Arch": "amd64"},
        close=lambda: None,
    )
    monkeypatch.setattr(builders, "connect", lambda _seconds: client)
    arguments = (
        "ARG BUILDPLATFORM\nFROM --platform=$BUILDPLATFORM a\nARG TARGETARCH\nARG TARGETVARIANT\nARG TARGETOS=x\n"
    )
    (folder / "Dockerfile").write_text(arguments)
    context = DockerfileContext(folder, "Dockerfile", {"A": "1"}, None, "linux/arm64")
    ClassicBuilder().build(context, "x:1", {}, print)
    assert given == {"A": "1", "BUILDPLATFORM": "linux/amd64", "TARGETARCH": "arm64", "TARGETVARIANT": ""}
