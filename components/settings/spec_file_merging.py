"""Merging of spec files, a job's fields as `gcloud --config` and the REST API accept them, into declarations."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic.alias_generators import to_camel, to_snake

from vertex_api.errors import first_problems
from vertex_api.messages import KeyPath
from vertex_api.names import CUSTOM_JOB, Kind
from vertex_api.validation.formats import Violation
from vertex_api.validation.shape import canonicalize

from ..errors import Problem
from ..schema import shapes
from ..schema.declared_job import SPEC_KEY
from ..schema.source import SourceFile, explain_outside


@dataclass(frozen=True)
class SpecFile:
    """A file with fields of a job.

    `prefix` is where its content stands in the job, `fields` are those of the job that come from the file, and
    `declared` those that the declaration has itself. `has_one_pool`: the file's workerPoolSpecs is not a list, but its
    only item.
    """

    source: SourceFile
    prefix: KeyPath
    fields: Mapping[str, Any]
    declared: Mapping[str, Any]
    has_one_pool: bool = False

    def owns_path(self, path: KeyPath) -> bool:
        """Whether a path of the job belongs to the file, rather than to the declaration.

        A path that neither has belongs to the one that has more of it.
        """
        depth = _count_existing_path_parts(self.fields, path)
        return depth > 0 and depth >= _count_existing_path_parts(self.declared, path)

    def problem(self, job_path: KeyPath, message: str) -> Problem:
        """Return a problem at a path of the job, with the file's line."""
        inner_path = job_path[len(self.prefix) :]
        if self.has_one_pool and inner_path[1:2] == (0,):
            inner_path = (inner_path[0], *inner_path[2:])
        return self.source.problem(inner_path, message)


def get_spec_file_name_and_find_violations(spec: Any, root: Path) -> tuple[str, list[Violation]]:
    """Return the file that a job's `spec` names, relative to the project's folder `root`, or violations."""
    named, problems = canonicalize(shapes.SpecFile, spec)
    if isinstance(spec, str):
        return "", [((SPEC_KEY,), f"must be an object with named fields; write spec: {{file: {spec}}}")]
    if problems:
        return "", [((SPEC_KEY, *problem.path), problem.message) for problem in problems]
    name = named["file"]
    if message := explain_outside(root, name):
        return name, [((SPEC_KEY, "file"), message)]
    if Path(name).is_absolute() or not (root / name).is_file():
        message = f'"{name}" is not a file in {root.name}/; write its path relative to the project\'s folder'
        return name, [((SPEC_KEY, "file"), message)]
    return name, []


def merge_job_and_build_spec_file_and_violations(
    kind: Kind, declared: Mapping[str, Any], source: SourceFile, content: Mapping[str, Any]
) -> tuple[dict[str, Any], SpecFile, list[Violation]]:
    """Return a job with the fields of its spec file and of its declaration, and the fields that both have.

    A file for a custom job is a CustomJobSpec (`gcloud ai custom-jobs create --config`), or a CustomJob if it has a
    jobSpec. For a tuning job it is a HyperparameterTuningJob, with or without what gcloud takes as flags. For a
    pipeline it is a TrainingPipeline.
    """
    is_whole = kind != CUSTOM_JOB or "jobSpec" in map(to_camel, content)
    pools = {} if is_whole else {key: [value] for key, value in content.items() if _is_pool_without_list(key, value)}
    fields = content if is_whole else {"jobSpec": {**content, **pools}}
    declared = {key: value for key, value in declared.items() if key != SPEC_KEY}
    job, duplicates = _merge_fields_and_find_duplicates(fields, declared, ())
    spec_file = SpecFile(source, () if is_whole else ("jobSpec",), fields, declared, has_one_pool=bool(pools))
    message = f"is set in {source.name} too; keep one of the two"
    return job, spec_file, [(path, message) for path in first_problems(duplicates)]


def _is_pool_without_list(key: str, value: Any) -> bool:
    """gcloud 528 sends a lone mapping in a file for `custom-jobs create --config` as a list of one (measured)."""
    return to_camel(key) == "workerPoolSpecs" and isinstance(value, Mapping)


def _merge_fields_and_find_duplicates(
    file_fields: Mapping[str, Any], declared_fields: Mapping[str, Any], prefix: KeyPath
) -> tuple[dict[str, Any], list[KeyPath]]:
    """Return the fields of a file and those of the declaration, and the paths of those that both have."""
    merged, duplicates = dict(file_fields), list[KeyPath]()
    for key, value in declared_fields.items():
        if (spelling := _find_key_in_either_spelling_or_none(file_fields, key)) is None:
            merged[key] = value
        elif isinstance(value, Mapping) and isinstance(file_fields[spelling], Mapping):
            merged[spelling], inner = _merge_fields_and_find_duplicates(file_fields[spelling], value, (*prefix, key))
            duplicates += inner
        else:
            duplicates.append((*prefix, key))
    return merged, duplicates


def _find_key_in_either_spelling_or_none(fields: Mapping[str, Any], key: Any) -> str | None:
    """Return the key of a field as it is written, in either spelling; None if it is missing."""
    return next((name for name in (key, to_camel(str(key)), to_snake(str(key))) if name in fields), None)


def _count_existing_path_parts(value: Any, path: KeyPath) -> int:
    """Return how many parts of a path a value has."""
    for depth, part in enumerate(path):
        if isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        elif isinstance(value, Mapping) and (key := _find_key_in_either_spelling_or_none(value, part)) is not None:
            value = value[key]
        else:
            return depth
    return len(path)
