"""The page: jobs in a table, and one job with its replicas, trials and last log lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from pathlib import Path
from string import Template

from emulator.api.entries import Entries
from emulator.records import Job, Trial
from emulator.store import Store
from emulator.times import format_time, now_ns
from vertex.kinds import CUSTOM_JOB, KINDS

_FRAME = Template((Path(__file__).parent / "page.html").read_text(encoding="utf-8"))
_JOBS_SHOWN = 200
_LINES_SHOWN = 200


def index(store: Store) -> str:
    """All jobs, the newest first."""
    with store.reading() as look:
        jobs = list(islice(look.jobs(), _JOBS_SHOWN))
    rows = [
        [
            _link(job, str(job.spec["displayName"])),
            escape(job.kind.type),
            _state(job.state),
            escape(format_time(job.created)[:19].replace("T", " ")),
            escape(_duration(job.started, job.ended)),
        ]
        for job in jobs
    ]
    table = _table(("Job", "Kind", "State", "Created (UTC)", "Ran"), rows)
    return _framed("Jobs", table if rows else "<p>No jobs yet.</p>")


def job(store: Store, entries: Entries, collection: str, job_id: str) -> str | None:
    """One job; None when there is none of that kind and id."""
    with store.reading() as look:
        found = look.job(job_id)
        trials = look.trials(job_id)
    if found is None or found.kind != KINDS.get(collection):
        return None
    parts = [f"<p>{_state(found.state)} {escape(found.name)}</p>", _times(found)]
    if found.is_terminal and found.ending is not None and found.ending.message:
        parts.append(f'<p class="error">{escape(found.ending.message)}</p>')
    if found.kind == CUSTOM_JOB:
        parts.append("<h2>Replicas</h2>" + _replicas(found))
    else:
        parts.append("<h2>Trials</h2>" + _trials(trials))
    lines = [
        f"{entry['timestamp'][11:23]} {entry['severity'][0]} {entry['resource']['labels']['task_name']:<14}"
        f" {entry.get('textPayload', entry.get('jsonPayload', ''))}"
        for entry in entries.last(found.shown_as[1], _LINES_SHOWN)
    ]
    parts.append(f"<h2>Log</h2><pre>{escape(chr(10).join(lines))}</pre>")
    return _framed(str(found.spec["displayName"]), "".join(parts))


def missing() -> str:
    """What stands in place of a job that is not there."""
    return _framed("No such job", "<p>It may have been deleted.</p>")


def _times(job: Job) -> str:
    moments = (("created", job.created), ("started", job.started), ("ended", job.ended))
    shown = [f"{name} {format_time(moment)}" for name, moment in moments if moment is not None]
    return f"<p>{escape(' · '.join(shown))}</p>"


def _replicas(job: Job) -> str:
    images = [pool.get("containerSpec", {}).get("imageUri", "") for pool in job.spec["jobSpec"]["workerPoolSpecs"]]
    exits = {(found["pool"], found["index"]): str(found["exit_code"]) for found in job.replicas}
    rows = [
        [escape(place.task), escape(images[place.pool]), escape(exits.get((place.pool, place.index), "-"))]
        for place in job.places
    ]
    return _table(("Replica", "Image", "Exit code"), rows)


def _trials(trials: Sequence[Trial]) -> str:
    parameters = list(dict.fromkeys(name for trial in trials for name in trial.parameters))
    metrics = list(dict.fromkeys(name for trial in trials for name in _final(trial)))
    rows = [
        [
            str(trial.number),
            _state(trial.state),
            *(escape(str(trial.parameters.get(name, ""))) for name in parameters),
            *(escape(str(_final(trial).get(name, ""))) for name in metrics),
            escape(_duration(trial.started, trial.ended)),
            escape(trial.infeasible_reason or ""),
        ]
        for trial in trials
    ]
    return _table(("Trial", "State", *parameters, *metrics, "Ran", "Reason"), rows)


def _final(trial: Trial) -> dict[str, float]:
    return {found["metricId"]: found["value"] for found in (trial.final or {}).get("metrics", [])}


def _duration(started: int | None, ended: int | None) -> str:
    if started is None:
        return ""
    seconds = ((ended or now_ns()) - started) / 10**9
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds) // 60} min {int(seconds) % 60} s"


def _state(state: str) -> str:
    name = state.removeprefix("JOB_STATE_")
    return f'<span class="state {escape(name.lower())}">{escape(name)}</span>'


def _link(job: Job, text: str) -> str:
    return f'<a href="/jobs/{escape(job.kind.collection)}/{escape(job.id)}">{escape(text)}</a>'


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table; heads are text, cells are markup."""
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _framed(title: str, body: str) -> str:
    return _FRAME.substitute(title=escape(title), body=body)
