"""The command `vertex-training rehearse`: the jobs of a stack or of a preview, small, before they are submitted.

Declarations say what is run, and a preview only which jobs: its inputs have no vars left that could be made smaller.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from vertex_api.errors import VertexError
from vertex_api.messages import show_path, value_at
from vertex_api.names import did_you_mean
from vertex_api.scalars import to_seconds
from vertex_api.validation.shape import canonicalize

from ..errors import ComponentError, DeclarationErrors, DockerUnavailable, EmulatorFailed, Problem, os_error
from ..plan.training import REHEARSE, Training
from ..rehearsal_file import VERSION, JobReport, Rehearsal, load, to_json
from ..review import changes
from ..review.commands import read
from ..review.document import PreviewDocument
from ..schema import shapes
from ..schema.source import explain_written
from ..settings.offline import NoStack
from ..settings.settings import Settings
from . import checkout, drill, report
from .access import Access
from .inputs import Inputs
from .runner import Runner, RunRefused, Source, changed, in_order, references, refuse_bare_vars, split_assignments
from .target import throw_away

_NOT_DECLARED = "is not declared in the stack's files: a job of a Python program cannot be rehearsed"
_FORMS = "vars.NAME=VALUE, timeout=DURATION, maxTrialCount=N or args=[…]"


@dataclass(frozen=True)
class Options:
    """The arguments of the command: `only` are names of jobs; those from `set` to `fetch_gb` are as of `run`.

    `drill` has names of faults, with commas between them. Without `inputs` or `no_inputs`, jobs see what the stack's
    own emulator holds. With `enforce`, calls are refused that the stack does not grant.
    """

    preview: str | None = None
    stack: str | None = None
    only: Sequence[str] = ()
    set: Sequence[str] = ()
    secret: Sequence[str] = ()
    inputs: Path | None = None
    no_inputs: bool = False
    acting: str | None = None
    write: Sequence[str] = ()
    fetch_gb: int | None = None
    drill: str = ""
    against: Path | None = None
    base: str | None = None
    save: Path | None = None
    format: str = "table"
    enforce: bool = False


def rehearse(options: Options) -> int:
    """Rehearse jobs, write the report to standard output, and return the exit code.

    It is 1 if a job failed, and 2 if nothing was rehearsed for what standard error says.
    """
    try:
        faults = list(dict.fromkeys(filter(None, options.drill.split(","))))
        for fault in [fault for fault in faults if fault not in drill.FAULTS]:
            raise RunRefused(
                f"--drill: {fault} is not one of {', '.join(drill.FAULTS)}{did_you_mean(fault, drill.FAULTS)}"
            )
        stored = load(options.against) if options.against else None
        preview = PreviewDocument.parse(read(options.preview), options.preview) if options.preview else None
        if preview and preview.has_failed:
            raise RunRefused(f"{options.preview}: the preview failed; `vertex-training review` lists its problems")
        save = options.save.absolute() if options.save else None
        if save and not save.parent.is_dir():
            raise RunRefused(f"--save: there is no folder {save.parent}; make it first")
        if save and (message := explain_written(Path.cwd(), save)):
            raise RunRefused(f"--save: {message}")
        objects = options.inputs.absolute() if options.inputs else None
        stack = options.stack or (preview.stack if preview else None)
        source = Source.read(Path.cwd(), stack, options.secret, options.acting, options.write, options.fetch_gb)
        os.chdir(source.root)
        own = _own_size(options.set, source)
        rehearser = _Rehearser(source, own, Inputs.of(objects, options.no_inputs), options.enforce)
        wanted = rehearser.wanted(preview, options.only)
        if source.actor:
            jobs = rehearser.jobs
            source.actor.check(in_order(jobs, wanted.keys() & jobs.keys()), source.stack)
        with throw_away() as folder:
            base = _base(options, rehearser, source, folder / "base") if options.base else None
            rehearsal = rehearser.rehearse(wanted, folder, faults=faults)
            if base:
                stored = base(wanted)
    except (ComponentError, NoStack, VertexError) as error:
        sys.stderr.write(f"vertex-training: {error}\n")
        return 2
    except OSError as error:
        sys.stderr.write(f"vertex-training: {os_error(error)}\n")
        return 2
    rehearsal["inputs"] = str(options.inputs or rehearser.inputs.name)
    if stored:
        rehearsal = report.compare(rehearsal, stored, options.base or str(options.against))
    sys.stdout.write(report.RENDERERS[options.format](rehearsal))
    if save:
        save.write_text(to_json(rehearsal), encoding="utf-8")
    return int(any(job["outcome"] == "failed" for job in rehearsal["jobs"]))


def _own_size(assignments: Sequence[str], source: Source) -> shapes.Rehearse:
    """Return what `--set` makes of all jobs. Raises RunRefused and DeclarationErrors."""
    variables, others = split_assignments(assignments, _FORMS)
    if others:
        refuse_bare_vars(others, shapes.Rehearse.__annotations__, source.settings({}).vars)
    size, misshapen = canonicalize(shapes.Rehearse, {**others, **({"vars": variables} if variables else {})})
    if misshapen:
        raise DeclarationErrors([Problem("--set", show_path(each.path), each.message) for each in misshapen])
    return cast(shapes.Rehearse, size)


def _base(
    options: Options, rehearser: "_Rehearser", source: Source, place: Path
) -> Callable[[Mapping[str, str]], Rehearsal | None]:
    """Return what rehearses jobs of the base, whose files are written to `place`. Raises RunRefused for a wrong ref.

    A base that cannot be rehearsed is told as such, and does not take the report from the others.
    """
    ref = str(options.base)
    root = checkout.extract(source.root, ref, place)

    def run(wanted: Mapping[str, str]) -> Rehearsal | None:
        try:
            # Its jobs write to the same places as the others, which must not meet.
            with chdir(root), throw_away() as folder:
                older = _Rehearser(source.of(root), rehearser.own, rehearser.inputs, options.enforce, rehearser)
                known = {name: kind for name, kind in wanted.items() if name in older.jobs}
                return older.rehearse(known, folder, f"{ref}: ")
        except (ComponentError, NoStack, VertexError) as error:
            _say(f"{ref}: ", f"there is nothing to compare with: {error}")
            return None

    return run


class _Rehearser:
    """Rehearses the `jobs` of a stack; `own` is the size that all have, `inputs` what is in buckets before them.

    With `enforce`, calls are refused that the stack does not grant.

    `newer` is that of another commit: its jobs are made small as those are, as far as they have the vars for it.
    """

    def __init__(
        self,
        source: Source,
        own: shapes.Rehearse,
        inputs: Inputs,
        enforce: bool = False,
        newer: "_Rehearser | None" = None,
    ) -> None:
        self.own, self.inputs = own, inputs
        self._source, self._newer = source, newer
        self._loaded: dict[str, Settings] = {}
        self._settings = self._with(own.get("vars", {}))
        self.jobs = {each.name: each for each in self._settings.plan.trainings if not each.is_adopted}
        self._access = Access.of(source.file, enforce)

    def wanted(self, preview: PreviewDocument | None, only: Sequence[str]) -> dict[str, str]:
        """Return the kinds of a preview's jobs, or of all, or of those of them that are named. Raises RunRefused."""
        kinds = {name: each.kind.type for name, each in self.jobs.items()}
        if preview:
            kinds = _submitted(preview, self._settings)
        if unknown := [name for name in only if name not in kinds]:
            other = f"{unknown[0]} is no job that the preview creates or replaces{did_you_mean(unknown[0], kinds)}"
            raise RunRefused(
                f"--only: {other if preview else self._source.not_runnable(unknown[0], self._settings.plan.trainings)}"
            )
        return {name: kind for name, kind in kinds.items() if not only or name in only}

    def rehearse(
        self, wanted: Mapping[str, str], folder: Path, prefix: str = "", faults: Sequence[str] = ()
    ) -> Rehearsal:
        """Rehearse jobs in the throw-away target on a folder, with drills of faults; lines about it have a prefix.

        Raises ComponentError.
        """
        small = [self._small(each) for each in in_order(self.jobs, wanted.keys() & self.jobs.keys())]
        say = partial(_say, prefix)
        self.inputs.put(folder / "gcs", say)
        runner = Runner(self._source, folder, say, self._access)
        reports: dict[str, JobReport] = {}
        for settings, training in small:
            done = self._blocked(training, reports) or _run(runner, settings, training, faults)
            say(f"{training.name}: {done['outcome']}")
            reports[training.name] = done
        for name in sorted(wanted.keys() - self.jobs.keys()):
            reports[name] = report.skipped(name, wanted[name], _NOT_DECLARED)
        return {
            "version": VERSION,
            "project": self._settings.pulumi_project,
            "stack": self._settings.stack,
            "commit": checkout.commit(self._source.root),
            "jobs": [*reports.values()],
        }

    def _small(self, training: Training) -> tuple[Settings, Training]:
        """Return a job as small as it can be, with its settings."""
        size = self._size(training.name)
        settings = self._with(size.get("vars", {}))
        found = next(each for each in settings.plan.trainings if each.name == training.name)
        return settings, shrink(found, size)

    def _size(self, name: str) -> shapes.Rehearse:
        """Return the size of a job: what the options say of it counts first, then the job itself, then the stack.

        Of a job of another commit it is that of the newer one, but for its arguments, which its own program must know.
        """
        sizes: list[shapes.Rehearse] = [self._settings.plan.stack.get(REHEARSE, {}), self.jobs[name].rehearse, self.own]
        variables = {key: value for size in sizes for key, value in size.get("vars", {}).items()}
        merged = {key: value for size in sizes for key, value in size.items()} | {"vars": variables}
        if self._newer and name in self._newer.jobs:
            newer = {key: value for key, value in self._newer._size(name).items() if key != "args"}
            merged = {**newer, **({"args": merged["args"]} if "args" in merged else {})}
        return cast(shapes.Rehearse, merged)

    def _with(self, variables: Mapping[str, Any]) -> Settings:
        """Return the settings with other values of vars. Raises DeclarationErrors."""
        key, given = json.dumps(variables, sort_keys=True), self.own.get("vars", {})
        if key not in self._loaded:
            try:
                self._loaded[key] = self._source.settings(variables, given)
            except DeclarationErrors:
                if self._newer is None:
                    raise
                known = {name: value for name, value in variables.items() if self._has(name, value)}
                self._loaded[key] = self._source.settings(known, given)
        return self._loaded[key]

    def _has(self, name: str, value: Any) -> bool:
        try:
            self._source.settings({name: value})
        except DeclarationErrors:
            return False
        return True

    def _blocked(self, training: Training, reports: Mapping[str, JobReport]) -> JobReport | None:
        """Return the report of a job that cannot run, None if it can."""
        reason = ""
        everything = {each.name: each for each in self._settings.plan.trainings}
        for name in sorted(references(training, everything) | training.upstream & everything.keys()):
            if everything[name].is_adopted and name in references(training, everything):
                reason = f"uses results of {name}, which exists on Vertex AI only"
            elif name in reports and reports[name]["outcome"] != "succeeded":
                reason = f"comes after {name}, which {_OUTCOMES[reports[name]['outcome']]}"
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


def _run(runner: Runner, settings: Settings, training: Training, faults: Sequence[str]) -> JobReport:
    """Run a job and its drills, and return its report, also if it cannot be run.

    Raises what no other job could run with either.
    """
    name, kind = training.name, training.kind.type
    try:
        ended = runner.run(settings, training, follow_log=False)
        made = report.ended(name, kind, ended, runner.buckets)
        if faults and ended.succeeded:
            made["drills"] = [*drill.drills(runner, settings, training, ended, made, faults)]
    except (DockerUnavailable, EmulatorFailed):
        raise
    except RunRefused as refusal:
        return report.skipped(name, kind, str(refusal))
    except (ComponentError, VertexError) as error:
        return report.failed(name, kind, str(error))
    return made


def _say(prefix: str, line: str) -> None:
    print(f"{prefix}{line}", file=sys.stderr, flush=True)  # noqa: T201
