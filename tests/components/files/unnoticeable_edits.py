"""Edits of a file that its size and its time do not show."""

import os
from pathlib import Path


def same_size_and_time(file: Path) -> None:
    before = file.stat()
    file.write_text(file.read_text().replace("held", "HELD"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def another_inode(file: Path) -> None:
    other = file.with_name("other")
    other.write_text(file.read_text().replace("held", "HELD"))
    os.utime(other, ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns))
    other.replace(file)
