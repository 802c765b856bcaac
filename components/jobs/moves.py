"""Moves: a job that differs from its run in names alone goes on, and has what is new of them from its next run on.

The engine gives `check` what the state has of the same resource, by its URN or an alias of it. If both are the same
training, the run stays as it is recorded: names of the resource, its stack and project, of upstream jobs, data and
secrets, of an image and a package with the same content, the labels and the display name do not train anything. The
output folder follows from all else, so it stays too.

What a program alone knows of a job comes with it as the input `derived`, which `check` takes out: no state has it.
"""

import json
import posixpath
import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pulumi

from vertex_api.job import Job, stored_job
from vertex_api.names import Kind, join_names

from ..plan.training import replaced
from ..runtime.target import LOCAL_PREFIX
from ..schema import interpolation, shapes
from .identity import NAME_FIELDS, digest, without_names

DERIVED, NEXT_RUN = "derived", "nextRun"
_SAME, _SAME_VALUES = ("parent", "tensorboard", "rerun"), ("jobs", "secrets", "data")
_FOLDER = ("baseOutputDirectory", "outputUriPrefix")
_MOST_ALONE = 5
_OF_A_RUN = re.compile(r"(gs://[^/]+)/(.+/)?[^/]+/[0-9a-f]{8}")
"""The folder of a run that the program has made up: `STAGING/JOB/DIGEST`."""


def derived(
    declared: Job,
    whole: Job,
    images: Collection[str],
    packages: Mapping[str, shapes.PythonPackage],
    *,
    runs_relabelled: bool = False,
) -> dict[str, Any]:
    """Return the input `derived` of a job that is `declared`, and registered with the fields of `whole`.

    It has the output `folder` that the program has made up with the `digest` of the fields, and of the contents that
    the job refers to those that the program makes: URIs of images, and arguments of packages by URI.
    """
    found: dict[str, Any] = {}
    folder = _folder(whole)
    if folder != _folder(declared):
        found = {"folder": folder, "digest": digest(whole.fields)}
    if images or packages:
        texts = {*_texts(whole.fields)}
        if used := sorted(texts.intersection(images)):
            found["images"] = used
        if uploaded := {uri: dict(packages[uri]) for uri in sorted(texts & packages.keys())}:
            found["packages"] = uploaded
    if runs_relabelled:
        found["relabel"] = "run"
    return found


def placed(job: Job, derived: Mapping[str, Any]) -> Job:
    """Return a job with an output folder of its own if a transform has edited what the program has derived one from.

    One that the transform has set stays. It is not known as long as the fields are not.
    """
    folder = derived.get("folder")
    if not folder or _folder(job) != folder or digest(job.fields) == derived["digest"]:
        return job
    if pulumi.contains_unknowns(job.fields):
        return job
    return _with_folder(job, f"{posixpath.dirname(folder)}/{digest(folder, job.fields)[:8]}")


def carried(kind: Kind, olds: Mapping[str, Any], inputs: dict[str, Any], derived: Mapping[str, Any]) -> dict[str, Any]:
    """Return other inputs with the run that `olds` has if they would run the same, else `inputs` themselves.

    They have `nextRun` then: the display name and the labels that the run does not have yet.
    """
    if not olds.get("spec") or olds.get("adopt") or inputs.get("adopt"):
        return inputs
    if all(olds.get(key) == inputs.get(key) for key in ("spec", "verify", *_SAME, *_SAME_VALUES)):
        return {**inputs}  # as below, for less: most jobs of most previews
    ran, job = stored_job(kind, olds["spec"]), Job(kind, inputs["spec"])
    if not _is_same_run(olds, ran, inputs, job, derived):
        return inputs
    kept = {**inputs, **{key: olds[key] for key in (*_SAME_VALUES, "verify") if key in olds}, "spec": ran.fields}
    wanted = {key: job.fields.get(key) or {} for key in NAME_FIELDS}
    if pending := {key: value for key, value in wanted.items() if value != (ran.fields.get(key) or {})}:
        kept[NEXT_RUN] = pending
    return kept


def _is_same_run(
    olds: Mapping[str, Any], ran: Job, inputs: Mapping[str, Any], job: Job, derived: Mapping[str, Any]
) -> bool:
    if any((olds.get(key) or None) != (inputs.get(key) or None) for key in _SAME):
        return False
    if any(_values(olds.get(key)) != _values(inputs.get(key)) for key in _SAME_VALUES):
        return False
    is_made_up = bool(derived.get("folder")) and _is_moved(ran, job, inputs["parent"])
    before, after = (
        _anonymous(each, props, "relabel" not in derived, is_made_up) for each, props in ((ran, olds), (job, inputs))
    )
    return _is_same(before, after, derived)


def _values(named: Any) -> list[str]:
    """Return the values of a map without their names. An unknown one equals no other."""
    return sorted(json.dumps(each, sort_keys=True, default=repr) for each in (named or {}).values())


def _is_moved(ran: Job, job: Job, parent: str) -> bool:
    """Return whether the folder of a run is one of the program's, and not lost: it is in the bucket that is used now.

    On this machine a bucket is a folder of the emulator, which stays.
    """
    before, after = (_OF_A_RUN.fullmatch(_folder(each)) for each in (ran, job))
    return bool(before and after and (before[1] == after[1] or parent.startswith(LOCAL_PREFIX)))


def _anonymous(job: Job, props: Mapping[str, Any], ignores_labels: bool, is_made_up: bool) -> Any:
    """Return the fields of a job without names: references lead to ids of jobs and digests of secrets."""
    fields: Any = (_with_folder(job, "") if is_made_up else job).fields
    if ignores_labels:
        fields = without_names(fields)
    jobs, secrets = props.get("jobs") or {}, props.get("secrets") or {}
    if not (jobs or secrets):
        return fields
    tables: dict[str, dict[str, str]] = {interpolation.JOBS: {}, "secrets": {}}
    for _, reference in interpolation.references(fields):
        table, _, rest = reference.partition(".")
        if table == interpolation.JOBS:
            name, result = interpolation.split_result(rest, jobs)
            tables[table][rest] = f"${{{table}.{jobs.get(name, name)}.{result}}}"
        elif table == "secrets":
            tables[table][rest] = f"${{{table}.{digest(secrets.get(rest, rest))}}}"
    return interpolation.resolve(fields, tables)


def _is_same(before: Any, after: Any, derived: Mapping[str, Any]) -> bool:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return before.keys() == after.keys() and all(_is_same(before[key], after[key], derived) for key in before)
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return all(_is_same(*pair, derived) for pair in zip(before, after, strict=True))
    if isinstance(before, str) and isinstance(after, str) and before != after:
        return _has_same_content(before, after, derived)
    return bool(before == after)


def _has_same_content(before: str, after: str, derived: Mapping[str, Any]) -> bool:
    """Return whether two URIs are of one content under two names.

    The program builds the image or package `after`, so what ends its URI is a digest of the content. That of a package
    has its name in it, so it is computed for the other name.
    """
    if after in derived.get("images", ()):
        return before.rpartition(":")[2] == after.rpartition(":")[2]
    if package := derived.get("packages", {}).get(after):
        # Of a higher floor, and only for packages that are renamed.
        packages = import_module(f"{__package__.rpartition('.')[0]}.packages")
        name, _, tag = posixpath.basename(before).removesuffix(".tar.gz").rpartition("-")
        return bool(name) and bool(packages.SourceDistribution.of(Path.cwd(), name, package).tag == tag)
    return False


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for child in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(child)


def _folder(job: Job) -> str:
    return str((job.job_spec.get(_FOLDER[0]) or {}).get(_FOLDER[1], ""))


def _with_folder(job: Job, folder: str) -> Job:
    job_spec = {**job.job_spec, _FOLDER[0]: {_FOLDER[1]: folder}}
    return Job(job.kind, replaced(job.fields, job.job_spec_path, job_spec))


class Waiting:
    """The jobs of a run of `pulumi` that have not all of their labels and their display name yet."""

    def __init__(self) -> None:
        self._fields: dict[str, list[str]] = {}
        self._alone = 0

    def add(self, job_name: str, inputs: Mapping[str, Any]) -> None:
        """Record a job of which `check` has returned these inputs."""
        if pending := inputs.get(NEXT_RUN):
            self._fields[job_name] = sorted(pending)

    def take_line(self, *, is_last: bool = True) -> str:
        """Return what a preview says of them, and begin anew; "" without any.

        Jobs of a program have a line each, as nobody knows which is the last one: so only the first few.
        """
        fields, self._fields = self._fields, {}
        names = sorted({name for each in fields.values() for name in each})
        if not fields:
            return ""
        self._alone += not is_last
        if self._alone > _MOST_ALONE and not is_last:
            shown = "further jobs" if self._alone == _MOST_ALONE + 1 else ""
        else:
            shown = join_names(sorted(fields))
        return shown and f"{' and '.join(names)}: from their next run on, of {shown}"


@cache
def waiting() -> Waiting:
    """Return those of this process, which Pulumi starts and ends with each run."""
    return Waiting()
