"""The tables of the folder `refused`: projects without a fault (`bases`), and what is changed in them.

A table has rows by base: `[where, value, field, words]`. The value is put at `where`, a path with dots below the base's
own; `!absent` takes out what is there, `!renamed` gives its key another name. What must then be said is one thing, of
`field` (`~`: of `where`), in these words.
"""

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.corpus.specs import CLOUD

FOLDER = Path(__file__).parent / "refused"
STACK = {"config": {**CLOUD, "vertex-training:include": ["training/jobs.yaml"]}}
_ABSENT = object()


@dataclass(frozen=True)
class _Renamed:
    name: str


class _Loader(yaml.CSafeLoader):
    """With tags for values that are too long to be written out."""


def _pair(loader: _Loader, node: Any) -> Any:
    return loader.construct_sequence(node, deep=True)


def _scalar(loader: _Loader, node: Any) -> str:
    return str(loader.construct_scalar(node))


def _text(loader: _Loader, node: Any) -> str:
    text, times = _pair(loader, node)
    return str(text) * times


def _list(loader: _Loader, node: Any) -> list[Any]:
    entry, times = _pair(loader, node)
    return [entry] * times


def _map(loader: _Loader, node: Any) -> dict[str, str]:
    prefix, times = _pair(loader, node)
    return {f"{prefix}{index}": "v" for index in range(times)}


_Loader.add_constructor("!absent", lambda _loader, _node: _ABSENT)
_Loader.add_constructor("!renamed", lambda loader, node: _Renamed(_scalar(loader, node)))
_Loader.add_constructor(
    "!latin", lambda loader, node: _scalar(loader, node).encode("latin-1").decode("utf-8", "surrogateescape")
)
_Loader.add_constructor("!text", _text)
_Loader.add_constructor("!list", _list)
_Loader.add_constructor("!map", _map)
_Loader.add_constructor("!range", lambda loader, node: list(range(int(_scalar(loader, node)))))
_Loader.add_constructor("!huge", lambda loader, node: 10 ** int(_scalar(loader, node)))


@dataclass(frozen=True)
class Base:
    """A project without a fault: `files` by name, and the place in one of them that cases are about."""

    name: str
    files: dict[str, Any]
    file: str
    at: tuple[str | int, ...]
    is_legacy: bool


@dataclass(frozen=True)
class Case:
    """A base with one value changed at `path`; `field` and `words` are what must be said, and nothing else."""

    base: Base
    path: tuple[str | int, ...]
    value: Any
    field: str
    words: str

    @property
    def name(self) -> str:
        shown = "absent" if self.value is _ABSENT else json.dumps(self.value, default=vars)
        return f"{self.base.name}.{'.'.join(map(str, self.path[len(self.base.at) :]))}={shown[:40]}"

    def files(self) -> dict[str, Any]:
        """The base's files with the fault."""
        files = copy.deepcopy(self.base.files)
        node = files[self.base.file]
        for part in self.path[:-1]:
            node = node[part] if isinstance(node, list) else node.setdefault(part, {})
        if self.value is _ABSENT:
            del node[self.path[-1]]
        elif isinstance(self.value, _Renamed):
            node[self.value.name] = node.pop(self.path[-1])
        elif isinstance(node, list) and self.path[-1] == len(node):
            node.append(self.value)
        else:
            node[self.path[-1]] = self.value
        return files


@cache
def bases() -> dict[str, Base]:
    """The bases by name."""
    held: dict[str, Any] = {}
    for file in sorted((FOLDER / "bases").glob("*.yaml")):
        held |= yaml.load(file.read_text(), _Loader)["bases"]
    return {
        name: Base(
            name,
            # Through JSON, so that what a file writes once and uses twice is changed in one place only.
            json.loads(json.dumps({"stacks/Pulumi.dev.yaml": STACK, **base["project"]})),
            base["file"],
            tuple(base["at"]),
            base.get("legacy", False),
        )
        for name, base in held.items()
    }


def cases() -> Iterator[Case]:
    """Every row of every table."""
    for table in sorted(FOLDER.glob("*.yaml")):
        for name, rows in yaml.load(table.read_text(), _Loader).items():
            base = bases()[name]
            for where, value, field, words in rows:
                path = base.at + _parts(where)
                named = path if field is None else _named(base, field)
                yield Case(base, path, value, _dotted(named), words)


def _named(base: Base, field: str) -> tuple[str | int, ...]:
    parts = _parts(field)
    known = {"customJobs", "hyperparameterTuningJobs", "trainingPipelines"}
    return parts if parts[0] in known else base.at + parts


def _parts(path: str) -> tuple[str | int, ...]:
    return tuple(int(part) if part.isdecimal() else part for part in str(path).split("."))


def _dotted(path: tuple[str | int, ...]) -> str:
    """As problems write it; in a stack file all keys stand below `config`."""
    parts = path[1:] if path[0] == "config" else path
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts).lstrip(".")
