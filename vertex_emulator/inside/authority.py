"""A certificate authority of an emulator's own: it vouches for Google's names at the door, and for this machine's own.

Its containers trust it, and programs that `vertex-emulator env` and `exec` lead here; the machine never does. The
certificate's key is in the data folder, for the owner alone.
"""

import contextlib
import hashlib
import ipaddress
import os
import re
import ssl
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from vertex_api import locks
from vertex_emulator.errors import StartError

_VALID = timedelta(days=3650)
_CLOCKS = timedelta(days=1)
"""A clock that is behind takes a certificate of now for one of the future."""
NAMES = ("*.googleapis.com", "googleapis.com", "localhost")
ADDRESSES = ("127.0.0.1", "::1")
"""The names and addresses that the certificate is for."""
MAKE = [sys.executable, "-m", "vertex_emulator.inside.authority"]
"""What prints a new certificate and the chain of a server's, with a zero byte between them."""
_FOLDER = Path(__file__).parents[2]
_BETWEEN = b"\0"
_ISSUER = "vertex-emulator (this data folder's programs only)"
BUNDLE = "/run/vertex-training/ca.pem"
"""Where containers find the certificates that they trust."""
STORE = "/run/vertex-training/ca.jks"
"""Where Java finds them."""
GRPC, REQUESTS = "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "REQUESTS_CA_BUNDLE"
"""The variables that name the trusted certificates to Google's clients for Python, over gRPC and over REST."""
VARIABLES = (
    "SSL_CERT_FILE",  # OpenSSL, and so Python's ssl, Go, curl's library and Ruby
    REQUESTS,
    "CURL_CA_BUNDLE",  # curl, and TensorFlow's file system
    GRPC,
    "NODE_EXTRA_CA_CERTS",
    "HTTPLIB2_CA_CERTS",
    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
)
"""The variables that name BUNDLE to programs in containers."""
LEADING = {"JAVA_TOOL_OPTIONS": f"-Djavax.net.ssl.trustStore={STORE}"}
"""What comes first in the variable that each virtual machine of Java reads, where of two values the last one counts."""
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_JKS, _JKS_VERSION, _JKS_TRUSTED = 0xFEEDFEED, 2, 2
_JKS_PASSWORD, _JKS_SALT = "changeit", b"Mighty Aphrodite"
"""Java's default, which programs give with a store of their own or with none; without one, nothing is compared."""


class Authority:
    """The authority of a data folder, made at the first use."""

    def __init__(self, key: Path, bundle: Path) -> None:
        self._key, self._bundle, self._store = key, bundle, bundle.with_suffix(".jks")
        self._lock = threading.Lock()
        self._loaded: tuple[tuple[int, int], ssl.SSLContext] | None = None

    def bundle(self) -> Path:
        """Return the file with the certificates that containers trust: this machine's, and the authority's.

        Raises StartError.
        """
        self._ensure()
        return self._bundle

    def store(self) -> Path:
        """Return the file with the same certificates for Java. Raises StartError."""
        self._ensure()
        return self._store

    def context(self) -> ssl.SSLContext:
        """Return the context of a server for NAMES and ADDRESSES, which prefers HTTP/1.1. Raises StartError."""
        self._ensure()
        try:
            status = self._key.stat()
            made = status.st_ino, status.st_mtime_ns
            if self._loaded is None or self._loaded[0] != made:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(self._key)
                context.set_alpn_protocols(["http/1.1", "h2"])
                self._loaded = made, context
            return self._loaded[1]
        except (OSError, ssl.SSLError) as error:
            raise StartError(
                f"the key {self._key} cannot be used: {error}; delete it, and a start makes another"
            ) from error

    def _ensure(self) -> None:
        """Write the files unless they are there: a certificate whose authority's key is kept nowhere."""
        with self._lock:
            if self._key.exists() and self._bundle.exists() and self._store.exists():
                return
            try:
                with locks.held(self._key.with_suffix(".lock")):  # which other processes may hold
                    if not (self._key.exists() and self._bundle.exists()):
                        # In a process of its own: what it imports would stay in the emulator.
                        made = subprocess.run(
                            MAKE, cwd=_FOLDER, stdout=subprocess.PIPE, check=True, start_new_session=True
                        )
                        root, _, chain = made.stdout.partition(_BETWEEN)
                        self._store.unlink(missing_ok=True)
                        _write(self._bundle, _trusted(but=self._bundle) + root, 0o644)
                        _write(self._key, chain, 0o600)
                    if not self._store.exists():
                        _write(self._store, _java_store(self._bundle.read_bytes()), 0o644)
            except (OSError, subprocess.CalledProcessError) as error:
                raise StartError(f"the certificates of the emulator cannot be written: {error}") from error


def _write(path: Path, content: bytes, mode: int) -> None:
    """Write a file at once, for the owner of its folder, who may be another one than root."""
    partial = path.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    number = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with os.fdopen(number, "wb") as file:
        file.write(content)
        if os.geteuid() == 0:
            owner = path.parent.stat()
            os.fchown(number, owner.st_uid, owner.st_gid)
    partial.replace(path)


def _trusted(but: Path) -> bytes:
    """Return the certificates that this machine trusts, in PEM: programs replace their own by them.

    Those that the environment names are among them, `but` a file of the authority's own.
    """
    named = [ssl.get_default_verify_paths().cafile, *(os.environ.get(name) for name in (GRPC, REQUESTS))]
    files = [path for path in map(Path, filter(None, named)) if path.is_file() and path.resolve() != but.resolve()]
    if not files:
        import certifi

        files.append(Path(certifi.where()))
    return b"".join(content + b"\n" for content in dict.fromkeys(path.read_bytes().rstrip() for path in files))


def _java_store(bundle: bytes) -> bytes:
    """Return the certificates of a bundle as a key store of Java's that each version reads, from 8 on.

    Its format is in sun.security.provider.JavaKeyStore, `engineStore`.
    """
    certificates = dict.fromkeys(_certificates(bundle))
    store = struct.pack(">III", _JKS, _JKS_VERSION, len(certificates))
    for number, certificate in enumerate(certificates):
        alias, kind, made = str(number).encode(), b"X.509", 0
        store += struct.pack(f">IH{len(alias)}sQ", _JKS_TRUSTED, len(alias), alias, made)
        store += struct.pack(f">H{len(kind)}sI", len(kind), kind, len(certificate)) + certificate
    return store + hashlib.sha1(_JKS_PASSWORD.encode("utf-16-be") + _JKS_SALT + store).digest()


def _certificates(bundle: bytes) -> Iterator[bytes]:
    for found in _CERTIFICATE.findall(bundle):
        with contextlib.suppress(ValueError):  # what a program of another kind leaves out, too
            yield ssl.PEM_cert_to_DER_cert(found.decode("ascii"))


def _made() -> tuple[bytes, bytes]:
    """Return a new authority's certificate, and key and certificate of a server for NAMES, in PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    now = datetime.now(UTC)
    authority, server = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, _ISSUER)])

    def certificate(subject: x509.Name, key: ec.EllipticCurvePrivateKey, is_authority: bool) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _CLOCKS)
            .not_valid_after(now + _VALID)
            .add_extension(x509.BasicConstraints(is_authority, 0 if is_authority else None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key()), critical=False)
        )

    # Python's strict verification asks for it (RFC 5280, 4.2.1.3).
    signs = dict.fromkeys(("digital_signature", "content_commitment", "key_encipherment", "data_encipherment"), False)
    signs |= dict.fromkeys(("key_agreement", "encipher_only", "decipher_only"), False)
    usage = x509.KeyUsage(**signs, key_cert_sign=True, crl_sign=True)
    root = certificate(issuer, authority, True).add_extension(usage, critical=True).sign(authority, hashes.SHA256())
    addresses = [x509.IPAddress(ipaddress.ip_address(address)) for address in ADDRESSES]
    alternatives = x509.SubjectAlternativeName([*map(x509.DNSName, NAMES), *addresses])
    leaf = (
        certificate(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAMES[0])]), server, False)
        .add_extension(alternatives, critical=False)
        .sign(authority, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    key = server.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return root.public_bytes(pem), key + leaf.public_bytes(pem)


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):  # the emulator has ended meanwhile
        os.write(1, _BETWEEN.join(_made()))
