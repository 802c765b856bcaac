"""What a set-up downloads, from a hostile server: nothing of it is kept, and it fills no disk or memory."""

import base64
import gzip
import hashlib
import io
import os
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tools.setup import engine, go, programs, python
from tools.setup.programs import CommandFailed, Output, SetupError

OUTPUT = Output(io.StringIO())
MIB = 1 << 20
WHEEL = "bomb-1.0-py3-none-any.whl"
Answer = Callable[[BaseHTTPRequestHandler], None]


class Server(ThreadingHTTPServer):
    """Answers what it is told to, by path; the last part of a path is enough."""

    answers: dict[str, Answer]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        answers = self.server.answers
        answer = answers.get(self.path) or answers.get(self.path.rpartition("/")[2])
        with suppress(OSError):  # the client has gone
            if answer:
                answer(self)
            else:
                self.send_error(404)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as served:
        served.answers = {}
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        yield served
        served.shutdown()
        thread.join()


def says(body: bytes, **headers: str) -> Answer:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        for name, value in {"Content-Type": "text/html", "Content-Length": str(len(body)), **headers}.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(body)

    return answer


def leads_to(address: str) -> Answer:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(302)
        request.send_header("Location", address)
        request.end_headers()

    return answer


def endless(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.end_headers()
    while True:
        request.wfile.write(b"x" * MIB)


def wheel(content: bytes = b"") -> bytes:
    """A wheel of one module."""
    info = "bomb-1.0.dist-info"
    files = {
        "bomb.py": content,
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: bomb\nVersion: 1.0\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: a\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
    }
    with zipfile.ZipFile(written := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return written.getvalue()


def bomb(size: int) -> bytes:
    """So many bytes, compressed, in members of one MiB."""
    return gzip.compress(bytes(MIB)) * (size // MIB)


@pytest.fixture
def lock(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock of one package, which pip gets from the server, into a folder of its own."""
    for name in [each for each in os.environ if each.startswith("PIP_")]:
        monkeypatch.delenv(name)
    for name, value in {
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_INDEX_URL": f"{server.url}/simple",
        "PIP_NO_CACHE_DIR": "1",
        "PIP_RETRIES": "0",
        "PIP_TARGET": str(tmp_path / "target"),
        "no_proxy": "127.0.0.1",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(python, "PYTHON", Path(sys.executable))
    monkeypatch.setattr(programs, "MAX_FILE_BYTES", 8 * MIB)
    monkeypatch.setattr(programs, "PYTHON_MEMORY", 256 * MIB)
    server.answers = {
        "/simple/bomb/": says(f'<a href="/{WHEEL}">{WHEEL}</a>'.encode()),
        WHEEL: says(wheel()),
    }
    file = tmp_path / "requirements.lock"
    file.write_text(f"bomb==1.0 --hash=sha256:{hashlib.sha256(wheel()).hexdigest()}\n")
    return file


def test_what_the_lock_names_is_installed(lock: Path, tmp_path: Path) -> None:
    python.install(lock, OUTPUT)
    assert (tmp_path / "target/bomb.py").exists()


@pytest.mark.parametrize(
    ("path", "answer", "said"),
    [
        (WHEEL, says(wheel(b"import os; os.system('x')")), "THESE PACKAGES DO NOT MATCH THE HASHES"),
        (WHEEL, leads_to("file:///etc/passwd"), "could not be installed"),
        (WHEEL, leads_to("/other"), "THESE PACKAGES DO NOT MATCH THE HASHES"),
        (WHEEL, endless, "File too large"),
        (WHEEL, says(bomb(64 * MIB), Content_Encoding="gzip"), "could not be installed"),
        ("/simple/bomb/", says(bomb(512 * MIB), Content_Encoding="gzip"), "could not be installed"),
    ],
    ids=["other content", "a file", "elsewhere", "endless", "a bomb", "a bomb of an index"],
)
def test_no_other_package_is_installed(
    server: Server, lock: Path, tmp_path: Path, path: str, answer: Answer, said: str
) -> None:
    server.answers |= {path: answer, "/other": says(wheel(b"other"))}
    with pytest.raises(SetupError) as failed:
        python.install(lock, OUTPUT)
    assert said in str(failed.value)
    assert len(str(failed.value).splitlines()) <= programs.MAX_QUOTED_LINES + 2
    assert not (tmp_path / "target/bomb.py").exists()


@pytest.fixture
def module(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Go module that requires another one, which Go gets from the server."""
    for name, value in {
        "GOPROXY": server.url,
        "GONOSUMDB": "*",
        "GOMODCACHE": str(tmp_path / "modules"),
        "GOCACHE": str(tmp_path / "cache"),
        "GOFLAGS": "-mod=mod -insecure",
        "GOTOOLCHAIN": "local",
        "no_proxy": "127.0.0.1",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(programs, "MAX_FILE_BYTES", 8 * MIB)
    folder = tmp_path / "module"
    folder.mkdir()
    (folder / "go.mod").write_text("module a.test/own\n\ngo 1.21\n\nrequire a.test/bomb v1.0.0\n")
    server.answers = {
        "v1.0.0.info": says(b'{"Version": "v1.0.0"}'),
        "v1.0.0.mod": says(GO_MOD),
        "v1.0.0.zip": says(go_zip()),
    }
    contents = [hashed({"go.mod": GO_MOD}), hashed({f"{GO_FOLDER}/{name}": text for name, text in GO_FILES.items()})]
    (folder / "go.sum").write_text(f"a.test/bomb v1.0.0 {contents[1]}\na.test/bomb v1.0.0/go.mod {contents[0]}\n")
    return folder


GO_FOLDER, GO_MOD = "a.test/bomb@v1.0.0", b"module a.test/bomb\n\ngo 1.21\n"
GO_FILES = {"go.mod": GO_MOD, "main.go": b"package main\n\nfunc main() {}\n"}


def hashed(files: dict[str, bytes]) -> str:
    """The sum of files in go.sum (Go's package dirhash, `Hash1`)."""
    lines = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(files.items()))
    return "h1:" + base64.b64encode(hashlib.sha256(lines.encode()).digest()).decode()


def go_zip(**others: bytes) -> bytes:
    with zipfile.ZipFile(written := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {**GO_FILES, **others}.items():
            archive.writestr(f"{GO_FOLDER}/{name}", data)
    return written.getvalue()


def test_what_go_sum_names_is_taken(module: Path) -> None:
    assert "a.test/bomb" in go.packages(module, "a.test/bomb", OUTPUT)


@pytest.mark.parametrize(
    ("path", "answer", "said"),
    [
        ("v1.0.0.zip", says(go_zip(**{"evil.go": b"package main\n"})), "checksum mismatch"),
        ("v1.0.0.zip", leads_to("/other"), "checksum mismatch"),
        ("v1.0.0.mod", says(GO_MOD + b"// x\n"), "checksum mismatch"),
        ("v1.0.0.zip", says(go_zip(**{"bomb.txt": bytes(64 * MIB)})), "checksum mismatch"),
        ("v1.0.0.zip", endless, "too large"),
    ],
    ids=["other content", "elsewhere", "another go.mod", "a bomb", "endless"],
)
def test_no_other_module_is_taken(server: Server, module: Path, path: str, answer: Answer, said: str) -> None:
    server.answers |= {path: answer, "other": says(go_zip(**{"x.go": b"package main\n"}))}
    with pytest.raises(CommandFailed, match=said):
        go.packages(module, "a.test/bomb", OUTPUT)
    kept = sum(file.stat().st_size for file in (module.parent / "modules").rglob("*") if file.is_file())
    assert kept <= programs.MAX_FILE_BYTES


PULUMI = """\
import urllib.request

class PulumiCommand:
    @staticmethod
    def install(root):
        with urllib.request.urlopen({url!r}) as reply:
            script = reply.read()
        open(root + "/install.sh", "wb").write(script)
"""
"""What Pulumi's SDK does first: it reads a whole script into memory, and runs it."""


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (leads_to("http://127.0.0.1:1/install.sh"), "leads to http://127.0.0.1:1/install.sh, which is not encrypted"),
        (leads_to("file:///etc/passwd"), "Redirection to url 'file:///etc/passwd' is not allowed"),
        (endless, "ended with exit code"),
    ],
    ids=["elsewhere", "a file", "endless"],
)
def test_pulumi_s_installer_is_from_its_server(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Answer, said: str
) -> None:
    (tmp_path / "pulumi/automation").mkdir(parents=True)
    (tmp_path / "pulumi/__init__.py").touch()
    (tmp_path / "pulumi/automation/__init__.py").write_text(PULUMI.format(url=f"{server.url}/install.sh"))
    (target := tmp_path / "target").mkdir()
    server.answers = {"install.sh": answer}
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(programs, "PYTHON_MEMORY", 96 * MIB)
    monkeypatch.setattr(python, "PYTHON", Path(sys.executable))
    with pytest.raises(CommandFailed, match=said):
        engine.install_official(target, OUTPUT)
    assert [*target.iterdir()] == []
