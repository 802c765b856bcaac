"""Declarations: the images, packages and jobs that a stack and its included files declare, read together."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any, cast

from vertex_api.catalog import reduction_server
from vertex_api.kinds import KINDS, Kind
from vertex_api.spelling import suggestion_text
from vertex_api.validation.canonical import validate_spec
from vertex_api.validation.rules import KeyPath
from vertex_api.validation.shape import MUST_BE_OBJECT, validate_shape

from ..errors import Problem
from ..images import rules as image_rules
from ..jobs import dependencies
from ..packages import source_distribution
from ..schema import formats, job_keys, references, shapes
from ..schema.job_declaration import JobDeclaration
from ..schema.source_file import Source, included
from . import spec_files
from .spec_files import SpecFile

SECTIONS = ("vars", "images", "packages", *KINDS)
_IN_JOBS = ("vars", "images", "packages", "secrets", references.JOBS)
_ASIDE = "x-"  # where anchors are kept that jobs refer to, as in Compose files
_LATE = "is known only after that job, so it can stand in texts alone"


@dataclass(frozen=True)
class _Declared:
    source: Source
    path: KeyPath
    value: Any
    file: SpecFile | None = None

    def problem(self, path: KeyPath, message: str) -> Problem:
        if self.file and self.file.holds(path):
            return self.file.problem(path, message)
        return self.source.problem((*self.path, *path), message)


@dataclass
class Declarations:
    """Reads the stack's own declarations and the included files, and collects what is wrong in `problems`.

    `values` is what the stack file holds, in the shape of `shapes.Stack`.
    """

    root: Path
    stack: Source
    values: dict[str, Any]
    problems: list[Problem] = field(default_factory=list)
    sections: dict[str, dict[str, _Declared]] = field(default_factory=lambda: {name: {} for name in SECTIONS})
    vars_used: set[str] = field(default_factory=set)
    results_used: dict[str, list[tuple[KeyPath, str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        sources, self.problems = included(self.root, self.values.get("include", []), self.stack)
        own = [name for name in SECTIONS if name != "vars" and name in self.values]
        self._add_all(self.stack, {name: self.values[name] for name in own})
        for source in sources:
            content, unreadable = source.read()
            self.problems += unreadable
            self._add_all(source, content)
        overrides = self.overrides = self.values.get("vars") or {}
        if not isinstance(overrides, Mapping):
            self.problems.append(self.stack.problem(("vars",), MUST_BE_OBJECT))
            overrides = self.overrides = {}
        for declared in (
            *self.sections["vars"].values(),
            *(_Declared(self.stack, ("vars", name), value) for name, value in overrides.items()),
        ):
            for path, reference in references.found(declared.value):
                message = f"${{{reference}}} must stand where the var is used; vars hold plain values"
                self.problems.append(declared.problem(path, message))
            self.problems += [declared.problem(*found) for found in references.unclosed(declared.value)]
        # Known by its region alone. Names of images are in lower case, so none can be in its way.
        self.own_images = {"reductionServer": reduction_server.get_image_uri(self.values.get("region", ""))}
        self.tables = {
            "vars": {name: declared.value for name, declared in self.sections["vars"].items()} | {**overrides},
            "images": {**self.sections["images"], **self.own_images},
            "packages": self.sections["packages"],
            "secrets": self.values.get("secrets", {}),
        }

    def _add_all(self, source: Source, content: Mapping[str, Any]) -> None:
        for section, entries in content.items():
            if section.startswith(_ASIDE):
                continue
            if section not in SECTIONS:
                self.problems.append(source.problem((section,), f"unknown field{suggestion_text(section, SECTIONS)}"))
            elif isinstance(entries, Mapping):
                for name, value in entries.items():
                    self._add(source, section, name, value)
            elif entries is not None:
                self.problems.append(source.problem((section,), MUST_BE_OBJECT))

    def _add(self, source: Source, section: str, name: str, value: Any) -> None:
        declared = _Declared(source, (section, name), value)
        other = next((self.sections[peer][name] for peer in _peers(section) if name in self.sections[peer]), None)
        if other:
            place = other.source.place(other.path)
            self.problems.append(declared.problem((), f'"{name}" is declared already, at {place}'))
        elif section != "vars" and not formats.is_name(name):
            self.problems.append(declared.problem((), f'"{name}" must be {formats.NAME}'))
        else:
            self._keep(section, name, declared)

    def _keep(self, section: str, name: str, declared: _Declared) -> None:
        if section in KINDS and isinstance(declared.value, Mapping) and declared.value.get(job_keys.SPEC) is not None:
            found = spec_files.pasted(KINDS[section], declared.value, self.root)
            self.problems += [declared.problem(path, message) for path, message in found.findings]
            self.problems += found.problems
            if found.job is None:
                return
            declared = replace(declared, value=found.job, file=found.file)
        self.sections[section][name] = declared

    def images(self) -> dict[str, shapes.Image]:
        """The declared images, with their vars resolved."""
        return {name: self._image(declared) for name, declared in self.sections["images"].items()}

    def _image(self, declared: _Declared) -> shapes.Image:
        given = references.unescaped(
            self._resolved(declared, lambda path: ("vars", "secrets") if path[:1] == ("secrets",) else ("vars",))
        )
        image, broken = validate_shape(shapes.Image, given)
        found = [(p.path, p.message) for p in broken] or list(image_rules.broken(image, self.root))
        self.problems += [declared.problem(path, message) for path, message in found]
        return cast(shapes.Image, image)

    def packages(self) -> dict[str, shapes.PythonPackage]:
        """The declared source distributions, with their vars resolved."""
        return {name: self._package(declared) for name, declared in self.sections["packages"].items()}

    def _package(self, declared: _Declared) -> shapes.PythonPackage:
        given = references.unescaped(self._resolved(declared, lambda _: ("vars",)))
        package, broken = validate_shape(shapes.PythonPackage, given)
        found = [(p.path, p.message) for p in broken] or list(source_distribution.broken(self.root, package))
        self.problems += [declared.problem(path, message) for path, message in found]
        return cast(shapes.PythonPackage, package)

    def jobs(self) -> tuple[JobDeclaration, ...]:
        """The declared jobs, canonical, with their vars resolved."""
        jobs = tuple(
            self._job(kind, declared) for kind in KINDS.values() for declared in self.sections[kind.collection].values()
        )
        if self.results_used or any(job.lifecycle.keys() & {"after", "deadline"} for job in jobs):
            self.problems += [self.problem_of(*found) for found in dependencies.broken(jobs, self.results_used)]
        return dependencies.linked(jobs, self.results_used) if self.results_used and not self.problems else jobs

    def _job(self, kind: Kind, declared: _Declared) -> JobDeclaration:
        name = str(declared.path[-1])
        body = self._resolved(declared, lambda path: ("vars",) if path[:1] == (job_keys.LIFECYCLE,) else _IN_JOBS)
        if not isinstance(body, Mapping):
            self.problems.append(declared.problem((), MUST_BE_OBJECT))
            return JobDeclaration(kind, name, None, {})
        given = body.get(job_keys.LIFECYCLE)
        found, broken = validate_shape(shapes.Lifecycle, {} if given is None else given)
        lifecycle: shapes.Lifecycle = {} if broken else found
        self.problems += [declared.problem((job_keys.LIFECYCLE, *each.path), each.message) for each in broken]
        is_adopted = "adopt" in lifecycle
        is_named = is_adopted or body.keys() & {"displayName", "display_name"}
        body = {**({} if is_named else {"displayName": name}), **body}
        body.pop(job_keys.LIFECYCLE, None)
        body.pop(job_keys.SPEC, None)  # a file's fields have taken its place, or it is unset
        spec, broken = validate_spec(
            kind, body, is_name_required=not is_adopted, has_unresolved_references=references.is_open
        )
        if _written_out(declared.value, body, [problem.path for problem in broken]):
            spec, broken = validate_spec(
                kind, body, is_name_required=not is_adopted, has_unresolved_references=references.is_open
            )
        open_at = dict(self.results_used.get(name, ()))
        for problem in broken:
            late = problem.path in open_at and f"${{{references.JOBS}.{open_at[problem.path]}}} {_LATE}"
            message = late or job_keys.misplaced(kind, problem.path) or problem.message
            self.problems.append(declared.problem(problem.path, message))
        return JobDeclaration(kind, name, spec, lifecycle)

    def problem_of(self, job: JobDeclaration, path: KeyPath, message: str) -> Problem:
        """A problem at a key of a declared job."""
        return self.sections[job.kind.collection][job.name].problem(path, message)

    def _resolved(self, declared: _Declared, allowed: Callable[[KeyPath], tuple[str, ...]]) -> Any:
        """The declared value with its vars and Google's own images filled in.

        References that lead nowhere are reported. `allowed` says which tables a reference at a path may lead to.
        """
        half = dict(references.unclosed(declared.value))
        self.problems += [declared.problem(path, message) for path, message in half.items()]
        for path, reference in references.found(declared.value):
            if path in half:
                continue
            table, _, name = reference.partition(".")
            if table == "vars":
                self.vars_used.add(name)
            elif table == references.JOBS and table in allowed(path):
                self.results_used.setdefault(str(declared.path[-1]), []).append((path, name))
                continue
            if table not in allowed(path):
                message = references.unknown_reference_message(reference, allowed(path))
            elif table == "vars" and not isinstance(self.values.get("vars") or {}, Mapping):
                continue
            elif name not in self.tables[table]:
                message = f"${{{reference}}} is not declared{suggestion_text(name, self.tables[table])}"
            else:
                continue
            self.problems.append(declared.problem(path, message))
        return references.resolve(declared.value, {"vars": self.tables["vars"], "images": self.own_images})

    def unused_vars(self) -> list[Problem]:
        """Vars of the stack that nothing declares or uses: typos."""
        known = self.sections["vars"].keys() | self.vars_used
        unused = self.overrides.keys() - known
        return [self.stack.problem(("vars", name), f"nothing uses it{suggestion_text(name, known)}") for name in unused]


def _written_out(declared: Any, body: dict[str, Any], paths: list[KeyPath]) -> bool:
    """Writes numbers out as text where a var stands alone (`args: [--epochs, "${vars.epochs}"]`) and text is wanted."""
    alone = references.alone(declared).intersection(paths)
    for *above, last in alone:
        holder = reduce(getitem, above, cast(Any, body))
        if isinstance(holder[last], bool | int | float):
            holder[last] = references.written(holder[last])
    return bool(alone)


def _peers(section: str) -> tuple[str, ...]:
    """Sections that share one set of names: all jobs do, so that results can be looked up by name."""
    return tuple(KINDS) if section in KINDS else (section,)
