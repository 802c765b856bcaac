"""The report of a rehearsal: what it says of each job, and how it is shown."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from vertex_api.errors import visible
from vertex_api.names import JobJson

from ..rehearsal_file import Drill, JobReport, Rehearsal, Replica, size, to_json
from . import inputs
from .access import listed
from .runner import Ended

MAX_REASON_LINES, MAX_REASON = 10, 2_000
MAX_FILES = 20


def skipped(name: str, kind: str, reason: str) -> JobReport:
    """Return the report of a job that was not run."""
    return {"name": name, "kind": kind, "outcome": "skipped", "reason": reason}


def failed(name: str, kind: str, reason: str) -> JobReport:
    """Return the report of a job that could not be submitted."""
    return {"name": name, "kind": kind, "outcome": "failed", "reason": _last(reason.splitlines())}


def ended(name: str, kind: str, job: Ended, buckets: Path) -> JobReport:
    """Return the report of a job that ran, and that found its inputs in buckets."""
    made: JobReport = {"name": name, "kind": kind, "outcome": "succeeded" if job.succeeded else "failed"}
    if job.failure:
        # The last two lines lead to the emulator, which is gone, and to another `pulumi up`.
        lines = job.failure.removeprefix(f"{name} failed: ").splitlines()
        said = lines[:-2] or lines
        made["reason"] = _last([*said[:1], *said[1:][1 - MAX_REASON_LINES :]])
    made["seconds"] = _seconds(job.job)
    files = job.tree.files
    made["files"] = {
        "count": len(files),
        "bytes": sum(path.stat().st_size for path in files),
        "names": [str(path.relative_to(job.outputs)) for path in files[:MAX_FILES]],
    }
    made["metrics"] = {**job.metrics}
    if best := job.results.get("bestTrial"):
        made["parameters"] = {**best["parameters"]}
    # Those of trials that were cut short are not missing: what cut them short is the reason.
    made["missingMetrics"] = [metric for metric in job.results.get("unreported", ()) if metric not in made["metrics"]]
    made["replicas"] = replicas(job.used)
    made["buckets"] = [*job.buckets]
    made["missingInputs"] = inputs.missing(job.submitted, job.written, buckets)
    made["env"] = sorted(_env(job.submitted.job_spec))
    made["permissions"] = [*job.needs.permissions]
    made["notGranted"], made["remedies"] = [*job.needs.lacking], [*job.needs.remedies]
    if job.notes or job.needs.note:
        made["notes"] = [_last([note]) for note in (*job.notes, job.needs.note) if note]
    return made


def replicas(used: Iterable[Mapping[str, Any]]) -> list[Replica]:
    """Return what each replica used; of a search, what it used in the trial that used most."""
    found: dict[str, Replica] = {}
    for each in used:
        known = found.get(each["task"], {})
        told: Any = {key: each[key] for key in ("machineType", "memoryBytes", "vcpus") if each.get(key)}
        for key in ("peakMemoryBytes", "cpuSeconds"):
            told[key] = max(known.get(key, 0), each[key])
        told["name"] = each["task"]
        found[each["task"]] = told
    return [*found.values()]


def _last(lines: Sequence[str]) -> str:
    return visible("\n".join(lines[-MAX_REASON_LINES:]), kept="\n")[-MAX_REASON:]


def _seconds(job: JobJson) -> float:
    times = [datetime.fromisoformat(str(job[key])) for key in ("startTime", "endTime") if key in job]
    return round((times[1] - times[0]).total_seconds(), 1) if len(times) == 2 else 0.0


def _env(job_spec: Mapping[str, Any]) -> Iterator[str]:
    for pool in job_spec["workerPoolSpecs"]:
        program = pool.get("containerSpec", pool.get("pythonPackageSpec", {}))
        yield from (str(each["name"]) for each in program.get("env", ()))


def compare(rehearsal: Rehearsal, base: Rehearsal, name: str) -> Rehearsal:
    """Return a rehearsal beside that of a base, which `name` names."""
    before = {job["name"]: job for job in base["jobs"]}
    jobs = [_compared(job, before[job["name"]]) if job["name"] in before else job for job in rehearsal["jobs"]]
    return {**rehearsal, "base": name, "jobs": jobs}


def _compared(job: JobReport, base: JobReport) -> JobReport:
    keys = ("outcome", "seconds", "metrics", "parameters", "replicas", "buckets", "hosts", "permissions")
    beside: Any = {key: base[key] for key in keys if key in base}  # type: ignore[literal-required]
    made: JobReport = {**job, "base": beside}
    if job["outcome"] == "succeeded":
        lost = [metric for metric in base.get("metrics") or {} if metric not in job.get("metrics", {})]
        made["missingMetrics"] = list(dict.fromkeys([*job.get("missingMetrics", ()), *lost]))
    if "env" in job and "env" in base:
        made["newEnv"] = sorted({*job["env"]} - {*base["env"]})
    if base["outcome"] == "succeeded":
        made["newPermissions"] = sorted({*job.get("permissions", ())} - {*base.get("permissions", ())})
    return made


_HEADINGS = ("job", "outcome", "seconds", "memory", "files", "metrics")


def _rows(rehearsal: Rehearsal) -> Iterator[tuple[str, ...]]:
    for job in rehearsal["jobs"]:
        base = job.get("base", {})
        files = job.get("files")
        seconds = f"{job['seconds']:.1f}" if "seconds" in job else ""
        if seconds and "seconds" in base:
            seconds = f"{base['seconds']:.1f} → {seconds}"
        outcome = job["outcome"]
        if base and base.get("outcome") != outcome:
            outcome = f"{base.get('outcome')} → {outcome}"  # type: ignore[assignment]
        yield (
            visible(job["name"]),
            visible(outcome),
            seconds,
            _memory(job.get("replicas", ())),
            f"{files['count']}, {size(files['bytes'])}" if files else "",
            ", ".join(_metric_texts(job, base.get("metrics") or {})),
        )


def _memory(replicas: Sequence[Replica]) -> str:
    """Return the memory of the replica that took most, beside what its machine type has."""
    most = max(replicas, key=lambda each: each["peakMemoryBytes"], default=None)
    if most is None:
        return ""
    return size(most["peakMemoryBytes"]) + (f" of {size(most['memoryBytes'])}" if "memoryBytes" in most else "")


def _metric_texts(job: JobReport, base: Mapping[str, float]) -> Iterator[str]:
    for name, value in job.get("metrics", {}).items():
        before = f"{base[name]:.4g} → " if name in base else ""
        yield f"{visible(name)} {before}{value:.4g}"
    yield from (f"{visible(name)} is missing" for name in job.get("missingMetrics", ()))


def _notes(rehearsal: Rehearsal) -> Iterator[tuple[str, list[str]]]:
    """Yield the jobs with what else is to be said of each, in lines."""
    for job in rehearsal["jobs"]:
        lines = [*job.get("reason", "").splitlines(), *job.get("notes", ())]
        for uri in job.get("missingInputs", ()):
            lines += inputs.not_found(uri, rehearsal.get("inputs", ""))
        if new := job.get("newEnv"):
            lines.append(f"new variables: {', '.join(new)}")
        if buckets := job.get("buckets"):
            lines.append(f"buckets: {', '.join(buckets)}")
        lines += map(_drill, job.get("drills", ()))
        if new := job.get("newPermissions"):
            lines.append(f"new permissions: {listed(new)}")
        if used := job.get("permissions"):
            lines.append(f"uses: {listed(used)}")
        if lacking := job.get("notGranted"):
            lines.append(f"not granted by stack {rehearsal.get('stack', '')}: {listed(lacking)}")
            lines += [f"  {remedy}" for remedy in job.get("remedies", ())]
        if lines:
            yield job["name"], [visible(line) for line in lines]


def _drill(drill: Drill) -> str:
    told = {None: "is not known to go on", False: "begins anew", True: "goes on"}[drill.get("resumed")]
    text = f"{drill['fault']}: {told}"
    if "fromStep" in drill:
        text += f" at step {drill['fromStep']:,}"
    if "lostSteps" in drill:
        text += f", {drill['lostSteps']:,} {'step' if drill['lostSteps'] == 1 else 'steps'} lost"
    if "sameEnd" in drill:
        text += f", {'the same' if drill['sameEnd'] else 'other'} metrics at its end"
    return text + (f" ({reason})" if (reason := drill.get("reason")) else "")


def _table(rehearsal: Rehearsal) -> str:
    rows = [_HEADINGS, *_rows(rehearsal)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    if len(rows) == 1:
        lines = ["no job to rehearse"]
    for name, notes in _notes(rehearsal):
        lines += ["", f"{visible(name)}: {notes[0]}", *(f"  {line}" for line in notes[1:])]
    return "\n".join(lines) + "\n"


def _markdown(rehearsal: Rehearsal) -> str:
    against = f" against {_cell(rehearsal['base'])}" if rehearsal.get("base") else ""
    lines = [f"### Rehearsal of {_cell(rehearsal['stack'])}{against}", ""]
    rows = [tuple(map(_cell, row)) for row in _rows(rehearsal)]
    table = [_HEADINGS, ("---",) * len(_HEADINGS), *rows]
    lines += [f"| {' | '.join(row)} |" for row in table] if rows else ["No job to rehearse."]
    for name, notes in _notes(rehearsal):
        fence = "`" * max(3, *(len(run) + 1 for line in notes for run in re.findall("`+", line) or [""]))
        lines += ["", f"{_cell(name)}:", "", fence, *notes, fence]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """Return a text so that Markdown shows it as it is, in a table too."""
    return re.sub(r"([\\`*_{}\[\]<>#|~@&!])", r"\\\1", visible(text))


RENDERERS = {"table": _table, "json": to_json, "markdown": _markdown}
"""By format, what makes a text of a rehearsal."""
