"""A certificate authority of an emulator's own: it vouches for Google's names at the door, to its containers alone.

The machine never trusts it. Its key is in the data folder, for the owner alone.
"""

import os
import ssl
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

from vertex_emulator.errors import StartError

_VALID = timedelta(days=3650)
_CLOCKS = timedelta(days=1)
"""A clock that is behind takes a certificate of now for one of the future."""
NAMES = ("*.googleapis.com", "googleapis.com")
"""The names that the certificate is for."""
_ISSUER = "vertex-emulator (this machine's containers only)"
BUNDLE = "/run/vertex-training/ca.pem"
"""Where containers find the certificates that they trust."""
VARIABLES = (
    "SSL_CERT_FILE",  # OpenSSL, and so Python's ssl, Go, curl's library and Ruby
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",  # curl, and TensorFlow's file system
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "NODE_EXTRA_CA_CERTS",
    "HTTPLIB2_CA_CERTS",
    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
)
"""The variables that name BUNDLE to programs."""


class Authority:
    """The authority of a data folder, made at the first use."""

    def __init__(self, key: Path, bundle: Path) -> None:
        self._key, self._bundle = key, bundle
        self._lock = threading.Lock()

    def bundle(self) -> Path:
        """Return the file with the certificates that containers trust: this machine's, and the authority's.

        Raises StartError.
        """
        self._ensure()
        return self._bundle

    def context(self) -> ssl.SSLContext:
        """Return the context of a server for NAMES, which prefers HTTP/1.1. Raises StartError."""
        self._ensure()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self._key)
        except (OSError, ssl.SSLError) as error:
            raise StartError(
                f"the key {self._key} cannot be used: {error}; delete it, and a start makes another"
            ) from error
        context.set_alpn_protocols(["http/1.1", "h2"])
        return context

    def _ensure(self) -> None:
        """Write both files unless they are there: a certificate whose authority's key is kept nowhere."""
        with self._lock:
            if self._key.exists() and self._bundle.exists():
                return
            try:
                root, chain = _made()
                _write(self._bundle, _trusted() + root, 0o644)
                _write(self._key, chain, 0o600)
            except OSError as error:
                raise StartError(f"the certificates for containers cannot be written: {error}") from error


def _write(path: Path, content: bytes, mode: int) -> None:
    path.unlink(missing_ok=True)
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with os.fdopen(number, "wb") as file:
        file.write(content)


def _trusted() -> bytes:
    """Return the certificates that this machine trusts, in PEM: containers replace their own by them."""
    given = os.environ.get("SSL_CERT_FILE") or ssl.get_default_verify_paths().cafile or ""
    if not given or not Path(given).is_file():
        import certifi

        given = certifi.where()
    return Path(given).read_bytes().rstrip() + b"\n"


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
    alternatives = x509.SubjectAlternativeName([x509.DNSName(name) for name in NAMES])
    leaf = (
        certificate(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAMES[0])]), server, False)
        .add_extension(alternatives, critical=False)
        .sign(authority, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    key = server.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return root.public_bytes(pem), key + leaf.public_bytes(pem)
