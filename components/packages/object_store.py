"""Stores of the files that jobs read: Cloud Storage, or the emulator's bucket folders."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from vertex_api.client_errors import CREDENTIALS_REMEDY

from ..errors import UploadFailed
from ..runtime import emulator_process
from ..runtime.api_target import LOCAL_PREFIX


class ObjectStore(Protocol):
    """A place that has objects by `gs://bucket/object` URI. Methods raise UploadFailed."""

    def has_object(self, uri: str) -> bool:
        """Whether there is an object under this URI."""

    def create_object_if_missing(self, uri: str, content: bytes) -> None:
        """Create an object, unless someone else has created it in the meantime."""


class EmulatorBuckets:
    """The buckets of the emulator: `gs://bucket/object` is the file `gcs/bucket/object` in its data folder.

    Written without Google's client: docs/decisions/0006-packages-are-written-to-bucket-folders.md says why.
    """

    def has_object(self, uri: str) -> bool:
        return self._get_object_file(uri).is_file()

    def create_object_if_missing(self, uri: str, content: bytes) -> None:
        if self.has_object(uri):
            return
        file = self._get_object_file(uri)
        try:
            # Open to every user, because containers run as any user.
            for missing in [folder for folder in reversed(file.parents) if not folder.exists()]:
                missing.mkdir(exist_ok=True)
                missing.chmod(0o777)
            with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as temporary:
                temporary.write(content)
            Path(temporary.name).chmod(0o644)
            Path(temporary.name).replace(file)
        except OSError as error:
            raise UploadFailed(f"{uri} cannot be written to {file}: {error.strerror}") from error

    def _get_object_file(self, uri: str) -> Path:
        return emulator_process.get_data_folder() / "gcs" / uri.removeprefix("gs://")


class CloudStorage:
    """Cloud Storage with Application Default Credentials; `STORAGE_EMULATOR_HOST` is its address in tests."""

    def has_object(self, uri: str) -> bool:
        with _open_blob_and_translate_errors(uri) as blob:
            return bool(blob.exists())

    def create_object_if_missing(self, uri: str, content: bytes) -> None:
        from google.api_core.exceptions import PreconditionFailed

        with _open_blob_and_translate_errors(uri) as blob, suppress(PreconditionFailed):
            blob.upload_from_string(content, "application/gzip", if_generation_match=0)


def get_object_store(full_location_name: str) -> ObjectStore:
    """Return the store of a target, such as `//local/projects/P/locations/R`."""
    return EmulatorBuckets() if full_location_name.startswith(LOCAL_PREFIX) else CloudStorage()


@contextmanager
def _open_blob_and_translate_errors(uri: str) -> Iterator[Any]:
    """Yield the client's handle of an object, and turn errors into an UploadFailed of one line."""
    import requests
    from google.api_core.exceptions import GoogleAPICallError, RetryError
    from google.auth.exceptions import GoogleAuthError
    from google.cloud.storage import Client

    bucket, _, name = uri.removeprefix("gs://").partition("/")
    try:
        # An object belongs to a bucket: the project does not matter, and may be unknown.
        with closing(Client(project=os.environ.get("GOOGLE_CLOUD_PROJECT", "none"))) as client:
            yield client.bucket(bucket).blob(name)
    except GoogleAuthError as error:
        raise UploadFailed(f"{uri}: no valid Google credentials for its bucket: {CREDENTIALS_REMEDY}") from error
    except GoogleAPICallError as error:
        raise UploadFailed(
            f"{uri}: Cloud Storage refuses: {' '.join(error.message.split())[:300]}; your account needs "
            "roles/storage.objectUser on the bucket"
        ) from error
    except (RetryError, requests.RequestException) as error:
        raise UploadFailed(
            f"{uri}: the connection to Cloud Storage was lost; run `pulumi up` again to continue"
        ) from error
