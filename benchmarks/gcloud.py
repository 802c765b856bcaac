"""`gcloud ai custom-jobs local-run` on the digits example, beside the same as a job on the emulator.

The first run builds the image from nothing; then with an edit before each run, as while someone writes a trainer; then
on an image that is there. Docker, the base image, gcloud and a package index are needed.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.emulator import Emulator, data_folder, running
from benchmarks.measure import time_rows

EXAMPLE = Path(__file__).parents[1] / "examples" / "digits"
BASE = "python:3.11-slim-bookworm"
IMAGE = "localhost/benchmark/digits:local-run"
EDITED_RUNS = 2
UNCHANGED_RUNS = 5
FLAGS = ["--epochs=3"]


def rows() -> Iterator[str]:
    """Alternate the two, and render a line for each with the median, and one for the ratio."""
    if shutil.which("gcloud") is None:
        yield "gcloud is not installed: local-run is not measured"
        return
    with data_folder() as data, tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "digits"
        shutil.copytree(EXAMPLE, source)
        try:
            with running(data) as emulator:
                trainer = Trainer(source, emulator, _environment(data))
                for case, run_with_gcloud, run_here, runs in (
                    ("first", trainer.gcloud_edited, trainer.emulator_uncached, 1),
                    ("edited", trainer.gcloud_edited, trainer.emulator_edited, EDITED_RUNS),
                    ("unedited", trainer.gcloud_image, trainer.emulator_image, UNCHANGED_RUNS),
                ):
                    yield from time_rows(case, "gcloud local-run", run_with_gcloud, run_here, runs)
        finally:
            subprocess.run(["docker", "image", "rm", "--force", IMAGE], check=False, capture_output=True)


@dataclass(frozen=True)
class Trainer:
    """The example's source, the emulator that runs it, and the environment in which gcloud finds that emulator."""

    source: Path
    emulator: Emulator
    environment: Mapping[str, str]

    def gcloud_edited(self) -> None:
        """Build an image without a cache, as local-run always does, and run it."""
        self._edit()
        package = [f"--executor-image-uri={BASE}", f"--local-package-path={self.source}", "--script=trainer.py"]
        output = self._gcloud("local-run", *package, "--", *FLAGS)
        for image in re.findall(r"using custom image: (\S+)\.\s", output):
            subprocess.run(["docker", "image", "rm", "--force", image], check=True, capture_output=True)

    def gcloud_image(self) -> None:
        self._gcloud("local-run", f"--executor-image-uri={IMAGE}", "--", *FLAGS)

    def emulator_uncached(self) -> None:
        self._build("--no-cache")
        self.emulator_image()

    def emulator_edited(self) -> None:
        """Build the image with Docker's cache, as this project does, and run a job with it."""
        self._build()
        self.emulator_image()

    def emulator_image(self) -> None:
        pool = f"--worker-pool-spec=machine-type=n1-standard-4,container-image-uri={IMAGE}"
        flags = ["--display-name=benchmark", "--format=value(name)", f"--args={','.join(FLAGS)}"]
        self.emulator.wait(self._gcloud("create", pool, *flags).split()[-1])

    def _build(self, *flags: str) -> None:
        self._edit()
        command = ["docker", "build", "--quiet", *flags, "--tag", IMAGE, str(self.source)]
        subprocess.run(command, check=True, capture_output=True)

    def _edit(self) -> None:
        with (self.source / "trainer.py").open("a") as file:
            file.write("# an edit\n")

    def _gcloud(self, *arguments: str) -> str:
        command = ["gcloud", "ai", "custom-jobs", *arguments]
        return subprocess.run(command, env=self.environment, check=True, capture_output=True, text=True).stdout


def _environment(data: Path) -> dict[str, str]:
    """Return the environment of a shell that evaluated `vertex-emulator env`."""
    script = 'eval "$("$0" -m vertex_emulator env --data "$1")" && exec env -0'
    done = subprocess.run(["sh", "-c", script, sys.executable, str(data)], check=True, capture_output=True, text=True)
    return os.environ | dict(line.split("=", 1) for line in done.stdout.split("\0") if line)
