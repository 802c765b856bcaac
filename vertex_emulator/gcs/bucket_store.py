"""Buckets as folders."""

import os
import stat
from dataclasses import dataclass
from itertools import islice

from vertex_emulator.errors import ApiError, InvalidBucketUri
from vertex_emulator.gcs.gs_uri import build_object_uri, translate_invalid_uri_errors
from vertex_emulator.gcs.object_metadata_database import ObjectMetadataDatabase
from vertex_emulator.gcs.symlink_safe_bucket_files import ROOT, BucketFileTree

_BATCH = 10_000


@dataclass(frozen=True)
class BucketStore:
    """The buckets in `tree`, and the `metadata` of their objects."""

    tree: BucketFileTree
    metadata: ObjectMetadataDatabase

    def list_bucket_names(self) -> list[str]:
        """Return the names of all buckets in order."""
        with self.tree.open_folder_scan(ROOT) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        return sorted(name for name in names if self.find_bucket_folder_stat(name) is not None)

    def find_bucket_folder_stat(self, bucket: str) -> os.stat_result | None:
        """Return the status of a bucket's folder; None if there is none, also for an invalid name."""
        try:
            folder_stat = self.tree.find_file_or_folder_stat(build_object_uri(bucket, ""))
        except InvalidBucketUri:
            return None
        return folder_stat if folder_stat is not None and stat.S_ISDIR(folder_stat.st_mode) else None

    def require_bucket_folder_stat(self, bucket: str) -> os.stat_result:
        """Return the status of a bucket's folder. Raises ApiError NOT_FOUND, or INVALID_ARGUMENT for its name."""
        self.validate_object_name(bucket, "")
        folder_stat = self.find_bucket_folder_stat(bucket)
        if folder_stat is None:
            raise ApiError("NOT_FOUND", f"The specified bucket does not exist: {bucket}.")
        return folder_stat

    def create_new_bucket(self, bucket: str) -> None:
        """Create a bucket. Raises ApiError if it exists or its name is invalid."""
        self.validate_object_name(bucket, "")
        if self.find_bucket_folder_stat(bucket) is not None:
            raise ApiError("ALREADY_EXISTS", f"A bucket named {bucket} already exists on this emulator.", http=409)
        with translate_invalid_uri_errors():
            self.tree.make_writable_folder(build_object_uri(bucket, ""))

    def delete_bucket(self, bucket: str) -> None:
        """Delete a bucket without objects, with the folders in it. Raises ApiError."""
        self.require_bucket_folder_stat(bucket)
        try:
            self._remove_folders_or_raise_at_file(build_object_uri(bucket, "").rstrip("/"))
        except (OSError, InvalidBucketUri) as error:
            message = f"The bucket you tried to delete is not empty: {bucket}."
            raise ApiError("FAILED_PRECONDITION", message, http=409) from error
        self.metadata.delete_bucket(bucket)

    def validate_object_name(self, bucket: str, object_name: str) -> None:
        """Raise ApiError for a name that no object can have: an invalid one, or one that leads through a link.

        With an empty name, only the bucket's name is checked.
        """
        with translate_invalid_uri_errors():
            self.tree.raise_unless_uri_is_storable(build_object_uri(bucket, object_name))

    def _remove_folders_or_raise_at_file(self, uri: str) -> None:
        """Remove a folder and all folders in it. Raises OSError at the first file, and InvalidBucketUri."""
        while True:
            with self.tree.open_folder_scan(uri) as entries:
                names = [entry.name for entry in islice(entries, _BATCH)]
            for name in names:
                self._remove_folders_or_raise_at_file(f"{uri}/{name}")
            if len(names) < _BATCH:
                break
        self.tree.remove_empty_folder(uri)
