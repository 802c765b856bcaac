"""Event files below a folder, and the run that each belongs to."""

import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from vertex_emulator.errors import InvalidBucketUri
from vertex_emulator.gcs.files import BucketTree, is_utf8

MAX_FOLDERS = 200  # of one log folder, so that a job that creates them without end does not occupy the emulator
MAX_ENTRIES = 20_000  # of one log folder, files and folders of any name
MAX_FILES = 1000  # of one log folder
_NAME_PART = "tfevents"  # as TensorBoard finds them


@dataclass(frozen=True)
class EventFile:
    """An event file: `run` is its folder's path below the log folder, empty for files that lie in that itself."""

    run: str
    uri: str


def list_event_files(tree: BucketTree, folder_uri: str) -> list[EventFile]:
    """Return the event files of a log folder, in the order in which a run has written them. Links are not followed.

    A folder that is missing or cannot be read has none.
    """
    return [*islice(_iterate_event_files(tree, folder_uri), MAX_FILES)]


def _iterate_event_files(tree: BucketTree, folder_uri: str) -> Iterator[EventFile]:
    base = folder_uri.rstrip("/")
    pending = deque([""])
    entries_left = MAX_ENTRIES
    for _ in range(MAX_FOLDERS):
        if not pending:
            return
        run = pending.popleft()
        folder = f"{base}/{run}" if run else base
        names, subfolders, entry_count = _list_file_and_folder_names(tree, folder, entries_left)
        entries_left -= entry_count
        # The names hold the time at which a file was begun.
        yield from (EventFile(run, f"{folder}/{name}") for name in sorted(names) if _NAME_PART in name)
        pending.extend(f"{run}/{name}" if run else name for name in sorted(subfolders))


def _list_file_and_folder_names(tree: BucketTree, uri: str, max_entries: int) -> tuple[list[str], list[str], int]:
    """Return the names of the files and of the folders in a folder, and how many entries were read.

    There are none if it cannot be read.
    """
    entry_count = 0
    file_names: list[str] = []
    folder_names: list[str] = []
    try:
        with tree.scan(uri) as entries:
            for entry in islice(entries, max_entries):
                entry_count += 1
                _append_file_or_folder_name(entry, file_names, folder_names)
    except (OSError, InvalidBucketUri):
        return [], [], entry_count
    return file_names, folder_names, entry_count


def _append_file_or_folder_name(entry: os.DirEntry[str], file_names: list[str], folder_names: list[str]) -> None:
    if not is_utf8(entry.name):
        return
    if entry.is_dir(follow_symlinks=False):
        folder_names.append(entry.name)
    elif entry.is_file(follow_symlinks=False):
        file_names.append(entry.name)
