"""The digest of many files together, taken once for as long as none of them changes.

A warm preview neither reads files nor what is remembered of each of them: it looks at them, and at one line.
"""

import os
import time
from collections.abc import Callable, Collection
from pathlib import Path

from .cache import cache_file, load, save
from .digests import SMALL_FILES
from .signatures import settled, signatures

_FORMAT = b"whole 1"
"""Part of a line's name, so that none of another release is read."""


def remembered(folder: Path, paths: Collection[str], about: str, digest: Callable[[], str]) -> str:
    """What `digest` answers, as long as these files of a folder and `about`, all it depends on, stay the same.

    It is not remembered where a file changed while it was taken, or so shortly before that the next change might not
    tell. `paths` are relative to the folder; in another order they count as others. Raises OSError.
    """
    if len(paths) <= SMALL_FILES:
        return digest()
    root, begun = f"{folder}/", time.time_ns()
    before = signatures(root, paths)
    names = "\0".join(paths).encode(errors="surrogateescape")
    line = cache_file("contexts", _FORMAT, os.fsencode(folder.resolve()), about.encode(), names, before)
    known = load(line)
    if known is not None:
        return known.decode()
    found = digest()
    if settled(before, begun) and signatures(root, paths) == before:
        save(line, found.encode())
    return found
