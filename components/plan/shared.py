"""Shared files: what several stacks have in common, and the limits that are set from outside of a project.

A stack file names the first by `extends`, as a file of its checkout (`platform/train.yaml`) or of an installed package
(`package:acme_limits/train.yaml`), and each may extend another one. The variable `VERTEX_TRAINING_GUARDRAILS` names the
second, which hold for every stack.
"""

import os
import posixpath
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from vertex_api.messages import KeyPath
from vertex_api.names import did_you_mean
from vertex_api.validation.formats import Violation
from vertex_api.validation.shape import canonicalize

from ..errors import Problem
from ..schema import shapes
from ..schema.source import SourceFile, explain_outside
from . import guardrails
from .limits import KEY, Source
from .training import Place

VARIABLE = "VERTEX_TRAINING_GUARDRAILS"
"""The variable of the environment that names files with limits from outside of a project, separated by `:`."""
EXTENDS = "extends"
_PACKAGE = "package:"
MERGED = ("labels",)
"""Keys whose objects are merged, in place of the nearest one alone."""
_SHARED = frozenset(shapes.SharedFile.__annotations__) - {EXTENDS, KEY}


@dataclass
class Shared:
    """What a stack takes from shared files.

    `values` are those of keys that a stack file may have itself, then in place of these; of labels each by itself.
    `places` say where each key stands. `sources` are the guardrails, all of which hold.
    """

    values: dict[str, Any] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    sources: list[Source] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @classmethod
    def load(cls, root: Path, name: Any, stack_file: SourceFile) -> "Shared":
        """Return what the file of this name, and those that it extends, have for a project in the folder `root`."""
        found, where, seen = cls(), _Place(root), list[str]()
        asking = stack_file
        while name is not None:
            where, refusal = where.find(name)
            if not refusal and where.shown in seen:
                refusal = f"{' extends '.join([*seen, where.shown])}, without an end; take one out"
            if refusal:
                found.problems.append(asking.problem((EXTENDS,), refusal))
                break
            seen.append(where.shown)
            asking, content, unreadable = SourceFile.read(where.file, where.shown)
            values, misshapen = canonicalize(shapes.SharedFile, content)
            problems = [(each.path, each.message) for each in misshapen]
            if KEY in content:
                problems += (((KEY, *path), message) for path, message in guardrails.empty(content[KEY]))
            found.problems += [*unreadable, *(asking.problem(*each) for each in problems)]
            if problems or unreadable:
                break
            found._add(values, asking)
            name = values.get(EXTENDS)
        return found

    def _add(self, values: Mapping[str, Any], source: SourceFile) -> None:
        """Add a file: what another one that extends it has wins."""
        self.sources.append(Source(values.get(KEY, {}), source.name, source.problem))
        for key in values.keys() & _SHARED:
            if key in MERGED:
                self.values[key] = {**values[key], **self.values.get(key, {})}
            self.values.setdefault(key, values[key])
            self.places.setdefault(key, source.problem)


@dataclass(frozen=True)
class _Place:
    """Where a shared file lies: in the `top` folder of a project, or of an installed `package`."""

    top: Path
    path: str = ""
    package: str = ""

    @property
    def shown(self) -> str:
        """The name of the file in messages, by which another project may name it too."""
        return f"{_PACKAGE}{self.package}/{self.path}" if self.package else self.path

    @property
    def file(self) -> Path:
        return self.top / self.path

    def find(self, name: str) -> "tuple[_Place, str]":
        """Return the place of a file that this one names, relative to its own folder, and why it cannot be read."""
        if name.startswith(_PACKAGE):
            package, _, path = name.removeprefix(_PACKAGE).partition("/")
            folder = _package_folder(package)
            if folder is None:
                return self, f'"{package}" is not an installed package; install it, as requirements of the project do'
            place = _Place(folder, posixpath.normpath(path), package)
        else:
            path = posixpath.normpath(posixpath.join(posixpath.dirname(self.path), name))
            place = _Place(self.top, path, self.package)
        if place.package:
            if not place.file.resolve().is_relative_to(place.top.resolve()):
                return self, f'"{name}" leads out of the package {place.package}; name a file in it'
        elif refusal := explain_outside(place.top, place.path):
            return self, refusal
        if not place.file.is_file():
            return self, f'"{place.shown}" is not a file; correct the name, or take {EXTENDS} out'
        return place, ""


def _package_folder(package: str) -> Path | None:
    """Return the folder of an installed package, which is not imported."""
    try:
        spec = find_spec(package) if package.isidentifier() else None
    except (ImportError, ValueError):
        return None
    folders = (spec.submodule_search_locations if spec else None) or []
    return next((Path(folder) for folder in folders), None)


def from_outside(environment: Mapping[str, str]) -> tuple[list[Source], list[Problem]]:
    """Return the guardrails of the files that the variable names, and what is wrong with them."""
    sources, problems = list[Source](), list[Problem]()
    named = environment.get(VARIABLE)
    if named is None:
        return sources, problems
    for name in named.split(os.pathsep):
        if not name:
            problems.append(Problem(VARIABLE, "", "has an empty path; name a file, or unset it"))
            continue
        if _is_pipe(name):  # it would be waited for, at each preview
            problems.append(Problem(VARIABLE, "", f"{name} is a pipe; name a file"))
            continue
        source, content, unreadable = SourceFile.read(Path(name), name)
        problems += unreadable
        if not unreadable:
            rules, found = _outside(content)
            # A file of guardrails alone needs no key.
            place = _placed(source, bare=KEY not in content)
            problems += (place(*violation) for violation in found)
            sources.append(Source(rules, Path(name).name, place))
    return sources, problems


def _is_pipe(name: str) -> bool:
    try:
        return Path(name).is_fifo()
    except (OSError, ValueError):  # no name of a file
        return False


def argument_problems(resource: str, given: Collection[str]) -> Iterator[Problem]:
    """Find keys among the arguments of a `TrainingStack` that would replace limits."""
    if EXTENDS in given:
        message = "is for the stack file, as it brings limits; what is given here holds beside it"
        yield Problem(resource, EXTENDS, message)


def _outside(content: Mapping[str, Any]) -> tuple[dict[str, Any], list[Violation]]:
    """Return the rules of a file from outside of a project, and what is wrong with it."""
    given = content.get(KEY, content)
    rules, misshapen = canonicalize(shapes.Guardrails, given)
    found: list[Violation] = [((KEY, *each.path), each.message) for each in misshapen]
    found += (((KEY, *path), message) for path, message in guardrails.empty(given))
    if given is not content:
        found += (((key,), f"unknown field{did_you_mean(key, [KEY])}") for key in content if key != KEY)
    return ({} if found else rules), found


def _placed(source: SourceFile, *, bare: bool) -> Place:
    def place(path: KeyPath, message: str) -> Problem:
        return source.problem(path[1:] if bare else path, message)

    return place
