"""The certificate of Google's names: who trusts it, who may read its key, and that its authority signs no other."""

import hashlib
import io
import os
import socket
import ssl
import stat
import struct
import subprocess
import sys
import threading
from pathlib import Path

import certifi
import pytest

from vertex_emulator.errors import StartError
from vertex_emulator.inside.authority import MAKE, Authority


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "key.pem", tmp_path / "trusted.pem")


def greeted(authority: Authority, trusted: Path | None, name: str) -> str | None:
    """The protocol that a client and the server agree on; raises SSLError."""
    client = ssl.create_default_context(cafile=str(trusted) if trusted else None)
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    client.set_alpn_protocols(["h2", "http/1.1"])
    ours, theirs = socket.socketpair()

    def answer() -> None:
        with theirs:
            try:
                with authority.context().wrap_socket(theirs, server_side=True) as accepted:
                    accepted.recv(1)
            except OSError:
                return

    server = threading.Thread(target=answer)
    server.start()
    with ours:
        try:
            with client.wrap_socket(ours, server_hostname=name) as connected:
                return connected.selected_alpn_protocol()
        finally:
            ours.close()
            server.join(30)


def test_clients_that_trust_the_bundle_take_google_s_names(authority: Authority) -> None:
    for name in ("storage.googleapis.com", "us-central1-aiplatform.googleapis.com", "localhost", "127.0.0.1", "::1"):
        assert greeted(authority, authority.bundle(), name) == "http/1.1"
    with pytest.raises(ssl.SSLCertVerificationError):
        greeted(authority, authority.bundle(), "example.com")


def test_the_machine_does_not_trust_it(authority: Authority) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        greeted(authority, None, "storage.googleapis.com")


def test_its_key_is_the_owner_s_and_signs_nothing(authority: Authority, tmp_path: Path) -> None:
    bundle = authority.bundle()
    key = tmp_path / "key.pem"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600 and b"PRIVATE KEY" not in bundle.read_bytes()
    assert key.read_bytes().count(b"PRIVATE KEY-----") == 2  # one key, the server's: that of the authority is gone
    assert key.read_bytes() not in bundle.read_bytes()


def test_both_files_are_kept_together(authority: Authority, tmp_path: Path) -> None:
    before = authority.bundle().read_bytes()
    assert authority.bundle().read_bytes() == before
    (tmp_path / "key.pem").unlink()
    assert authority.bundle().read_bytes() != before
    assert greeted(authority, authority.bundle(), "storage.googleapis.com")


def in_java(store: bytes) -> list[bytes]:
    """The certificates of a key store, read as Java reads it with its default password."""
    content, digest = store[:-20], store[-20:]
    assert digest == hashlib.sha1("changeit".encode("utf-16-be") + b"Mighty Aphrodite" + content).digest()
    file, aliases, found = io.BytesIO(content), set[str](), []

    def number(size: str) -> int:
        return int(struct.unpack(f">{size}", file.read(struct.calcsize(f">{size}")))[0])

    assert (number("I"), number("I")) == (0xFEEDFEED, 2)
    for _ in range(number("I")):
        assert number("I") == 2  # a trusted certificate
        aliases.add(file.read(number("H")).decode())
        number("Q")
        assert file.read(number("H")) == b"X.509"
        found.append(file.read(number("I")))
    assert file.read() == b"" and len(aliases) == len(found)
    return found


def test_java_trusts_what_the_bundle_has(authority: Authority) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(authority.bundle())
    found = in_java(authority.store().read_bytes())
    assert {*context.get_ca_certs(binary_form=True)} <= {*found}
    assert stat.S_IMODE(authority.store().stat().st_mode) == 0o644


def test_java_s_store_is_made_for_the_bundle_there_is(authority: Authority, tmp_path: Path) -> None:
    """Of an emulator that made none, and of another authority."""
    before = authority.bundle().read_bytes(), authority.store().read_bytes()
    authority.store().unlink()
    assert (authority.bundle().read_bytes(), authority.store().read_bytes()) == before
    (tmp_path / "key.pem").unlink()
    assert authority.store().read_bytes() != before[1]


def test_what_is_no_certificate_is_left_out_for_java(authority: Authority) -> None:
    bundle = authority.bundle()
    of_bundle = in_java(authority.store().read_bytes())
    text = b"a title\n-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"
    bundle.write_bytes(text + bundle.read_bytes())
    authority.store().unlink()
    assert in_java(authority.store().read_bytes()) == of_bundle


def test_a_broken_key_is_one_line(authority: Authority, tmp_path: Path) -> None:
    authority.bundle()
    (tmp_path / "key.pem").write_text("no key")
    with pytest.raises(StartError, match="delete it, and a start makes another"):
        authority.context()


def test_many_threads_make_one(authority: Authority) -> None:
    found: list[bytes] = []
    threads = [threading.Thread(target=lambda: found.append(authority.bundle().read_bytes())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({*found}) == 1


def test_a_certificate_is_read_again_once_another_has_made_it(authority: Authority, tmp_path: Path) -> None:
    before = authority.context()
    assert authority.context() is before
    (tmp_path / "key.pem").unlink()
    bundle = Authority(tmp_path / "key.pem", tmp_path / "trusted.pem").bundle()
    assert authority.context() is not before and greeted(authority, bundle, "localhost")


def test_what_the_machine_trusts_stays_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of the system, and those of a company that Google's clients are given in its place."""
    trusted = tmp_path / "trusted.pem"
    trusted.write_text("of an earlier emulator")
    (tmp_path / "company.pem").write_text("the company's")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "company.pem"))
    monkeypatch.setenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", str(trusted))
    system = Path(ssl.get_default_verify_paths().cafile or certifi.where()).read_text()
    found = Authority(tmp_path / "key.pem", trusted).bundle().read_text()
    assert system.strip() in found and "the company's" in found and "earlier" not in found


def test_programs_of_an_emulator_that_has_ended_say_nothing() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    programs = [MAKE, [sys.executable, "-m", "vertex_emulator.rpc.server", "http://127.0.0.1:1"]]
    options = {"stdin": subprocess.DEVNULL, "stdout": writer, "stderr": subprocess.PIPE}
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}  # a buffer is written where an error is no traceback
    running = [subprocess.Popen(program, env=environment, **options) for program in programs]
    os.close(writer)
    assert [(process.communicate()[1], process.returncode) for process in running] == [(b"", 0)] * 2
