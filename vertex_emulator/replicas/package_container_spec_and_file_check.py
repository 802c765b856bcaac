"""The conversion of a pythonPackageSpec to a containerSpec, and the check that its packages exist."""

import json
import stat
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from vertex_emulator.errors import InvalidBucketUri, ReplicaCannotStart
from vertex_emulator.gcs.bucket_file_operations_without_links import BucketFileTree
from vertex_emulator.replicas.variable_expansion import escape_references

# Not every image has its Python as python3; $0 is the source of the program.
_LAUNCH = 'exec `command -v python3 || command -v python || echo python3` -c "$0" "$@"'


def build_container_spec(package_spec: Mapping[str, Any]) -> dict[str, Any]:
    """Build the ContainerSpec that installs `packageUris` into the executor image and runs `pythonModule`."""
    container = {
        "imageUri": package_spec["executorImageUri"],
        "command": ["/bin/sh", "-c", _LAUNCH, escape_references(_read_runner_source())],
        "args": [
            escape_references(json.dumps(package_spec["packageUris"])),
            escape_references(package_spec["pythonModule"]),
            *package_spec.get("args", []),
        ],
    }
    return container | ({"env": package_spec["env"]} if "env" in package_spec else {})


def raise_unless_package_files_exist(package_spec: Mapping[str, Any], buckets_folder: Path) -> None:
    """Raise ReplicaCannotStart, naming the URI, when a package is not in its bucket.

    As on Vertex AI, the job is accepted and fails when it runs, so packages may be uploaded while it is queued.
    """
    tree = BucketFileTree(buckets_folder)
    for uri in package_spec["packageUris"]:
        try:
            status = tree.find_file_or_folder_stat(uri)
        except (InvalidBucketUri, PermissionError) as error:
            raise ReplicaCannotStart(f"the package {uri} cannot be read: {error}") from error
        if status is None or not stat.S_ISREG(status.st_mode):
            message = f"the package {uri} does not exist; put the file at {tree.build_local_path(uri)}"
            raise ReplicaCannotStart(message)


@cache
def _read_runner_source() -> str:
    return Path(__file__).with_name("package_runner.py").read_text()
