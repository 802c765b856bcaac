"""Cloud Storage and the emulator's bucket folders, as stores of the files that jobs and builds read."""

import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import IO, Any, Protocol

from vertex_api.client_errors import CREDENTIALS_REMEDY

from ..errors import UploadFailed
from . import emulator_process
from .api_target import LOCAL_PREFIX


class ObjectStore(Protocol):
    """A place that has objects by `gs://bucket/object` URI. Methods raise UploadFailed."""

    def has_object(self, uri: str) -> bool:
        """Whether there is an object under this URI."""

    def create_object_if_missing(self, uri: str, content: IO[bytes]) -> None:
        """Create an object of what is read from `content`, unless someone else has created it in the meantime."""


class EmulatorBuckets:
    """The buckets of the emulator: `gs://bucket/object` is the file `gcs/bucket/object` in its data folder.

    Written without Google's client: docs/decisions/0006-packages-are-written-to-bucket-folders.md says why.
    """

    def has_object(self, uri: str) -> bool:
        try:
            with self._open_parent_folder_descriptor(uri, creates_missing=False) as folder:
                status = os.stat(uri.rpartition("/")[2], dir_fd=folder, follow_symlinks=False)
        except OSError:
            return False
        return stat.S_ISREG(status.st_mode)

    def create_object_if_missing(self, uri: str, content: IO[bytes]) -> None:
        if self.has_object(uri):
            return
        temporary = f".{secrets.token_hex(8)}.partial"
        try:
            with self._open_parent_folder_descriptor(uri, creates_missing=True) as folder:
                with open(temporary, "xb", opener=partial(os.open, mode=0o644, dir_fd=folder)) as file:
                    os.fchmod(file.fileno(), 0o644)
                    shutil.copyfileobj(content, file)
                os.replace(temporary, uri.rpartition("/")[2], src_dir_fd=folder, dst_dir_fd=folder)
        except OSError as error:
            path = emulator_process.get_data_folder() / "gcs" / uri.removeprefix("gs://")
            raise UploadFailed(f"{uri} cannot be written to {path}: {error.strerror}") from error

    @contextmanager
    def _open_parent_folder_descriptor(self, object_uri: str, *, creates_missing: bool) -> Iterator[int]:
        """Yield a descriptor of the folder of an object. Raises OSError, also for a link that a container created."""
        buckets = emulator_process.get_data_folder() / "gcs"
        if creates_missing:
            with suppress(FileExistsError):
                buckets.parent.mkdir(mode=0o700, parents=True)
            buckets.mkdir(exist_ok=True)
        folder = os.open(buckets, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for name in object_uri.removeprefix("gs://").split("/")[:-1]:
                is_new = creates_missing and _create_folder_and_return_if_new(name, folder)
                subfolder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
                os.close(folder)
                folder = subfolder
                if is_new:
                    os.fchmod(folder, 0o777)  # containers run as any user
            yield folder
        finally:
            os.close(folder)


class CloudStorage:
    """Cloud Storage with Application Default Credentials; `STORAGE_EMULATOR_HOST` is its address in tests."""

    def has_object(self, uri: str) -> bool:
        with _open_blob_and_translate_errors(uri) as blob:
            return bool(blob.exists())

    def create_object_if_missing(self, uri: str, content: IO[bytes]) -> None:
        from google.api_core.exceptions import PreconditionFailed

        # With its size, which is what decides whether an upload takes several calls.
        size = content.seek(0, os.SEEK_END)
        with _open_blob_and_translate_errors(uri) as blob, suppress(PreconditionFailed):
            blob.upload_from_file(content, True, size, content_type="application/gzip", if_generation_match=0)


def get_object_store(full_location_name: str) -> ObjectStore:
    """Return the store of a target, such as `//local/projects/P/locations/R`."""
    return EmulatorBuckets() if full_location_name.startswith(LOCAL_PREFIX) else CloudStorage()


def _create_folder_and_return_if_new(name: str, parent_descriptor: int) -> bool:
    """Create a folder in an open one, and return whether it was missing. Raises OSError."""
    try:
        os.mkdir(name, dir_fd=parent_descriptor)
    except FileExistsError:
        return False
    return True


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
