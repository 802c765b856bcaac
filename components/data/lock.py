"""The lock of data: what the data of each stack was when it was locked, in `data.lock` beside `Pulumi.yaml`.

The file has lines of JSON, so that a diff shows which objects differ: for each stack and item of data a heading, and
below it a line for each object, or for each folder if there are too many objects:

    {"stack": "dev", "data": "train", "uri": "gs://acme/train/*", "objects": 2, "bytes": 52, "digest": "0f6c…"}
    {"name": "part-0.csv", "size": 26, "crc32c": "bCu1Bw==", "md5": "…", "generation": "1788…"}

The digest is that of names and contents alone: an object that is written again with the same content has another
generation and the same digest. It is a sum, so it is known after one pass over any number of objects in any order.
"""

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from vertex_api.messages import KeyPath

from .. import trees
from ..errors import DataLockUnusable, Problem
from ..files import MAX_LISTED_FILES
from ..own import LOCK
from ..schema.source import checkout

FILE = LOCK
MAX_OBJECTS = 2000
"""Of an item of data: with more, the lock has folders, of which it has no more than this either."""
_VERSION = 1
_VERSION_KEY = "dataLock"
_HEADING = b'{"stack"'
_CONTENT = ("sha256", "md5", "crc32c", "modified")
"""What tells contents apart, the first that there is. Composite objects have no MD5; all of a bucket have a CRC32C."""
_BITS = 128
_SHORT = 10
"""Digits of each object's digest among a job's inputs, as of each file's of an image."""
Noun = Literal["objects", "files", "rows"]
NOUNS: tuple[Noun, ...] = ("objects", "files", "rows")
"""What an item of data consists of: of a bucket, of a folder of the project, of a BigQuery table."""


@dataclass(frozen=True)
class Data:
    """Data that a stack declares: its `uri`, what a difference from the lock means (`verify`), and former names."""

    name: str
    uri: str
    verify: Literal["error", "warn", "off"]
    place: Callable[[KeyPath, str], Problem] = field(compare=False)
    formerly: tuple[str, ...] = ()
    is_granted: bool = False
    """Whether the stack lets its jobs' account read it."""

    @property
    def fields(self) -> dict[str, Any]:
        """What its declaration says, without what it need not say and its grant."""
        verify = {} if self.verify == "error" else {"verify": self.verify}
        return {"uri": self.uri, **verify, **({"formerly": [*self.formerly]} if self.formerly else {})}


@dataclass(frozen=True)
class Part:
    """An object, or all objects of a folder together; `fields` are those of its line, without names and sizes."""

    name: str
    size: int
    fields: Mapping[str, str]
    count: int | None = None
    """Of the objects of a folder."""

    @property
    def value(self) -> int:
        """What it adds to a digest: it differs whenever its name, its size or its content does."""
        if self.count is not None:
            return int(self.fields["digest"], 16)
        content = next(self.fields[key] for key in _CONTENT if key in self.fields)
        hashed = hashlib.sha256(json.dumps([self.name, self.size, content]).encode())
        return int.from_bytes(hashed.digest()[: _BITS // 8])

    def to_json(self) -> dict[str, Any]:
        """Return its line in the file."""
        if self.count is None:
            return {"name": self.name, "size": self.size, **self.fields}
        return {"folder": self.name, "objects": self.count, "bytes": self.size, **self.fields}

    @classmethod
    def from_json(cls, fields: Any) -> "Part":
        """Return what a line of the file says. Raises KeyError, TypeError, ValueError and StopIteration."""
        rest = {str(key): str(value) for key, value in fields.items()}
        if "folder" in rest:
            part = cls(rest.pop("folder"), int(rest.pop("bytes")), rest, int(rest.pop("objects")))
        else:
            part = cls(rest.pop("name"), int(rest.pop("size")), rest)
        part.value  # noqa: B018  # a line without a digest is no line
        return part


@dataclass
class Total:
    """A sum over objects: how many, their bytes, and the sum of their values."""

    count: int = 0
    size: int = 0
    value: int = 0

    def add(self, count: int, size: int, value: int) -> None:
        """Add objects."""
        self.count, self.size, self.value = self.count + count, self.size + size, (self.value + value) % (1 << _BITS)

    @property
    def digest(self) -> str:
        """The digest of the objects."""
        return f"{self.value:0{_BITS // 4}x}"


@dataclass(frozen=True)
class Snapshot:
    """What an item of data is: of `count` objects, files or rows (`noun`), and `size` bytes.

    `parts` are its objects, or its folders if there are too many; `lines` are the same as the file has them.
    """

    uri: str
    noun: Noun
    count: int
    size: int
    digest: str
    lines: Sequence[bytes] = field(default=(), repr=False, compare=False)
    first_line: int = field(default=0, compare=False)

    @classmethod
    def of(cls, uri: str, noun: Noun, parts: Iterable[Part], count: int | None = None) -> "Snapshot":
        """Return that of objects, in one pass and in memory that does not grow with their number.

        `count` is that of a table's rows, of which there is one part.
        """
        whole, kept = Total(), list[Part]()
        folders: _Folders | None = None
        for part in parts:
            value = part.value
            whole.add(1, part.size, value)
            if folders is not None:
                folders.add(part.name, part.size, value)
                continue
            kept.append(part)
            if len(kept) > MAX_OBJECTS:
                folders = _Folders()
                for each in kept:
                    folders.add(each.name, each.size, each.value)
                kept.clear()
        found = folders.parts() if folders else kept
        lines = [_line(each.to_json()) for each in sorted(found, key=lambda each: each.name)]
        return cls(uri, noun, whole.count if count is None else count, whole.size, whole.digest, lines)

    @cached_property
    def parts(self) -> Mapping[str, Part]:
        """Its objects or folders by name. Raises DataLockUnusable if they are not those of the digest."""
        found, whole = dict[str, Part](), Total()
        for number, line in enumerate(self.lines, self.first_line):
            with _readable(number):
                part = Part.from_json(json.loads(line))
            found[part.name] = part
            whole.add(1 if part.count is None else part.count, part.size, part.value)
        if whole.digest != self.digest:
            raise DataLockUnusable(
                f"{FILE}:{self.first_line - 1}: the digest is not that of the {len(found):,} lines below it, as after "
                "a merge; run `vertex-training data lock` again"
            )
        return found

    @property
    def has_folders(self) -> bool:
        """Whether its parts are folders."""
        return self.count > MAX_OBJECTS and self.noun != "rows"

    def heading(self, stack: str, name: str) -> bytes:
        """Return its first line in the file."""
        fields = {"uri": self.uri, self.noun: self.count, "bytes": self.size, "digest": self.digest}
        return _line({"stack": stack, "data": name, **fields})

    @cached_property
    def summary(self) -> dict[str, Any]:
        """What a job has of it among its inputs: with ten digits of each object's digest if there are not many."""
        found: dict[str, Any] = {"uri": self.uri, self.noun: self.count, "bytes": self.size, "digest": self.digest}
        if self.noun != "rows" and self.count <= MAX_LISTED_FILES:
            short = {name: f"{part.value:0{_BITS // 4}x}"[:_SHORT] for name, part in self.parts.items()}
            found["contents"] = short
        return found


class _Folders:
    """Sums by folder, of no more than `MAX_OBJECTS` folders: deeper ones are counted in those above them."""

    def __init__(self) -> None:
        self._totals: dict[str, Total] = {}
        self._depth = 100

    def add(self, name: str, size: int, value: int) -> None:
        folder = self._folder(name)
        if (total := self._totals.get(folder)) is None:
            total = self._totals[folder] = Total()
        total.add(1, size, value)
        while len(self._totals) > MAX_OBJECTS:
            self._depth = min(self._depth, max(each.count("/") for each in self._totals)) - 1
            merged: dict[str, Total] = {}
            for each, sums in self._totals.items():
                merged.setdefault(self._folder(each), Total()).add(sums.count, sums.size, sums.value)
            self._totals = merged

    def _folder(self, name: str) -> str:
        """Return the folder that an object is counted in, with a slash at its end: "" for the top."""
        parts = name.split("/")[:-1][: self._depth]
        return "/".join([*parts, ""]) if parts else ""

    def parts(self) -> Iterator[Part]:
        """Yield a part for each folder."""
        for name, total in self._totals.items():
            yield Part(name or "./", total.size, {"digest": total.digest}, total.count)


def _line(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode() + b"\n"


class _readable:  # noqa: N801  # a context manager, as contextlib's are
    """Raises DataLockUnusable with the number of a line that cannot be read."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __enter__(self) -> None: ...

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(
            error, ValueError | KeyError | TypeError | AttributeError | OverflowError | StopIteration | RecursionError
        ):
            raise DataLockUnusable(
                f"{FILE}:{self._number}: is no line of a lock; undo the edit, or settle the merge, or remove the file "
                "and run `vertex-training data lock`"
            ) from error


class Lock:
    """The file of a project: `snapshots` by stack and name of data. Raises DataLockUnusable."""

    def __init__(self, root: Path) -> None:
        self._file = root / FILE
        self.snapshots: dict[tuple[str, str], Snapshot] = {}
        try:
            lines = trees.read(self._file, checkout(root)).splitlines(keepends=True)
        except FileNotFoundError:
            return
        except OSError as error:
            raise DataLockUnusable(f"{FILE}: cannot be read ({error.strerror}); make it a readable file") from error
        with _readable(1):
            version = json.loads(lines[0] if lines else b"")[_VERSION_KEY]
        if version != _VERSION:
            raise DataLockUnusable(f"{FILE}: is of a newer vertex-training ({version}); install that version")
        starts = [number for number, line in enumerate(lines) if line.startswith(_HEADING)]
        if starts[:1] != [1] and len(lines) > 1:
            raise DataLockUnusable(f"{FILE}:2: is no heading of a lock; run `vertex-training data lock` again")
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
            with _readable(start + 1):
                fields = json.loads(lines[start])
                noun: Noun = next(each for each in NOUNS if each in fields)
                key = str(fields["stack"]), str(fields["data"])
                uri, count, size, digest = (fields[each] for each in ("uri", noun, "bytes", "digest"))
                int(str(digest), 16)
                self.snapshots[key] = Snapshot(
                    str(uri), noun, int(count), int(size), str(digest), lines[start + 1 : end], start + 2
                )

    def find(self, stack: str, data: Data) -> Snapshot | None:
        """Return what was locked of an item of data; None if nothing was, or if it was of another URI."""
        named = (self.snapshots.get((stack, name)) for name in (data.name, *data.formerly))
        return next((found for found in named if found and found.uri == data.uri), None)

    def write(self) -> None:
        """Write the snapshots, in order, in one step."""
        with tempfile.NamedTemporaryFile(dir=self._file.parent, prefix=f".{FILE}.", delete=False) as new:
            try:
                new.write(_line({_VERSION_KEY: _VERSION}))
                for (stack, name), snapshot in sorted(self.snapshots.items()):
                    new.write(snapshot.heading(stack, name))
                    new.writelines(snapshot.lines)
                new.flush()
                Path(new.name).chmod(0o644)
                Path(new.name).replace(self._file)
            except BaseException:
                Path(new.name).unlink()
                raise


@dataclass(frozen=True)
class LockedData:
    """What jobs take of an item of data."""

    uri: str
    """Where the data is, for a text in the spec of a job."""
    summary: Mapping[str, Any] | None
    """What its lock has of it; None if it is not locked."""
    verify: str
    """What it means that the data is not as locked: `error`, `warn` or `off`."""


def report_unlocked(
    data: Mapping[str, LockedData], place: Callable[[str, str], Problem], *, is_cloud: bool
) -> list[Problem]:
    """Warn in a preview of data without a lock, and return what to refuse: on Google Cloud, if its `verify` says so.

    `place` makes a problem of a name and a message.
    """
    # Imported here, because commands read locks without Pulumi.
    import pulumi

    refused, warned = list[Problem](), list[Problem]()
    stack = pulumi.get_stack()
    for name, each in data.items():
        if not each.summary and each.verify != "off":
            command = f"vertex-training data lock --stack {stack} {name}"
            problem = place(name, f"is not locked, so no change of {each.uri} runs a job again; run `{command}`")
            (refused if each.verify == "error" and is_cloud else warned).append(problem)
    if warned and pulumi.runtime.is_dry_run():
        pulumi.warn("\n".join(map(str, warned)))
    return refused


def resolve(root: Path, stack: str, data: Mapping[str, Data]) -> dict[str, LockedData]:
    """Return what the lock of a project has of the data that a stack declares, by name. Raises DataLockUnusable."""
    if not data:
        return {}
    lock = Lock(root)
    found = {name: lock.find(stack, each) for name, each in data.items()}
    return {
        name: LockedData(each.uri, snapshot.summary if (snapshot := found[name]) else None, each.verify)
        for name, each in data.items()
    }


_MAX_NAMES = 3


def differences(old: Snapshot, new: Snapshot) -> str:
    """Say what differs between two snapshots of an item of data, with the first names: `b.csv changed, c.csv added`."""
    if old.noun == "rows" or old.has_folders != new.has_folders:
        return describe(old.summary, new.summary)
    before, after = old.parts, new.parts
    names = [f"{name} changed" for name in before.keys() & after.keys() if before[name].value != after[name].value]
    names += [f"{name} added" for name in after.keys() - before.keys()]
    names += [f"{name} removed" for name in before.keys() - after.keys()]
    more = f" and {len(names) - _MAX_NAMES:,} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(sorted(names)[:_MAX_NAMES]) + more


def describe(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> str:
    """Say in one line how two summaries differ: `12 objects added, 1 changed, 3.1 GB`. None is one that is not locked.

    Raises what any JSON in place of a summary may raise.
    """
    if not new:
        return "not locked any more"
    noun = next(each for each in NOUNS if each in new)
    total = f"{new[noun]:,.0f} {noun if new[noun] != 1 else noun[:-1]}, {show_size(new['bytes'])}"
    if not old:
        return f"locked now: {total}"
    if old["uri"] != new["uri"]:
        return f"{old['uri']} → {new['uri']}, {total}"
    before, after = old.get("contents"), new.get("contents")
    if not (isinstance(before, Mapping) and isinstance(after, Mapping)):
        count = f"{old[noun]:,.0f} → " if old.get(noun, new[noun]) != new[noun] else ""
        return f"changed: {count}{total}"
    counts = {
        "added": len(after.keys() - before.keys()),
        "removed": len(before.keys() - after.keys()),
        "changed": sum(before[name] != after[name] for name in before.keys() & after.keys()),
    }
    first, *others = [(verb, count) for verb, count in counts.items() if count]
    named = [f"{first[1]:,} {noun if first[1] > 1 else noun[:-1]} {first[0]}"]
    return ", ".join([*named, *(f"{count:,} {verb}" for verb, count in others), show_size(new["bytes"])])


def show_size(size: float) -> str:
    """Return a number of bytes in the largest decimal unit, as Cloud Storage counts them: `3.1 GB`."""
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if size < 1000 or unit == "TB":
            break
        size /= 1000
    return f"{size:,.0f} {'byte' if size == 1 else unit}" if unit == "bytes" else f"{size:,.1f} {unit}"
