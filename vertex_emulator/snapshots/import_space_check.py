"""Whether an archive fits the disk: its bytes, and its files, folders and links, each of which takes an inode."""

import os
from itertools import takewhile
from pathlib import Path

from vertex_emulator.errors import EmulatorError
from vertex_emulator.snapshots.archive_format import Manifest


class FreeSpaceCheck:
    """Compares what an archive needs with what the disk of a folder has left at the beginning."""

    def __init__(self, folder: Path, archive_name: str) -> None:
        status = os.statvfs(folder)
        self._folder, self._archive_name = folder, archive_name
        self._free_bytes = status.f_bavail * status.f_frsize
        self._free_inodes = status.f_favail if status.f_files else None  # btrfs has no fixed number of them
        self._needed_inodes = 0
        self._last_parts: list[str] = []

    def raise_unless_totals_fit(self, manifest: Manifest) -> None:
        """Raise EmulatorError if the bytes or the members that a manifest says do not fit."""
        if manifest.size > self._free_bytes:
            raise EmulatorError(
                f"{self._archive_name} needs {manifest.size} bytes, and {self._folder} has {self._free_bytes} left"
            )
        self._raise_unless_inodes_fit(manifest.files)

    def add_member_inodes_or_raise(self, member_name: str) -> None:
        """Count a member, and the folders on its path that the member before has not. Raises EmulatorError.

        A folder may have no member of its own, and so be missing in the manifest's number. An export writes all of a
        folder without interruption, so that each of its folders counts once.
        """
        parts = member_name.rstrip("/").split("/")
        shared = takewhile(lambda pair: pair[0] == pair[1], zip(parts, self._last_parts, strict=False))
        self._needed_inodes += len(parts) - sum(1 for _ in shared)
        self._last_parts = parts
        self._raise_unless_inodes_fit(self._needed_inodes)

    def _raise_unless_inodes_fit(self, needed: int) -> None:
        if self._free_inodes is not None and needed > self._free_inodes:
            raise EmulatorError(
                f"{self._archive_name} needs {needed} inodes or more (files, folders and links), and the disk of "
                f"{self._folder} has {self._free_inodes} left"
            )
