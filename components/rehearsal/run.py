"""The command `vertex-training run`: one declared job, with other values, after the jobs whose results it uses."""

import itertools
import json
import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from vertex_api.errors import VertexError, without_log_link
from vertex_api.messages import message_fields, set_at, truncate
from vertex_api.names import short_state

from ..errors import ComponentError
from ..jobs.failures import CAUSE_PREFIX, EXCEPTION_PREFIX
from ..own import RUNS
from ..plan.training import Training
from ..schema.source import explain_written
from ..settings.offline import NoStack
from ..settings.settings import Settings
from ..trees import copy_file, require_space
from .access import Access
from .inputs import Inputs, missing, not_found
from .runner import (
    Ended,
    Runner,
    RunRefused,
    Source,
    changed,
    in_order,
    references,
    refuse_bare_vars,
    split_assignments,
)
from .target import throw_away

_MAX_NAMED = 3
_EXIT_STATUS = re.compile(r"non-zero status of (\d+)")


def run(
    name: str,
    stack: str | None,
    assignments: Sequence[str],
    secrets: Sequence[str],
    output: Path | None,
    inputs: Path | None = None,
    no_inputs: bool = False,
    acting: str | None = None,
    write: Sequence[str] = (),
    enforce: bool = False,
    fetch_gb: int | None = None,
) -> int:
    """Run a job, print its log, and return the exit code: that of its container, 1 for another failure, 2 if refused.

    `assignments` are `vars.NAME=VALUE`, or `FIELD.PATH=VALUE` for a field of the job. `secrets`, `acting`, `write`
    and `fetch_gb` are those of `Source.read`. Outputs are copied to `output`. Without `inputs` or `no_inputs`, the job
    sees what the stack's own emulator holds. With `enforce`, calls are refused that the stack does not grant.
    """
    try:
        variables, fields = split_assignments(assignments, "vars.NAME=VALUE or FIELD=VALUE")
        source = Source.read(Path.cwd(), stack, secrets, acting, write, fetch_gb)
        settings = source.settings(variables, variables)
        chain = _chain(source, settings, name)
        chain[-1] = _assigned(chain[-1], fields, settings.vars)
        if missing := source.missing_secrets(chain):
            raise RunRefused(f"{name} {missing}")
        if source.actor:
            source.actor.check(chain, source.stack)
        output, inputs = (each.absolute() if each else None for each in (output, inputs))
        os.chdir(source.root)
        access = Access.of(source.file, enforce)
        given = Inputs.of(inputs, no_inputs)
        if message := explain_written(source.root, output or source.root / RUNS):
            raise RunRefused(f"--output: {message}")
        say = partial(print, flush=True)
        with throw_away() as folder:
            given.put(folder / "gcs", say)
            return _run(Runner(source, folder, say, access), settings, chain, output, given)
    except (ComponentError, NoStack, VertexError) as error:
        sys.stderr.write(f"vertex-training: {error}\n")
        return 2


def _chain(source: Source, settings: Settings, name: str) -> list[Training]:
    """Return a job after all jobs whose results it uses, in the order in which they run. Raises RunRefused."""
    everything = {each.name: each for each in settings.plan.trainings}
    known = {name: each for name, each in everything.items() if not each.is_adopted}
    if name not in known:
        raise RunRefused(source.not_runnable(name, settings.plan.trainings))
    chain = in_order(known, [name])
    for each in chain:
        if adopted := sorted(references(each, everything) - known.keys()):
            raise RunRefused(
                f"{each.name} uses results of {adopted[0]}, which exists on Vertex AI only; "
                f"take lifecycle.adopt out of {adopted[0]} to run it here first"
            )
    return chain


def _assigned(training: Training, fields: Mapping[str, Any], variables: Collection[str]) -> Training:
    """Return a job with other values in its fields. Raises RunRefused, and DeclarationErrors if it is then invalid."""
    if not fields:
        return training
    refuse_bare_vars(fields, message_fields(training.kind.typed_dict), variables)
    body = json.loads(json.dumps(training.job.fields))
    for path, value in fields.items():
        try:
            set_at(body, path, value)
        except (KeyError, IndexError, TypeError):
            raise RunRefused(f"--set: {path} is not in {training.name}: a part of the path is missing") from None
    return changed(training, body, "--set")


def _run(runner: Runner, settings: Settings, chain: Sequence[Training], output: Path | None, inputs: Inputs) -> int:
    """Run jobs one after another, the last of which counts."""
    for training in chain:
        ended = runner.run(settings, training, follow_log=True)
        if not ended.succeeded:
            state = str(ended.job["state"])
            message = without_log_link(ended.job.get("error", {}).get("message", state))
            sys.stderr.write(f"{training.name}: {short_state(state)}: {' '.join(message.split())}\n")
            explained = (EXCEPTION_PREFIX, CAUSE_PREFIX)
            causes = [line.strip() for line in ended.failure.splitlines() if line.startswith(explained)]
            for uri in missing(ended.submitted, ended.written, runner.buckets):
                causes += not_found(uri, inputs.name)
            sys.stderr.writelines(f"{training.name}: {cause}\n" for cause in (*causes, *ended.needs.lines))
            match = _EXIT_STATUS.search(message)
            return int(match[1]) if match else 1
        report = _report(training.name, ended, output) if training is chain[-1] else ()
        for line in itertools.chain(report, (f"{training.name}: {each}" for each in ended.needs.lines)):
            print(line, flush=True)  # noqa: T201
    return 0


def _report(name: str, ended: Ended, output: Path | None) -> Iterator[str]:
    """Copy what a job has written, and yield what to say of it."""
    best = ended.results.get("bestTrial") or {}
    if metrics := best.get("metrics"):
        shown = ", ".join(f"{key} {value:.4g}" for key, value in metrics.items())
        parameters = ", ".join(f"{key} {truncate(str(value))}" for key, value in best["parameters"].items())
        yield f"{name}: {shown} in trial {best['id']} ({parameters})"
    files, others = ended.tree
    has_outputs = bool(files or others)
    yield from (f"{name}: {note}" for note in ended.notes if has_outputs or not note.startswith("succeeded"))
    if not has_outputs:
        yield f"{name}: succeeded; it wrote no outputs: files stay if they are in AIP_MODEL_DIR or below /gcs"
        return
    place = output or Path(RUNS) / f"{name}-{datetime.now():%Y%m%d-%H%M%S}"
    try:
        place.mkdir(parents=True, exist_ok=True)
        require_space(files, place)
        for file in files:
            copy = place / file.relative_to(ended.outputs)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy_file(file, ended.outputs, copy)
    except OSError as error:
        reason = f"{error.filename or place}: {error.strerror or error}"
        raise RunRefused(f"{name}: succeeded, and its outputs cannot be copied: {reason}") from None
    if others:
        shown = ", ".join(repr(str(other.relative_to(ended.outputs))) for other in others[:_MAX_NAMED])
        more = f" and {len(others) - _MAX_NAMED:,} more" if len(others) > _MAX_NAMED else ""
        yield f"{name}: not copied, because only files are, and those that can be read: {shown}{more}"
    yield f"{name}: succeeded; its outputs are in {place}"
