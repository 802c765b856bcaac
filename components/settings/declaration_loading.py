"""Entries: what a stack file and the files that it includes declare, section by section, as it is written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vertex_api.errors import too_many
from vertex_api.messages import KeyPath
from vertex_api.names import KINDS, did_you_mean
from vertex_api.validation.shape import MUST_BE_OBJECT

from ..errors import Problem
from ..schema import formats
from ..schema.declared_job import SPEC_KEY
from ..schema.source import SourceFile, explain_outside
from .spec_file_merging import (
    SpecFile,
    get_spec_file_name_and_find_violations,
    merge_job_and_build_spec_file_and_violations,
)

SECTIONS = ("vars", "images", "packages", *KINDS, "schedules")
_EXTENSION_PREFIX = "x-"  # as in Compose files: for anchors that jobs refer to


@dataclass(frozen=True)
class Entry:
    """A var, image, package, job or schedule as it is written.

    The `value` of a job with a `spec_file` has the fields of both.
    """

    source: SourceFile
    section: str
    name: str
    value: Any
    spec_file: SpecFile | None = None

    def problem(self, path: KeyPath, message: str) -> Problem:
        """Return a problem at a path of the value, with its file and line."""
        if self.spec_file and self.spec_file.owns_path(path):
            return self.spec_file.problem(path, message)
        return self.source.problem((self.section, self.name, *path), message)


Entries = Mapping[str, Mapping[str, Entry]]
"""By section (`images`, `customJobs` …) and name."""


def load_entries_and_problems(
    root: Path, stack_file: SourceFile, stack_values: Mapping[str, Any]
) -> tuple[dict[str, dict[str, Entry]], list[Problem]]:
    """Read all files that a stack includes, and their spec files. Returns all entries but the stack's own vars.

    `stack_values` are those of the stack file by key; files are relative to the project's folder `root`.
    """
    patterns = stack_values.get("include", [])
    files, unmatched = find_files_by_path_and_unmatched_indexes(root, patterns)
    problems = [
        stack_file.problem(("include", index), message)
        for index, pattern in enumerate(patterns)
        if (message := _explain_outside_or_above(root, pattern))
    ]
    problems += [
        stack_file.problem(("include", index), f'"{patterns[index]}" matches no file in {root.name}/')
        for index in unmatched
        if not _explain_outside_or_above(root, patterns[index])
    ]
    problems += [Problem(name, "", message) for name in files if (message := explain_outside(root, name))]
    files = {name: file for name, file in files.items() if not explain_outside(root, name)}
    contents = [(stack_file, {key: stack_values[key] for key in SECTIONS[1:] if key in stack_values})]
    for name, file in files.items():
        if too_many(problems):
            break
        source, content, unreadable = SourceFile.read(file, name)
        contents.append((source, content))
        problems += unreadable
    entries: dict[str, dict[str, Entry]] = {section: {} for section in SECTIONS}
    for source, content in contents:
        sections, misplaced = _split_into_entries_and_problems(source, content)
        problems += misplaced
        for entry in sections:
            if too_many(problems):
                break
            if message := _find_name_problem_message_or_none(entry, entries):
                problems.append(entry.problem((), message))
                continue
            merged, unmergeable = _try_to_merge_spec_file_and_find_problems(entry, root)
            problems += unmergeable
            if merged:
                entries[entry.section][entry.name] = merged
    return entries, problems


def find_files_by_path_and_unmatched_indexes(root: Path, patterns: Sequence[str]) -> tuple[dict[str, Path], list[int]]:
    """Find what a stack's `include` names: files, folders (their YAML and JSON files) or globs, relative to `root`.

    Returns the files by the name that messages show, and the indexes of the patterns that match no file.
    """
    matches = [_find_yaml_and_json_files(root, pattern) for pattern in patterns]
    files = [file for each in matches for file in each]
    names = [str(file.relative_to(root) if file.is_relative_to(root) else file) for file in files]
    return dict(zip(names, files, strict=True)), [index for index, each in enumerate(matches) if not each]


def _explain_outside_or_above(root: Path, pattern: str) -> str | None:
    """Return why a pattern of `include` is refused: what stands before its first wildcard leads out of the checkout."""
    parts = Path(pattern).parts
    fixed = next((index for index, part in enumerate(parts) if set(part) & set("*?[")), len(parts))
    message = explain_outside(root, str(Path(*parts[:fixed])))
    if message is None and ".." in parts[fixed:]:
        return f'"{pattern}" has ".." after a wildcard; write the folder without it'
    return message


def _find_yaml_and_json_files(root: Path, path_or_glob: str) -> list[Path]:
    if _explain_outside_or_above(root, path_or_glob):
        return []
    path = root / path_or_glob
    if path.is_file():
        return [path]
    files = path.iterdir() if path.is_dir() else root.glob(path_or_glob) if not Path(path_or_glob).is_absolute() else []
    return sorted(file for file in files if file.suffix in (".yaml", ".yml", ".json") and file.is_file())


def _split_into_entries_and_problems(source: SourceFile, content: dict[str, Any]) -> tuple[list[Entry], list[Problem]]:
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


def _find_name_problem_message_or_none(entry: Entry, entries: Entries) -> str | None:
    # Jobs of all kinds share their names, so that results can be looked up by name.
    for section in KINDS if entry.section in KINDS else (entry.section,):
        if other := entries[section].get(entry.name):
            return f'"{entry.name}" is declared already, at {other.source.line((section, entry.name))}'
    if entry.section in (*KINDS, "schedules"):
        return formats.find_output_name_problem(entry.name)
    if entry.section != "vars" and not formats.is_valid_name(entry.name):
        return f'"{entry.name}" must be {formats.NAME_FORM}'
    return None


def _try_to_merge_spec_file_and_find_problems(entry: Entry, root: Path) -> tuple[Entry | None, list[Problem]]:
    """Return an entry with the fields of its spec file, None if that cannot be read, and the problems."""
    if entry.section not in KINDS or not isinstance(entry.value, Mapping) or entry.value.get(SPEC_KEY) is None:
        return entry, []
    name, violations = get_spec_file_name_and_find_violations(entry.value[SPEC_KEY], root)
    if violations:
        return None, [entry.problem(*violation) for violation in violations]
    source, content, problems = SourceFile.read(root / name, name)
    if problems:
        return None, problems
    job, spec_file, duplicates = merge_job_and_build_spec_file_and_violations(
        KINDS[entry.section], entry.value, source, content
    )
    problems = [entry.problem(*violation) for violation in duplicates]
    return replace(entry, value=job, spec_file=spec_file), problems
