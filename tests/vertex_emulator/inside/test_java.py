"""A job in Java as people write it for the cloud: Java reads no variable for the certificates that it trusts."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.vertex_emulator.running import RunningEmulator, custom_job, pool
from tests.vertex_emulator.suites import copied

COMPILE = ["mvn", "-B", "-q", "compile", "dependency:copy-dependencies", "-DincludeScope=runtime"]
MODULES = "java.desktop,java.management,java.naming,java.net.http,java.sql,jdk.crypto.ec,jdk.unsupported"
OPTIONS = "-Down=kept -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Those of a job; the others are because Java takes three times as long when it compiles itself."""


def _made(folder: Path) -> None:
    """A Java that has what the program needs, and the program; skips where its packages cannot be had."""
    done = subprocess.run(COMPILE, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"its packages cannot be had here: {done.stdout[:500]}")
    smaller = ["--strip-debug", "--no-header-files", "--no-man-pages"]
    subprocess.run(["jlink", "--add-modules", MODULES, *smaller, "--output", "target/java"], cwd=folder, check=True)


@pytest.mark.large
def test_java_finds_google_s_services(shared: RunningEmulator) -> None:
    """By Google's clients over REST and gRPC, and by Java's own. Its image has no Java: it is in a bucket."""
    if shutil.which("mvn") is None or shutil.which("jlink") is None or os.geteuid():
        pytest.skip("needs Maven, the JDK, and root")
    with copied("java_job") as program:
        if not (program / "target" / "java").exists():
            _made(program)
        shutil.copytree(program / "target", shared.data / "gcs" / "java-program")
    command = [
        "/gcs/java-program/java/bin/java",
        "-cp",
        "/gcs/java-program/classes:/gcs/java-program/dependency/*",
        "Trainer",
    ]
    env = [{"name": "JAVA_TOOL_OPTIONS", "value": OPTIONS}]
    job = shared.create(
        custom_job(pool("", command=command, env=env), baseOutputDirectory={"outputUriPrefix": "gs://java-models/run"})
    )
    log = shared.lines(job) if shared.ended(job)["state"] else []
    for line in ("read 42", "listed run/model/model.txt", "job a job", "by HTTP 42", "own option kept"):
        assert line in log, log
    assert (shared.data / "gcs/java-models/run/model/model.txt").read_text() == "42"
