"""Secret Manager's `versions:access`: values from a file of the data folder."""

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vertex_emulator import names
from vertex_emulator.errors import ApiError

_ONLY_VERSION = "1"
_LATEST = "latest"


@dataclass(frozen=True)
class SecretValues:
    """The secrets in a file that only its owner may read: `{PROJECT: {SECRET: VALUE}}`, which a stack writes.

    Every secret has one version, 1, which is also `latest`. The file is read for each request, so an edit needs no
    restart.
    """

    file: Path

    def exist_for(self, project_number: str) -> bool:
        """Return whether a project has secrets."""
        return bool(self._read(project_number))

    def access(self, project: str, secret: str, version: str) -> dict[str, Any]:
        """Return a version's payload by the id or number of its project. Raises ApiError NOT_FOUND."""
        number = names.project_number(project)
        name = f"projects/{number}/secrets/{secret}"
        value = self._read(number).get(secret)
        # The service's own words.
        if value is None:
            raise ApiError("NOT_FOUND", f"Secret [{name}] not found or has no versions.")
        if version not in (_LATEST, _ONLY_VERSION):
            raise ApiError("NOT_FOUND", f"Secret Version [{name}/versions/{version}] not found.")
        from google_crc32c import value as crc32c

        data = value.encode()
        payload = {"data": base64.b64encode(data).decode(), "dataCrc32c": str(crc32c(data))}
        return {"name": f"{name}/versions/{_ONLY_VERSION}", "payload": payload}

    def _read(self, project_number: str) -> dict[str, str]:
        return {name: value for values in names.values_of(self.file, project_number) for name, value in values.items()}
