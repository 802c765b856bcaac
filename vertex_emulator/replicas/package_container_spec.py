"""The conversion of a pythonPackageSpec to a containerSpec."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from vertex_emulator.errors import InvalidBucketUri, ReplicaCannotStart
from vertex_emulator.gcs import bucket_folders
from vertex_emulator.replicas.variable_expansion import escape_references

# Not every image has its Python as python3; $0 is the source of the program.
_LAUNCH = 'exec `command -v python3 || command -v python || echo python3` -c "$0" "$@"'


def build_container_spec(package_spec: Mapping[str, Any], buckets_folder: Path) -> dict[str, Any]:
    """Build the ContainerSpec that installs `packageUris` into the executor image and runs `pythonModule`.

    Raises ReplicaCannotStart, naming the URI, when a package is not in its bucket:
    as on Vertex AI, the job is accepted and fails when it runs, so packages may be uploaded while it is queued.
    """
    uris = package_spec["packageUris"]
    for uri in uris:
        _require_package_file(uri, buckets_folder)
    container = {
        "imageUri": package_spec["executorImageUri"],
        "command": ["/bin/sh", "-c", _LAUNCH, escape_references(_read_runner_source())],
        "args": [
            escape_references(json.dumps(uris)),
            escape_references(package_spec["pythonModule"]),
            *package_spec.get("args", []),
        ],
    }
    return container | ({"env": package_spec["env"]} if "env" in package_spec else {})


def _require_package_file(uri: str, buckets_folder: Path) -> None:
    try:
        path = bucket_folders.resolve_gs_uri(buckets_folder, uri)
    except InvalidBucketUri as error:
        raise ReplicaCannotStart(f"the package {uri} cannot be read: {error}") from error
    if not path.is_file():
        raise ReplicaCannotStart(f"the package {uri} does not exist; put the file at {path}")


@cache
def _read_runner_source() -> str:
    return Path(__file__).with_name("package_runner.py").read_text()
