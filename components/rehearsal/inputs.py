"""Inputs of jobs: objects of Cloud Storage, from a folder of this machine that has a folder for each bucket.

It is that of the stack's own emulator, or another, whose objects are copied. Either way a job may write beside them and
overwrite them, and neither folder changes. A pull request may have written them: what a link outside of the folder
leads to is no input.
"""

import os
import re
import shlex
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from vertex_api.job import Job

from ..own import DATA_VARIABLE, emulator_data
from ..trees import copy_file, require_space
from . import overlay
from .runner import RunRefused, named

_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")  # Google's page on bucket names
_PATTERN = re.compile(r"[*?\[{@%].*", re.DOTALL)
"""From where on a name is one of many: wildcards, and a placeholder such as `{shard}` or `@10`."""
_FOLDER = "inputs"
"""The folder of `--inputs` that commands name where none is given."""
_MAX_NAMED = 20
_MAX_LINKED = 100_000
"""Objects below links to folders: a few links to each other would make as many as one likes."""


@dataclass(frozen=True)
class Inputs:
    """What the buckets of a run have at its beginning: what a `folder` has, or what the stack's emulator `holds`.

    `name` is the folder as it is shown to whoever puts objects there.
    """

    name: str
    folder: Path | None = None
    holds: Path | None = None

    @classmethod
    def of(cls, folder: Path | None, is_without: bool) -> "Inputs":
        """Return those of `--inputs` and `--no-inputs`, in the project whose folder is the current one.

        Raises RunRefused for data that a link leads to.
        """
        if folder or is_without:
            return cls(str(folder or _FOLDER), folder)
        data = emulator_data()
        if data.is_symlink() and not os.environ.get(DATA_VARIABLE):
            raise RunRefused(
                f"{data}: is a link, which may lead anywhere; remove it, or name its end by {DATA_VARIABLE}"
            )
        return cls(os.path.relpath(data / "gcs"), None, data / "gcs")

    def put(self, buckets: Path, say: Callable[[str], None]) -> None:
        """Let the buckets of a run, which has not begun, have them. Raises RunRefused."""
        if self.folder:
            put(self.folder, buckets)
        elif self.holds:
            buckets.mkdir(exist_ok=True)
            try:
                overlay.show(self.holds, buckets, say)
            except OSError as error:
                reason = error.strerror or error
                raise RunRefused(f"{error.filename or self.holds}: {reason}; give --no-inputs to do without") from None


def put(folder: Path, buckets: Path) -> None:
    """Copy what a folder has for buckets to them, readable by every container. Raises RunRefused."""
    try:
        for each in sorted(folder.iterdir()):
            if not each.name.startswith(".") and not (each.is_dir() and _BUCKET.fullmatch(each.name)):
                raise RunRefused(
                    f"--inputs: {each} must be a folder with the name of a bucket; gs://BUCKET/x is {folder}/BUCKET/x"
                )
        places = dict(_places(folder, buckets))
        buckets.mkdir(parents=True, exist_ok=True)
        require_space([source for source in places.values() if source], buckets)
        # Modes say who may read: containers run as any user, and may write to a bucket.
        for place, source in places.items():
            if source:
                copy_file(source, folder, place)
            else:
                place.mkdir(parents=True, exist_ok=True)
            place.chmod(0o666 if source else 0o777)
    except OSError as error:
        raise RunRefused(f"--inputs: {error.filename or folder}: {error.strerror or error}") from None


def _places(folder: Path, buckets: Path) -> Iterator[tuple[Path, Path | None]]:
    """Yield each place in buckets with the file that is copied there, None for a folder, which comes before its files.

    Raises RunRefused for what no object can be, and OSError for a link that leads nowhere or in a circle.
    """
    top, linked = os.path.realpath(folder), 0
    pending = [(folder, buckets, False)]
    while pending:
        source, place, is_linked = pending.pop()
        yield place, None
        for each in sorted(source.iterdir()):
            if source == folder and each.name.startswith("."):
                continue
            is_link = each.is_symlink()
            if is_link and not (target := Path(os.path.realpath(each, strict=True))).is_relative_to(top):
                raise RunRefused(f"--inputs: {each}: leads out of {folder} ({target}); put the files there themselves")
            linked += is_linked or is_link
            if linked > _MAX_LINKED:
                raise RunRefused(f"--inputs: {folder}: links lead to more than {_MAX_LINKED:,} objects; remove {each}")
            mode = each.stat().st_mode
            if stat.S_ISDIR(mode):
                pending.append((each, place / each.name, is_linked or is_link))
            elif stat.S_ISREG(mode):
                yield place / each.name, each
            else:
                raise RunRefused(f"--inputs: {each}: is no file; remove it")


def missing(job: Job, written: Iterable[str], buckets: Path) -> list[str]:
    """Return the objects that a job names and that no bucket has, after it ran: what it has written is there.

    What is missing in places that are `written`, by jobs that ran or at Google, is no input.
    """
    outputs = tuple(f"{each.rstrip('/')}/" for each in written)
    found = dict.fromkeys(named(job.job_spec["workerPoolSpecs"]))
    absent = (uri for uri in found if not f"{uri}/".startswith(outputs) and not _exists(uri, buckets))
    return [*absent][:_MAX_NAMED]


def _exists(uri: str, buckets: Path) -> bool:
    """Return whether there is an object, a folder, or an object whose name begins with what precedes a wildcard.

    A bucket is there if it has something: an empty one is made for each that a job names.
    """
    name = uri.removeprefix("gs://")
    start, count = _PATTERN.subn("", name)
    folder, _, beginning = start.rpartition("/")
    try:
        if not folder and not count:
            return any((buckets / name).iterdir())
        if not count:
            return (buckets / name).exists()
        return any(each.name.startswith(beginning) for each in (buckets / folder).iterdir())
    except (OSError, ValueError):  # too long for a file, or no folder
        return False


def not_found(uri: str, folder: str) -> list[str]:
    """Return the lines that say how an object gets to the folder of a run's inputs."""
    return [f"found no {uri}; if it is an input:", f"  {advice(uri, folder)}"]


def advice(uri: str, folder: str) -> str:
    """Return the command that copies an object, or those of a folder or wildcard, to the folder of inputs."""
    bucket, _, name = uri.removeprefix("gs://").partition("/")
    parent = "/".join([folder.rstrip("/") or _FOLDER, bucket, *_PATTERN.sub("", name).split("/")[:-1]])
    source = shlex.quote(uri if name else f"{uri}/*")
    return f"mkdir -p {shlex.quote(parent)} && gcloud storage cp --recursive {source} {shlex.quote(parent + '/')}"
