"""Jobs whose fields stand in a file of their own, as `gcloud --config` and the REST API take it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic.alias_generators import to_camel

from vertex_api.kinds import CUSTOM_JOB, Kind
from vertex_api.validation.rules import KeyPath, Violation
from vertex_api.validation.shape import validate_shape

from ..errors import Problem
from ..schema import shapes
from ..schema.job_keys import SPEC
from ..schema.source_file import Source


@dataclass(frozen=True)
class SpecFile:
    """A file with fields of a job: `above` is where its content stands in the job.

    `fields` are those of the job that come from the file, `beside` those that stand beside it. `has_one_pool`: the
    file's workerPoolSpecs is no list, but its only entry.
    """

    source: Source
    above: KeyPath
    fields: Mapping[str, Any]
    beside: Mapping[str, Any]
    has_one_pool: bool = False

    def holds(self, path: KeyPath) -> bool:
        """Whether what stands at a path of the job comes from the file; what stands nowhere is missed where most is."""
        depth = _depth(self.fields, path)
        return depth > 0 and depth >= _depth(self.beside, path)

    def problem(self, path: KeyPath, message: str) -> Problem:
        """A problem at a path of the job, with the line of the file where it stands."""
        inside = path[len(self.above) :]
        if self.has_one_pool and inside[1:2] == (0,):
            inside = (inside[0], *inside[2:])
        return self.source.problem(inside, message)


@dataclass(frozen=True)
class Pasted:
    """A job with the fields of its file, None for both where there is no such file.

    `findings` are about the declaration, `problems` about the file.
    """

    job: dict[str, Any] | None
    file: SpecFile | None
    findings: Sequence[Violation] = ()
    problems: Sequence[Problem] = ()


def pasted(kind: Kind, declared: Mapping[str, Any], root: Path) -> Pasted:
    """A job that has `spec: {file: …}` with what the file holds; its path is relative to `root`, the project's folder.

    A file for a custom job is a CustomJobSpec (`gcloud ai custom-jobs create --config`), or a CustomJob where it has a
    jobSpec; for a tuning job it is a HyperparameterTuningJob, with or without what gcloud takes as flags; for a
    pipeline it is a TrainingPipeline. A field stands in the file or beside it, whichever message it is of.
    """
    named, broken = validate_shape(shapes.SpecFile, declared[SPEC])
    if isinstance(declared[SPEC], str):
        message = f"must be an object with named fields; write spec: {{file: {declared[SPEC]}}}"
        return Pasted(None, None, [((SPEC,), message)])
    if broken:
        return Pasted(None, None, [((SPEC, *problem.path), problem.message) for problem in broken])
    name = named["file"]
    if Path(name).is_absolute() or not (root / name).is_file():
        missing = f'"{name}" is not a file in {root.name}/; write its path relative to the project\'s folder'
        return Pasted(None, None, [((SPEC, "file"), missing)])
    source = Source(root / name, name)
    content, problems = source.read()
    if problems:
        return Pasted(None, None, problems=problems)
    is_whole = kind != CUSTOM_JOB or "jobSpec" in map(to_camel, content)
    pools = {} if is_whole else {key: [one] for key, one in content.items() if _is_one_pool(key, one)}
    fields = content if is_whole else {"jobSpec": content | pools}
    beside = {key: value for key, value in declared.items() if key != SPEC}
    job, twice = _merged(fields, beside, ())
    file = SpecFile(source, () if is_whole else ("jobSpec",), fields, beside, has_one_pool=bool(pools))
    return Pasted(job, file, [(path, f"stands in {name} too; keep one of the two") for path in twice])


def _is_one_pool(key: str, value: Any) -> bool:
    """gcloud 528 sends a lone mapping in a file for `custom-jobs create --config` as a list of one (measured)."""
    return to_camel(key) == "workerPoolSpecs" and isinstance(value, Mapping)


def _merged(fields: Mapping[str, Any], beside: Mapping[str, Any], at: KeyPath) -> tuple[dict[str, Any], list[KeyPath]]:
    """The fields of a file with those that stand beside it, and the paths of those that stand in both."""
    merged, twice = dict(fields), list[KeyPath]()
    for key, value in beside.items():
        if (there := _written(fields, key)) is None:
            merged[key] = value
        elif isinstance(value, Mapping) and isinstance(fields[there], Mapping):
            merged[there], below = _merged(fields[there], value, (*at, key))
            twice += below
        else:
            twice.append((*at, key))
    return merged, twice


def _written(fields: Mapping[str, Any], key: Any) -> str | None:
    """The key of a field as it is written, in either spelling; None where it is not there."""
    return next((name for name in fields if name == key or to_camel(name) == to_camel(str(key))), None)


def _depth(value: Any, path: KeyPath) -> int:
    """How much of a path a value has."""
    for depth, part in enumerate(path):
        if isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        elif isinstance(value, Mapping) and (key := _written(value, part)) is not None:
            value = value[key]
        else:
            return depth
    return len(path)
