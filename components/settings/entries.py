"""Entries: what a stack file and the files that it includes declare, section by section, as it is written.

A job's fields may be in a file of their own, its spec file, as `gcloud --config` and the REST API accept them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic.alias_generators import to_camel, to_snake

from vertex_api.errors import first_problems, too_many
from vertex_api.messages import KeyPath, message_fields
from vertex_api.names import CUSTOM_JOB, KINDS, Kind, did_you_mean
from vertex_api.validation.shape import MUST_BE_OBJECT, canonicalize

from ..errors import Problem
from ..own import Own
from ..plan.training import SPEC
from ..schema import formats, shapes
from ..schema.source import SourceFile, explain_outside

SECTIONS = ("vars", "images", "packages", "data", *KINDS, "schedules")
_EXTENSION_PREFIX = "x-"  # as in Compose files: for anchors that jobs refer to
_WILDCARDS = set("*?[")


@dataclass(frozen=True)
class Entry:
    """A var, image, package, job or schedule as it is written.

    The `value` of a job with a `spec_file` has the fields of both.
    """

    source: SourceFile
    section: str
    name: str
    value: Any
    spec_file: "SpecFile | None" = None

    def problem(self, path: KeyPath, message: str) -> Problem:
        """Return a problem at a path of the value, with its file and line."""
        if self.spec_file and self.spec_file.owns(path):
            return self.spec_file.problem(path, message)
        return self.source.problem((self.section, self.name, *path), message)


Entries = Mapping[str, Mapping[str, Entry]]
"""By section (`images`, `customJobs` …) and name."""


def load(
    root: Path, stack_file: SourceFile, stack_values: Mapping[str, Any]
) -> tuple[dict[str, dict[str, Entry]], list[Problem]]:
    """Read all files that a stack includes, and their spec files. Returns all entries but the stack's own vars.

    `stack_values` are those of the stack file by key; files are relative to the project's folder `root`.
    """
    files, problems = included(root, stack_file, stack_values.get("include", []))
    contents = [(stack_file, {key: stack_values[key] for key in SECTIONS[1:] if key in stack_values})]
    for name, file in files.items():
        if too_many(problems):
            break
        source, content, unreadable = SourceFile.read(file, name, root)
        contents.append((source, content))
        problems += unreadable
    entries: dict[str, dict[str, Entry]] = {section: {} for section in SECTIONS}
    for source, content in contents:
        split, misplaced = _split(source, content)
        problems += misplaced
        for entry in split:
            if too_many(problems):
                break
            if message := _name_problem(entry, entries):
                problems.append(entry.problem((), message))
                continue
            merged, unmergeable = _with_spec_file(entry, root)
            problems += unmergeable
            if merged:
                entries[entry.section][entry.name] = merged
    return entries, problems


def included(root: Path, stack_file: SourceFile, patterns: Sequence[str]) -> tuple[dict[str, Path], list[Problem]]:
    """Return the files that a stack's `include` names, by the name that messages show.

    They are files, folders (their YAML and JSON files) or globs, relative to `root`.
    """
    files, refused, unmatched, outside = dict[str, Path](), list[Problem](), list[Problem](), list[Problem]()
    for index, pattern in enumerate(patterns):
        if message := _explain_pattern(root, pattern):
            refused.append(stack_file.problem(("include", index), message))
            continue
        matches = _matches(root, pattern)
        if not matches:
            message = f'"{pattern}" matches no file in {root.name}/'
            unmatched.append(stack_file.problem(("include", index), message))
        for file in matches:
            name = str(file.relative_to(root) if file.is_relative_to(root) else file)
            if name in files:
                continue
            if message := explain_outside(root, name):
                outside.append(Problem(name, "", message))
            else:
                files[name] = file
    return files, [*refused, *unmatched, *dict.fromkeys(outside)]


def _explain_pattern(root: Path, pattern: str) -> str | None:
    """Return why a pattern of `include` is refused: what stands before its first wildcard leads out of the checkout."""
    parts = Path(pattern).parts
    fixed = next((index for index, part in enumerate(parts) if set(part) & _WILDCARDS), len(parts))
    message = explain_outside(root, str(Path(*parts[:fixed])))
    if message is None and ".." in parts[fixed:]:
        return f'"{pattern}" has ".." after a wildcard; write the folder without it'
    return message


def _matches(root: Path, pattern: str) -> list[Path]:
    path = root / pattern
    if path.is_file():
        return [path]
    if path.is_dir():
        files = [*path.iterdir()]
    else:
        # A trainer writes below these: what it wrote would declare jobs.
        found, own = [] if Path(pattern).is_absolute() else root.glob(pattern), Own(root)
        files = [file for file in found if not own.covers(file.relative_to(root).as_posix())]
    return sorted(file for file in files if file.suffix in (".yaml", ".yml", ".json") and file.is_file())


def _split(source: SourceFile, content: Mapping[str, Any]) -> tuple[list[Entry], list[Problem]]:
    entries, problems = list[Entry](), list[Problem]()
    for section, values in content.items():
        if section.startswith(_EXTENSION_PREFIX):
            continue
        if too_many(problems):
            break
        if section not in SECTIONS:
            message = f"unknown field{did_you_mean(section, SECTIONS)}"
            problems.append(source.problem((section,), message))
        elif isinstance(values, Mapping):
            entries += [Entry(source, section, name, value) for name, value in values.items()]
        elif values is not None:
            problems.append(source.problem((section,), MUST_BE_OBJECT))
    return entries, problems


def _name_problem(entry: Entry, entries: Entries) -> str | None:
    # Jobs of all kinds share their names, so that results can be looked up by name.
    for section in KINDS if entry.section in KINDS else (entry.section,):
        if other := entries[section].get(entry.name):
            return f'"{entry.name}" is declared already, at {other.source.line((section, entry.name))}'
    if entry.section in (*KINDS, "schedules"):
        return formats.output_name_problem(entry.name)
    return None if entry.section == "vars" else formats.name_problem(entry.name)


def _with_spec_file(entry: Entry, root: Path) -> tuple[Entry | None, list[Problem]]:
    """Return an entry with the fields of its spec file, None if that cannot be read, and the problems."""
    if entry.section not in KINDS or not isinstance(entry.value, Mapping) or entry.value.get(SPEC) is None:
        return entry, []
    written = entry.value[SPEC]
    named, misshapen = canonicalize(shapes.SpecFile, written)
    if isinstance(written, str):
        message = f"must be an object with named fields; write spec: {{file: {written}}}"
        return None, [entry.problem((SPEC,), message)]
    if misshapen:
        return None, [entry.problem((SPEC, *each.path), each.message) for each in misshapen]
    name = named["file"]
    refusal = explain_outside(root, name)
    if not refusal and (Path(name).is_absolute() or not (root / name).is_file()):
        refusal = f'"{name}" is not a file in {root.name}/; write its path relative to the project\'s folder'
    if refusal:
        return None, [entry.problem((SPEC, "file"), refusal)]
    source, content, problems = SourceFile.read(root / name, name, root)
    if problems:
        return None, problems
    declared = {key: value for key, value in entry.value.items() if key != SPEC}
    spec_file = SpecFile.of(KINDS[entry.section], source, content, declared)
    value, duplicates = _merge(spec_file.fields, declared)
    message = f"is set in {source.name} too; keep one of the two"
    problems = [entry.problem(path, message) for path in first_problems(duplicates)]
    return replace(entry, value=value, spec_file=spec_file), problems


@dataclass(frozen=True)
class SpecFile:
    """A file with fields of a job.

    `prefix` is where its content stands in the job, `fields` are those of the job that come from the file, and
    `declared` those that the declaration has itself. `lone` are the lists of the job of which the file has the only
    item, without a list.
    """

    source: SourceFile
    prefix: KeyPath
    fields: Mapping[str, Any]
    declared: Mapping[str, Any]
    lone: frozenset[KeyPath] = frozenset()

    @classmethod
    def of(cls, kind: Kind, source: SourceFile, content: Mapping[str, Any], declared: Mapping[str, Any]) -> "SpecFile":
        """Return the spec file of a job.

        For a custom job it is a CustomJobSpec (`gcloud ai custom-jobs create --config`), or a CustomJob if it has a
        jobSpec; for a tuning job a HyperparameterTuningJob, with or without what gcloud takes as flags; for a pipeline
        a TrainingPipeline.
        """
        is_job = kind != CUSTOM_JOB or "jobSpec" in map(to_camel, content)
        prefix: KeyPath = () if is_job else ("jobSpec",)
        lone = set[KeyPath]()
        fields = _with_lists(kind.typed_dict, content if is_job else {"jobSpec": content}, (), lone)
        return cls(source, prefix, fields, declared, frozenset(lone))

    def owns(self, path: KeyPath) -> bool:
        """Whether a path of the job belongs to the file, rather than to the declaration.

        A path that neither has belongs to the one that has more of it.
        """
        depth = _depth(self.fields, path)
        return depth > 0 and depth >= _depth(self.declared, path)

    def problem(self, path: KeyPath, message: str) -> Problem:
        """Return a problem at a path of the job, with the file's line."""
        spelt = tuple(to_camel(part) if isinstance(part, str) else part for part in path)
        written = [part for depth, part in enumerate(path) if spelt[:depth] not in self.lone]
        return self.source.problem(tuple(written[len(self.prefix) :]), message)


def _with_lists(message_type: Any, value: Any, path: KeyPath, lone: set[KeyPath]) -> Any:
    """Return a value of a message with a list of one for the only item of a list, whose path is added to `lone`.

    gcloud 528 sends it so from the file of `--config` (measured).
    """
    if message_type is None or not isinstance(value, Mapping):
        return value
    fields = {}
    for key, child in value.items():
        name = to_camel(str(key))
        field, at = message_fields(message_type).get(name), (*path, name)
        if field and field.cardinality == "list" and child is not None and not isinstance(child, list):
            lone.add(at)
            child = [child]
        if field and field.message_type and isinstance(child, list):
            child = [_with_lists(field.message_type, each, (*at, index), lone) for index, each in enumerate(child)]
        elif field and field.cardinality == "one":
            child = _with_lists(field.message_type, child, at, lone)
        fields[key] = child
    return fields


def _merge(
    file: Mapping[str, Any], declared: Mapping[str, Any], prefix: KeyPath = ()
) -> tuple[dict[str, Any], list[KeyPath]]:
    """Return the fields of a file and those of the declaration, and the paths of those that both have."""
    merged, duplicates = dict(file), list[KeyPath]()
    for key, value in declared.items():
        spelling = next(_spellings(file, key), None)
        if spelling is None:
            merged[key] = value
        elif isinstance(value, Mapping) and isinstance(file[spelling], Mapping):
            merged[spelling], inner = _merge(file[spelling], value, (*prefix, key))
            duplicates += inner
        else:
            duplicates.append((*prefix, key))
    return merged, duplicates


def _spellings(fields: Mapping[str, Any], key: Any) -> Iterator[str]:
    """Yield the key of a field as it is written, in either spelling."""
    return (name for name in (key, to_camel(str(key)), to_snake(str(key))) if name in fields)


def _depth(value: Any, path: KeyPath) -> int:
    """Return how many parts of a path a value has."""
    for depth, part in enumerate(path):
        if isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        elif isinstance(value, Mapping) and (key := next(_spellings(value, part), None)) is not None:
            value = value[key]
        else:
            return depth
    return len(path)
