"""The values of secrets, as Secret Manager answers them. Every secret has one version, 1, which is also `latest`."""

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vertex_emulator.errors import ApiError
from vertex_emulator.names import project_number

_ONLY_VERSION = "1"
_LATEST = "latest"


@dataclass(frozen=True)
class SecretValues:
    """The secrets in a file that only its owner may read: `{PROJECT: {SECRET: VALUE}}`, which a stack writes.

    It is read for each request, so an edit needs no restart.
    """

    file: Path

    def has_secrets(self, number: str) -> bool:
        """Return whether a project has secrets, by its number."""
        return bool(self._read_secrets_of_project(number))

    def access_secret_version(self, project: str, secret: str, version: str) -> dict[str, Any]:
        """Return a version's payload by the id or number of its project. Raises ApiError NOT_FOUND."""
        number = project_number(project)
        name = f"projects/{number}/secrets/{secret}"
        value = self._read_secrets_of_project(number).get(secret)
        # The service's own words.
        if value is None:
            raise ApiError("NOT_FOUND", f"Secret [{name}] not found or has no versions.")
        if version not in (_LATEST, _ONLY_VERSION):
            raise ApiError("NOT_FOUND", f"Secret Version [{name}/versions/{version}] not found.")
        return {"name": f"{name}/versions/{_ONLY_VERSION}", "payload": _build_payload_with_checksum(value.encode())}

    def _read_secrets_of_project(self, number: str) -> dict[str, str]:
        try:
            projects = json.loads(self.file.read_text())
        except FileNotFoundError:
            return {}
        return {
            secret: value
            for project, values in projects.items()
            if project_number(project) == number
            for secret, value in values.items()
        }


def _build_payload_with_checksum(value: bytes) -> dict[str, str]:
    from google_crc32c import value as compute_crc32c

    return {"data": base64.b64encode(value).decode(), "dataCrc32c": str(compute_crc32c(value))}
