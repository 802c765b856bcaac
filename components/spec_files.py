"""Jobs whose fields stand in a file of their own, as `gcloud --config` and the REST API take it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic.alias_generators import to_camel

from components import shapes
from components.errors import Problem
from components.job_keys import SPEC
from components.sources import Source
from vertex.kinds import CUSTOM_JOB, Kind
from vertex.rules import Finding, KeyPath
from vertex.validation import shape


@dataclass(frozen=True)
class SpecFile:
    """A file with fields of a job: `keys` are the job's own that come from it, `above` where its content stands."""

    source: Source
    above: KeyPath
    keys: frozenset[str]

    def holds(self, path: KeyPath) -> bool:
        """Whether what stands at a path of the job comes from the file."""
        return bool(path) and path[0] in self.keys

    def problem(self, path: KeyPath, message: str) -> Problem:
        """A problem at a path of the job, with the line of the file where it stands."""
        return self.source.problem(path[len(self.above) :], message)


@dataclass(frozen=True)
class Pasted:
    """A job with the fields of its file, None for both where there is no such file.

    `findings` are about the declaration, `problems` about the file.
    """

    job: dict[str, Any] | None
    file: SpecFile | None
    findings: Sequence[Finding] = ()
    problems: Sequence[Problem] = ()


def pasted(kind: Kind, declared: Mapping[str, Any], root: Path) -> Pasted:
    """A job that has `spec: {file: …}` with what the file holds; its path is relative to `root`, the project's folder.

    A file for a custom job is a CustomJobSpec (`gcloud ai custom-jobs create --config`), or a CustomJob where it has a
    jobSpec; for a tuning job it is a HyperparameterTuningJob, with or without what gcloud takes as flags; for a
    pipeline it is a TrainingPipeline.
    """
    named, broken = shape(shapes.SpecFile, declared[SPEC])
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
    fields = content if is_whole else {"jobSpec": content}
    keys = frozenset(name for key in fields for name in (key, to_camel(key)))
    own = {key: value for key, value in declared.items() if key != SPEC}
    twice = [key for key in own if {key, to_camel(key)} & keys]
    findings: list[Finding] = [((key,), f"stands in {name} too; keep one of the two") for key in twice]
    beside = {key: value for key, value in own.items() if key not in twice}
    return Pasted(fields | beside, SpecFile(source, () if is_whole else ("jobSpec",), keys), findings)
