"""Certificates that sign themselves, for servers of tests."""

import subprocess
from pathlib import Path


def make(certificate: Path, key: Path, name: str, *hosts: str) -> None:
    """Write a certificate for hosts, and its key: on a curve, which is found in no time."""
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ",".join(f"DNS:{host}" for host in hosts)
    command += ["-subj", f"/CN={name}", "-days", "2", "-addext", f"subjectAltName={names}"]
    subprocess.run([*command, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
