"""The metrics of a job that has ended: which numbers count, and how the file that a trainer writes is read.

A trial's metrics are those that it reports to its study. Any other run's are in the first `FILE` that there is under
one of its `uris`.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.jobspec import model_folder, output_folder

FILE = "metrics.json"
MAX_BYTES = 64 << 10
MAX_METRICS = 100
MAX_NAME = 128
"""Characters of a metric's name."""
_MAX_NUMBER = 1e300  # also false of NaN and infinity, which Pulumi's state cannot hold


def uris(job_spec: Mapping[str, Any]) -> list[str]:
    """Return where the file of a run may be, the first that counts first: in the model folder, and above it."""
    folders = (model_folder(job_spec), output_folder(job_spec))
    return [f"{folder.rstrip('/')}/{FILE}" for folder in folders if folder]


def parse(content: bytes) -> dict[str, float]:
    """Return the numbers of a file by name, those of nested objects as `train.loss`; at most `MAX_METRICS`.

    This is the form that DVC and CML read. Whatever is no finite number is left out. Raises ValueError, which says
    what is wrong, for a file that is too long or no JSON object.
    """
    if len(content) > MAX_BYTES:
        raise ValueError(f"it has more than {MAX_BYTES >> 10} KiB")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError("it is not JSON") from error
    if not isinstance(document, dict):
        raise ValueError("it is not an object of names and numbers")
    found: dict[str, float] = {}
    for name, value in _numbers(document, ""):
        if len(found) == MAX_METRICS:
            break
        found[name] = value
    return found


def _numbers(fields: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, float]]:
    for key, value in fields.items():
        name = f"{prefix}{key}"
        if len(name) > MAX_NAME or not name.isprintable():
            continue
        if isinstance(value, dict):
            yield from _numbers(value, f"{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MAX_NUMBER:
            yield name, value
