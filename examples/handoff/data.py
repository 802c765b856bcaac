"""What both programs must agree on: the points, the folder of a URI, and the files of a model."""

import json
import random
import re
import signal
import sys
from pathlib import Path

Point = tuple[float, float, int]
"""Two coordinates, and the class: 0 or 1."""


def points(count: int, seed: int) -> list[Point]:
    """Return points of two overlapping clouds, the same for the same seed."""
    source = random.Random(seed)
    labels = [source.randrange(2) for _ in range(count)]
    return [(source.gauss(2 * label, 1), source.gauss(-label, 1), label) for label in labels]


def folder(location: str) -> Path:
    """Return the folder of a path or of a Cloud Storage URI: Vertex mounts `gs://bucket/x` at `/gcs/bucket/x`."""
    return Path(re.sub("^gs://", "/gcs/", location))


def save(place: Path, name: str, content: dict[str, object]) -> None:
    """Write a file of JSON; the folder is made if it is missing."""
    place.mkdir(parents=True, exist_ok=True)
    (place / name).write_text(json.dumps(content) + "\n")


def stop_at_once() -> None:
    """End at a SIGTERM, which process 1 of a container otherwise ignores."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
