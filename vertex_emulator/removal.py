"""The removal of folders to which containers have written."""

import errno
import os
from dataclasses import dataclass, field
from pathlib import Path


def remove_tree(folder: Path) -> None:
    """Remove a folder with all that can be removed in it, without following links. Raises OSError if anything stays.

    Containers can nest folders deeper than `shutil.rmtree` recurses, and deeper than a path can be long.
    """
    removal = _Removal(folder)
    removal.run()
    if removal.first_error is not None:
        raise removal.first_error


@dataclass
class _Opened:
    identity: tuple[int, int]
    subfolders: list[str] = field(default_factory=list)  # those that are not removed yet


class _Removal:
    """One descriptor that moves down into each folder and up again, and removes what it leaves."""

    def __init__(self, folder: Path) -> None:
        self.first_error: OSError | None = None
        self._parent = folder.parent
        self._descriptor = os.open(folder.parent, os.O_RDONLY | os.O_DIRECTORY)
        self._opened = [_Opened(self._identity(), [folder.name])]

    def run(self) -> None:
        try:
            while self._opened[0].subfolders:
                if self._opened[-1].subfolders:
                    self._enter()
                else:
                    self._leave()
        finally:
            os.close(self._descriptor)

    def _enter(self) -> None:
        subfolders = self._opened[-1].subfolders
        try:
            self._move(subfolders[-1])
        except OSError as error:
            self._record(error, subfolders.pop())
            return
        self._opened.append(_Opened(self._identity()))
        with os.scandir(self._descriptor) as scan:
            entries = list(scan)
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    self._opened[-1].subfolders.append(entry.name)
                else:
                    os.unlink(entry.name, dir_fd=self._descriptor)
            except OSError as error:
                self._record(error, entry.name)

    def _leave(self) -> None:
        self._move("..")
        self._opened.pop()
        name = self._opened[-1].subfolders.pop()
        if self._identity() != self._opened[-1].identity:
            raise OSError(errno.ESTALE, "it was moved while it was being removed", str(self._path(name)))
        try:
            os.rmdir(name, dir_fd=self._descriptor)
        except OSError as error:
            self._record(error, name)

    def _move(self, name: str) -> None:
        moved = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=self._descriptor)
        os.close(self._descriptor)
        self._descriptor = moved

    def _identity(self) -> tuple[int, int]:
        status = os.fstat(self._descriptor)
        return status.st_dev, status.st_ino

    def _path(self, name: str) -> Path:
        return self._parent.joinpath(*(opened.subfolders[-1] for opened in self._opened[:-1]), name)

    def _record(self, error: OSError, name: str) -> None:
        if self.first_error is None:
            error.filename = str(self._path(name))
            self.first_error = error
