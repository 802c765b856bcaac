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

from benchmarks.emulator import ENDED, POLL_SECONDS, Emulator, create_data_folder, run_emulator

EXAMPLE = Path(__file__).parents[1] / "examples" / "digits"
BASE = "python:3.11-slim-bookworm"
IMAGE = "localhost/benchmark/digits:local-run"
EDITED_RUNS = 2
UNCHANGED_RUNS = 5
FLAGS = ["--epochs=3"]


def run_benchmark() -> Iterator[str]:
    """Alternate the two, and render a line for each with the median and the ratio."""
    if shutil.which("gcloud") is None:
        yield "gcloud is not installed: local-run is not measured"
        return
    with create_data_folder() as data, tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "digits"
        shutil.copytree(EXAMPLE, source)
        try:
            with run_emulator(data) as emulator:
                environment = _read_environment(data)
                for name, theirs, ours, runs in (
                    ("first:", _local_run_source, _submit_new_source, 1),
                    ("edited:", _local_run_source, _submit_source, EDITED_RUNS),
                    ("unedited:", _run_image_with_gcloud, _submit_image, UNCHANGED_RUNS),
                ):
                    yield from _compare_runs(name, (theirs, ours), runs, emulator, environment, source)
        finally:
            subprocess.run(["docker", "image", "rm", "--force", IMAGE], check=False, capture_output=True)


Measured = Callable[[Emulator, dict[str, str], Path], None]


def _compare_runs(
    name: str, sides: tuple[Measured, Measured], runs: int, emulator: Emulator, variables: dict[str, str], source: Path
) -> Iterator[str]:
    times: list[list[float]] = [[] for _ in sides]
    for number in range(runs):
        for run, seconds in zip(sides, times, strict=True):
            with (source / "trainer.py").open("a") as file:
                file.write(f"# edit {number}\n")
            begin = time.perf_counter()
            run(emulator, variables, source)
            seconds.append(time.perf_counter() - begin)
    theirs, ours = map(statistics.median, times)
    yield f"{name:9} gcloud local-run {theirs:6.2f} s   (median of {runs}, alternating)"
    yield f"{name:9} a job here       {ours:6.2f} s   ratio {ours / theirs:.2f}"


def _local_run_source(_: Emulator, environment: dict[str, str], source: Path) -> None:
    """Build an image without a cache, as local-run always does, and run it."""
    package = [f"--executor-image-uri={BASE}", f"--local-package-path={source}", "--script=trainer.py"]
    output = _run_gcloud(environment, "local-run", *package, "--", *FLAGS)
    for image in re.findall(r"using custom image: (\S+)\.\s", output):
        subprocess.run(["docker", "image", "rm", "--force", image], check=True, capture_output=True)


def _run_image_with_gcloud(_: Emulator, environment: dict[str, str], _source: Path) -> None:
    _run_gcloud(environment, "local-run", f"--executor-image-uri={IMAGE}", "--", *FLAGS)


def _submit_new_source(emulator: Emulator, environment: dict[str, str], source: Path) -> None:
    _build_image(source, "--no-cache")
    _submit_image(emulator, environment, source)


def _submit_source(emulator: Emulator, environment: dict[str, str], source: Path) -> None:
    """Build the image with Docker's cache, as this project does, and run a job with it."""
    _build_image(source)
    _submit_image(emulator, environment, source)


def _submit_image(emulator: Emulator, environment: dict[str, str], _source: Path) -> None:
    pool = f"--worker-pool-spec=machine-type=n1-standard-4,container-image-uri={IMAGE}"
    flags = ["--display-name=benchmark", "--format=value(name)", f"--args={','.join(FLAGS)}"]
    name = _run_gcloud(environment, "create", pool, *flags).split()[-1]
    while (job := emulator.call("GET", f"v1/{name}"))["state"] not in ENDED:
        time.sleep(POLL_SECONDS)
    if job["state"] != "JOB_STATE_SUCCEEDED":
        raise RuntimeError(f"{name} did not succeed: {job.get('error')}")


def _build_image(source: Path, *flags: str) -> None:
    subprocess.run(["docker", "build", "--quiet", *flags, "--tag", IMAGE, str(source)], check=True, capture_output=True)


def _run_gcloud(environment: dict[str, str], *arguments: str) -> str:
    command = ["gcloud", "ai", "custom-jobs", *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def _read_environment(data: Path) -> dict[str, str]:
    """Return the environment of a shell that evaluated `vertex-emulator env`."""
    script = 'eval "$("$0" -m vertex_emulator env --data "$1")" && exec env -0'
    done = subprocess.run(["sh", "-c", script, sys.executable, str(data)], check=True, capture_output=True, text=True)
    return os.environ | dict(line.split("=", 1) for line in done.stdout.split("\0") if line)
