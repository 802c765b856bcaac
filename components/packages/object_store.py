"""Where files are kept for jobs: Cloud Storage, or the emulator's bucket folders."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from ..errors import UploadFailed
from ..runtime import emulator_process
from ..runtime.target import LOCAL


class ObjectStore(Protocol):
    """What keeps objects under `gs://bucket/object` URIs. Methods raise UploadFailed."""

    def has(self, uri: str) -> bool:
        """Whether there is an object."""

    def put(self, uri: str, content: bytes) -> None:
        """Keeps an object that is not there yet; one that someone else has put meanwhile stays."""


class EmulatorBuckets:
    """The buckets of the emulator: `gs://bucket/object` is the file `gcs/bucket/object` in its folder."""

    def has(self, uri: str) -> bool:
        return self._file(uri).is_file()

    def put(self, uri: str, content: bytes) -> None:
        file = self._file(uri)
        try:
            # Open to every user, because containers run as any user.
            for missing in [each for each in reversed(file.parents) if not each.exists()]:
                missing.mkdir(exist_ok=True)
                missing.chmod(0o777)
            with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as part:
                part.write(content)
            Path(part.name).chmod(0o644)
            Path(part.name).replace(file)
        except OSError as error:
            raise UploadFailed(f"{uri} cannot be written to {file}: {error.strerror}") from error

    def _file(self, uri: str) -> Path:
        return emulator_process.data_folder() / "gcs" / uri.removeprefix("gs://")


class CloudStorage:
    """Cloud Storage with Application Default Credentials; `STORAGE_EMULATOR_HOST` sends it elsewhere."""

    def has(self, uri: str) -> bool:
        with _client(uri) as client:
            return bool(_blob(client, uri).exists())

    def put(self, uri: str, content: bytes) -> None:
        from google.api_core.exceptions import PreconditionFailed

        with _client(uri) as client:
            try:
                _blob(client, uri).upload_from_string(content, "application/gzip", if_generation_match=0)
            except PreconditionFailed:
                return


def store_of(parent: str) -> ObjectStore:
    """The store of a target, which `parent` names as in `components.runtime.target.connect`."""
    return EmulatorBuckets() if parent.startswith(LOCAL) else CloudStorage()


def _blob(client: Any, uri: str) -> Any:
    bucket, _, name = uri.removeprefix("gs://").partition("/")
    return client.bucket(bucket).blob(name)


@contextmanager
def _client(uri: str) -> Iterator[Any]:
    """A client for what is done with a URI, with failures as one line."""
    import requests
    from google.api_core.exceptions import GoogleAPICallError, RetryError
    from google.auth.exceptions import GoogleAuthError
    from google.cloud.storage import Client

    try:
        # Objects are reached by their bucket: the project plays no part, and need not be known.
        client = Client(project=os.environ.get("GOOGLE_CLOUD_PROJECT", "none"))
        try:
            yield client
        finally:
            client.close()
    except GoogleAuthError as error:
        raise UploadFailed(
            f"{uri}: no valid Google credentials to reach its bucket with; run `gcloud auth application-default "
            "login`, or set GOOGLE_APPLICATION_CREDENTIALS"
        ) from error
    except GoogleAPICallError as error:
        raise UploadFailed(
            f"{uri}: Cloud Storage refuses: {' '.join(error.message.split())[:300]}; your account needs "
            "roles/storage.objectUser on the bucket"
        ) from error
    except (RetryError, requests.RequestException) as error:
        raise UploadFailed(
            f"{uri}: the connection to Cloud Storage was lost; run `pulumi up` again to go on"
        ) from error
