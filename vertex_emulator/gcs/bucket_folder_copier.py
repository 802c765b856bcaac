"""Copies all files of a folder in a bucket to another folder, as the emulator itself needs for models."""

import os
import shutil
import tempfile
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from vertex_emulator.errors import ApiError
from vertex_emulator.gcs.gs_uri import parse_gs_uri_parts
from vertex_emulator.gcs.object_name_listing import iterate_object_names
from vertex_emulator.gcs.symlink_safe_bucket_files import BucketFileTree

_BATCH_BYTES = 1 << 20


@dataclass(frozen=True)
class BucketFolderCopier:
    """Copies folders within `tree`; `unfinished` is a folder on the same file system."""

    tree: BucketFileTree
    unfinished: Path

    def copy_folder_and_count_files(self, source_uri: str, destination_uri: str) -> int:
        """Copy the files of one folder to another and return how many. Raises ApiError, InvalidBucketUri, OSError."""
        bucket, *parts = parse_gs_uri_parts(source_uri)
        prefix = "".join(f"{part}/" for part in parts)
        # All names before the first copy, which may be in the same folder.
        names = list(iterate_object_names(self.tree, bucket, prefix))
        for name in names:
            with self.tree.open_regular_file(f"gs://{bucket}/{name}") as file:
                self._copy_file(file, f"{destination_uri.rstrip('/')}/{name.removeprefix(prefix)}")
        return len(names)

    def _copy_file(self, file: FileIO, uri: str) -> None:
        missing = os.fstat(file.fileno()).st_size
        free = shutil.disk_usage(self.unfinished).free
        if missing > free:
            message = f"The disk has {free} bytes left, and {uri} needs {missing}."
            raise ApiError("RESOURCE_EXHAUSTED", message, http=413)
        number, path = tempfile.mkstemp(suffix=".partial", dir=self.unfinished)
        try:
            with os.fdopen(number, "wb") as copy:
                # Not to the end, which a container may move on meanwhile.
                while missing and (data := file.read(min(missing, _BATCH_BYTES))):
                    copy.write(data)
                    missing -= len(data)
            Path(path).chmod(0o666)  # training code runs as any user
            self.tree.move_file_in(Path(path), uri)
        finally:
            Path(path).unlink(missing_ok=True)
