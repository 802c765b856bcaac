"""The containerSpec that runs a pythonPackageSpec: it installs the packages and runs their module."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from vertex_emulator.replicas.size_limited_variable_expansion import escape_references

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


@cache
def _read_runner_source() -> str:
    return Path(__file__).with_name("package_runner.py").read_text()
