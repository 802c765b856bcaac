"""A pythonPackageSpec as the container that it means."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from vertex_emulator.errors import InvalidBucketUri, ReplicaCannotStart
from vertex_emulator.gcs import buckets
from vertex_emulator.replicas.expansion import escape_references

# Not every image calls its Python python3; the text of the program is $0.
_LAUNCH = 'exec `command -v python3 || command -v python || echo python3` -c "$0" "$@"'


def build_container_spec(package: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """The ContainerSpec that installs `packageUris` into the executor image and runs `pythonModule`.

    `root` is the folder of the buckets. Raises ReplicaCannotStart, naming the URI, when a package is not in its bucket:
    on Vertex AI too a job is taken first and fails then, so that packages may follow while it waits in the queue.
    """
    uris = package["packageUris"]
    for uri in uris:
        _check(uri, root)
    container = {
        "imageUri": package["executorImageUri"],
        "command": ["/bin/sh", "-c", _LAUNCH, escape_references(_runner())],
        "args": [
            escape_references(json.dumps(uris)),
            escape_references(package["pythonModule"]),
            *package.get("args", []),
        ],
    }
    return container | ({"env": package["env"]} if "env" in package else {})


def _check(uri: str, root: Path) -> None:
    try:
        path = buckets.resolve_folder(root, uri)
    except InvalidBucketUri as error:
        raise ReplicaCannotStart(f"the package {uri} cannot be read: {error}") from error
    if not path.is_file():
        raise ReplicaCannotStart(f"the package {uri} does not exist; put the file at {path}")


@cache
def _runner() -> str:
    return Path(__file__).with_name("package_runner.py").read_text()
