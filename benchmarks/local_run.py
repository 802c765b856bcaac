"""`gcloud ai custom-jobs local-run` on the digits example, beside the same as a job on the emulator.

The first run builds the image from nothing; then with an edit before each run, as while someone writes a trainer; then
on an image that is there. Docker, the base image, gcloud and a package index are needed.
"""

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.emulator import ENDED, POLL_SECONDS, Emulator, running

EXAMPLE = Path(__file__).parents[1] / "examples" / "digits"
BASE = "python:3.11-slim-bookworm"
IMAGE = "localhost/benchmark/digits:local-run"
EDITED_RUNS = 2
UNCHANGED_RUNS = 5
FLAGS = ["--epochs=3"]


def run_benchmark() -> Iterator[str]:
    """Alternates the two, and yields a line for each and one for the ratio of their medians."""
    if shutil.which("gcloud") is None:
        yield "gcloud is not installed: local-run is not measured"
        return
    with tempfile.TemporaryDirectory(prefix="vertex-local-run-benchmark-") as folder:
        data, source = Path(folder) / "data", Path(folder) / "digits"
        shutil.copytree(EXAMPLE, source)
        try:
            with running(data) as emulator:
                environment = _environment(data)
                for what, theirs, ours, runs in (
                    ("first:", _local_run_of_source, _job_of_new_source, 1),
                    ("edited:", _local_run_of_source, _job_of_source, EDITED_RUNS),
                    ("unedited:", _local_run_of_image, _job_of_image, UNCHANGED_RUNS),
                ):
                    yield from _compared(what, (theirs, ours), runs, emulator, environment, source)
        finally:
            command = [sys.executable, "-m", "vertex_emulator", "reset", "--yes", "--data", str(data)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            subprocess.run(["docker", "image", "rm", "--force", IMAGE], check=False, capture_output=True)


Measured = Callable[[Emulator, dict[str, str], Path], None]


def _compared(
    what: str, both: tuple[Measured, Measured], runs: int, emulator: Emulator, environment: dict[str, str], source: Path
) -> Iterator[str]:
    times: list[list[float]] = [[] for _ in both]
    for number in range(runs):
        for measured, taken in zip(both, times, strict=True):
            with (source / "trainer.py").open("a") as file:
                file.write(f"# edit {number}\n")
            begin = time.perf_counter()
            measured(emulator, environment, source)
            taken.append(time.perf_counter() - begin)
    theirs, ours = (statistics.median(taken) for taken in times)
    yield f"{what:9} gcloud local-run {theirs:6.2f} s   (median of {runs}, alternating)"
    yield f"{what:9} a job here       {ours:6.2f} s   ratio {ours / theirs:.2f}"


def _local_run_of_source(_: Emulator, environment: dict[str, str], source: Path) -> None:
    """Builds an image without a cache, as local-run always does, and runs it."""
    package = [f"--executor-image-uri={BASE}", f"--local-package-path={source}", "--script=trainer.py"]
    said = _gcloud(environment, "local-run", *package, "--", *FLAGS)
    for image in re.findall(r"using custom image: (\S+)\.\s", said):
        subprocess.run(["docker", "image", "rm", "--force", image], check=True, capture_output=True)


def _local_run_of_image(_: Emulator, environment: dict[str, str], _source: Path) -> None:
    _gcloud(environment, "local-run", f"--executor-image-uri={IMAGE}", "--", *FLAGS)


def _job_of_new_source(emulator: Emulator, environment: dict[str, str], source: Path) -> None:
    _build(source, "--no-cache")
    _job_of_image(emulator, environment, source)


def _job_of_source(emulator: Emulator, environment: dict[str, str], source: Path) -> None:
    """Builds the image with Docker's cache, as this project does, and runs a job of it."""
    _build(source)
    _job_of_image(emulator, environment, source)


def _job_of_image(emulator: Emulator, environment: dict[str, str], _source: Path) -> None:
    pool = f"--worker-pool-spec=machine-type=n1-standard-4,container-image-uri={IMAGE}"
    flags = ["--display-name=benchmark", "--format=value(name)", f"--args={','.join(FLAGS)}"]
    name = _gcloud(environment, "create", pool, *flags).split()[-1]
    while (job := emulator.call("GET", f"v1/{name}"))["state"] not in ENDED:
        time.sleep(POLL_SECONDS)
    if job["state"] != "JOB_STATE_SUCCEEDED":
        raise RuntimeError(f"{name} did not succeed: {job.get('error')}")


def _build(source: Path, *flags: str) -> None:
    subprocess.run(["docker", "build", "--quiet", *flags, "--tag", IMAGE, str(source)], check=True, capture_output=True)


def _gcloud(environment: dict[str, str], *arguments: str) -> str:
    command = ["gcloud", "ai", "custom-jobs", *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def _environment(data: Path) -> dict[str, str]:
    """The environment of a shell that evaluated `vertex-emulator env`."""
    script = 'eval "$("$0" -m vertex_emulator env --data "$1")" && exec env -0'
    done = subprocess.run(["sh", "-c", script, sys.executable, str(data)], check=True, capture_output=True, text=True)
    return os.environ | dict(line.split("=", 1) for line in done.stdout.split("\0") if line)
