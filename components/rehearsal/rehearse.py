"""The command `vertex-training rehearse`: the jobs of a stack or of a preview, small, before they are submitted.

Declarations say what is run, and a preview only which jobs: its inputs have no vars left that could be made smaller.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from vertex_api.errors import VertexError
from vertex_api.messages import show_path, value_at
from vertex_api.names import did_you_mean
from vertex_api.scalars import to_seconds
from vertex_api.validation.shape import canonicalize

from ..errors import ComponentError, DeclarationErrors, DockerUnavailable, EmulatorFailed, Problem
from ..plan.training import REHEARSE, Training
from ..rehearsals import VERSION, JobReport, Rehearsal, load, to_json
from ..review import changes
from ..review.commands import read
from ..review.document import PreviewDocument
from ..schema import shapes
from ..settings.offline import NoStack
from ..settings.settings import Settings
from . import report
from .runner import Runner, RunRefused, Source, changed, in_order, references, split_assignments
from .target import throw_away

_NOT_DECLARED = "is not declared in the stack's files: a job of a Python program cannot be rehearsed"
_FORMS = "vars.NAME=VALUE, timeout=DURATION, maxTrialCount=N or args=[…]"


@dataclass(frozen=True)
class Options:
    """The arguments of the command: `only` are names of jobs, `set` and `secret` are as those of `run`."""

    preview: str | None = None
    stack: str | None = None
    only: Sequence[str] = ()
    set: Sequence[str] = ()
    secret: Sequence[str] = ()
    against: Path | None = None
    save: Path | None = None
    format: str = "table"


def rehearse(options: Options) -> int:
    """Rehearse jobs, write the report to standard output, and return the exit code.

    It is 1 if a job failed, and 2 if nothing was rehearsed for what standard error says.
    """
    try:
        own = _own_size(options.set)
        stored = load(options.against) if options.against else None
        preview = PreviewDocument.parse(read(options.preview), options.preview) if options.preview else None
        if preview and preview.has_failed:
            raise RunRefused(f"{options.preview}: the preview failed; `vertex-training review` lists its problems")
        save = options.save.absolute() if options.save else None
        source = Source.read(Path.cwd(), options.stack or (preview.stack if preview else None), options.secret)
        os.chdir(source.root)
        rehearsal = _Rehearser(source, own).rehearse(preview, options.only)
    except (ComponentError, NoStack, VertexError) as error:
        sys.stderr.write(f"vertex-training: {error}\n")
        return 2
    except OSError as error:
        sys.stderr.write(f"vertex-training: {error.filename}: {error.strerror}\n")
        return 2
    if stored:
        rehearsal = report.compare(rehearsal, stored, str(options.against))
    sys.stdout.write(report.RENDERERS[options.format](rehearsal))
    if save:
        save.write_text(to_json(rehearsal))
    return int(any(job["outcome"] == "failed" for job in rehearsal["jobs"]))


def _own_size(assignments: Sequence[str]) -> shapes.Rehearse:
    """Return what `--set` makes of all jobs. Raises RunRefused and DeclarationErrors."""
    variables, others = split_assignments(assignments, _FORMS)
    size, misshapen = canonicalize(shapes.Rehearse, {**others, **({"vars": variables} if variables else {})})
    if misshapen:
        raise DeclarationErrors([Problem("--set", show_path(each.path), each.message) for each in misshapen])
    return cast(shapes.Rehearse, size)


class _Rehearser:
    """Rehearses jobs of a stack; `own` is what is said of all of them."""

    def __init__(self, source: Source, own: shapes.Rehearse) -> None:
        self._source, self._own = source, own
        self._settings = source.settings(own.get("vars", {}))
        self._jobs = {each.name: each for each in self._settings.plan.trainings if not each.is_adopted}
        self._reports: dict[str, JobReport] = {}

    def rehearse(self, preview: PreviewDocument | None, only: Sequence[str]) -> Rehearsal:
        """Rehearse the jobs of a preview, or all, or those of them that are named. Raises ComponentError."""
        kinds = {name: each.kind.type for name, each in self._jobs.items()}
        if preview:
            kinds = _submitted(preview, self._settings)
        if unknown := [name for name in only if name not in kinds]:
            what = "that the preview creates or replaces" if preview else "of this stack"
            raise RunRefused(f"--only: {unknown[0]} is no job {what}{did_you_mean(unknown[0], kinds)}")
        wanted = {name: kind for name, kind in kinds.items() if not only or name in only}
        small = [self._small(each) for each in in_order(self._jobs, wanted.keys() & self._jobs.keys())]
        with throw_away() as folder:
            runner = Runner(self._source, folder, _say)
            for settings, training in small:
                done = self._blocked(training) or _run(runner, settings, training)
                _say(f"{training.name}: {done['outcome']}")
                self._reports[training.name] = done
        for name in sorted(wanted.keys() - self._jobs.keys()):
            self._reports[name] = report.skipped(name, wanted[name], _NOT_DECLARED)
        return {
            "version": VERSION,
            "project": self._settings.pulumi_project,
            "stack": self._settings.stack,
            "commit": _commit(),
            "jobs": [*self._reports.values()],
        }

    def _small(self, training: Training) -> tuple[Settings, Training]:
        """Return a job as small as the options, the job itself and the stack say, in this order; with its settings."""
        sizes: list[shapes.Rehearse] = [self._settings.plan.stack.get(REHEARSE, {}), training.rehearse, self._own]
        merged = cast(shapes.Rehearse, {key: value for size in sizes for key, value in size.items()})
        variables = {name: value for size in sizes for name, value in size.get("vars", {}).items()}
        settings = self._source.settings(variables) if variables else self._settings
        found = next(each for each in settings.plan.trainings if each.name == training.name)
        return settings, shrink(found, merged)

    def _blocked(self, training: Training) -> JobReport | None:
        """Return the report of a job that cannot run, None if it can."""
        reason = ""
        everything = {each.name: each for each in self._settings.plan.trainings}
        for name in sorted(references(training, everything) | training.upstream & everything.keys()):
            if everything[name].is_adopted and name in references(training, everything):
                reason = f"uses results of {name}, which exists on Vertex AI only"
            elif name in self._reports and self._reports[name]["outcome"] != "succeeded":
                reason = f"comes after {name}, which {_OUTCOMES[self._reports[name]['outcome']]}"
        reason = reason or self._source.missing_secrets([training])
        return report.skipped(training.name, training.kind.type, reason) if reason else None


_OUTCOMES = {"failed": "failed", "skipped": "was skipped"}


def _submitted(preview: PreviewDocument, settings: Settings) -> dict[str, str]:
    """Return the kind of each job that a preview submits, or gives to a schedule that it changes, by name."""
    found = {
        step.name: changes.KINDS_BY_TYPE[step.type].type
        for step in preview.steps
        if step.type in changes.KINDS_BY_TYPE and step.op in ("create", "replace") and not step.inputs.get("adopt")
    }
    schedules = changes.schedules(preview.steps, preview.steps, preview.diagnostics)
    moved = {each.name for each in schedules if each.change != "removed"}
    of_schedules = {name for each in settings.schedules if each.name in moved for name in each.jobs}
    return found | {name: each.kind.type for name, each in settings.scheduled.items() if name in of_schedules}


def shrink(training: Training, size: shapes.Rehearse) -> Training:
    """Return a job that is no larger than a size says: `args` are added to those of its replicas.

    Raises DeclarationErrors if it is then invalid.
    """
    fields = json.loads(json.dumps(training.job.fields))
    job_spec = value_at(fields, training.job.job_spec_path)
    if (timeout := size.get("timeout")) and to_seconds(timeout) < training.job.max_seconds:
        job_spec.setdefault("scheduling", {})["timeout"] = timeout
    for pool in job_spec["workerPoolSpecs"] if "args" in size else ():
        program = pool.get("containerSpec", pool.get("pythonPackageSpec"))
        if program is not None:
            program["args"] = [*program.get("args", ()), *size["args"]]
    if (most := size.get("maxTrialCount")) and training.job.study_spec:
        holder = value_at(fields, training.job.job_spec_path[:-1])
        for key in ("maxTrialCount", "parallelTrialCount", "maxFailedTrialCount"):
            if key in holder:
                holder[key] = min(holder[key], most)
    return changed(training, fields, f"{REHEARSE} of {training.name}")


def _run(runner: Runner, settings: Settings, training: Training) -> JobReport:
    """Run a job, and return its report, also if it cannot be run. Raises what no other job could run with either."""
    name, kind = training.name, training.kind.type
    try:
        return report.ended(name, kind, runner.run(settings, training, follow_log=False))
    except (DockerUnavailable, EmulatorFailed):
        raise
    except RunRefused as refusal:
        return report.skipped(name, kind, str(refusal))
    except (ComponentError, VertexError) as error:
        return report.failed(name, kind, str(error))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201


def _commit() -> str | None:
    """Return the commit that is checked out, None outside a git repository."""
    try:
        done = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
