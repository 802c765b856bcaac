"""Why a job failed: what the service says, the likely cause, the last lines of its log, and where the rest is."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vertex_api.errors import VertexError
from vertex_api.names import ResourceName
from vertex_api.studies import trials
from vertex_api.validation.pipeline_tasks import get_backing_job_name

from ..runtime.target import Target
from .pipeline_results import STUDY

Job = Mapping[str, Any]
QUOTED_LINES = 10
"""How many of a failed job's last log lines its error quotes."""
QUOTED_TRIALS = 3
_REPLICA = re.compile(r"\breplica (workerpool\d+-\d+)")
_CAUSES = [
    (
        r"ran out of memory|low on memory|status of 137\b",
        "it needs more memory: take a larger machineType or smaller batches",
    ),
    (
        r"No module named '?([\w.]+)",
        r"the image has no Python module \1: add what brings it to the image's requirements",
    ),
    (
        r"(\S+@\S+) does not have (storage\.\S+)",
        r"\1 lacks the permission \2: grant it a role on the bucket, such as roles/storage.objectUser",
    ),
    (
        r"exceed quota limits: (\S+)",
        r"the quota \1 is used up: ask for more, take another region or machine, or run fewer jobs at a time",
    ),
    (
        r"Resources are insufficient in region",
        "the region is out of such machines for now: take another region or accelerator, or try later",
    ),
    (r"Internal error occurred", "this is the service's own failure: run it again"),
]
"""Texts of the service (its pages on training, and errors that its users report), of Python and of Cloud Storage."""


def account(at: Target, name: str, job: Job) -> str:
    """All that is known of one failed job, in lines."""
    resource, writer = (ResourceName.parse(text) for text in (job["name"], get_backing_job_name(job) or job["name"]))
    study = job.get(STUDY, job)
    reason = str(job.get("error", {}).get("message") or job["state"])
    replica = _REPLICA.search(reason)
    # The replicas of a tuning job's trials share their names, so all of its log counts.
    of_replica = replica[1] if replica and "studySpec" not in study else None
    try:
        lines = at.client.log_lines(writer, QUOTED_LINES, of_replica)
    except VertexError as error:
        lines = [f"(its log cannot be read: {error})"]
    said = [f"{name} failed: {reason}", *_trials(study)]
    causes = [*unreported(study), *likely_causes([reason, *_reasons(study).values(), *lines])]
    said += [f"  likely cause: {cause}" for cause in causes]
    said.append(f"  the last log lines of {of_replica}:" if of_replica else "  its last log lines:")
    said += [f"    {line}" for line in lines] or ["    (it wrote nothing)"]
    said.append(f"  all of it: {at.links.page(resource)} or `{at.links.logs(writer)}`")
    said.append("  mend it, or run it again with lifecycle.rerun")
    return "\n".join(said)


def likely_causes(lines: Sequence[str]) -> Iterator[str]:
    """What texts of the service, and of Python and Google's libraries in a log, mean most often; each once."""
    text = "\n".join(lines)
    for pattern, cause in _CAUSES:
        if match := re.search(pattern, text):
            yield match.expand(cause)


def unreported(job: Job) -> Iterator[str]:
    """The metrics of a tuning job that trials have ended without, and how to report them."""
    if "studySpec" not in job:
        return
    by_id = {trial["id"]: trial for trial in job.get("trials", [])}
    wanted = {metric["metricId"] for metric in job["studySpec"]["metrics"]}
    for metric, ids in trials.find_unreported_metrics(job).items():
        others = sorted(set().union(*(trials.list_reported_metrics(by_id[id_]) for id_ in ids)) - wanted)
        reasons = [by_id[id_]["infeasibleReason"] for id_ in ids if "infeasibleReason" in by_id[id_]]
        known = (
            f" They reported {', '.join(others)}." if others else f" Trial {ids[-1]}: {reasons[-1]}" if reasons else ""
        )
        yield (
            f"metric `{metric}` was never reported by {len(ids)} of {trials.count_ended_trials(job)} trials: call "
            f"hypertune.HyperTune().report_hyperparameter_tuning_metric(hyperparameter_metric_tag='{metric}', "
            f"metric_value=…).{known}"
        )


def _trials(job: Job) -> Iterator[str]:
    """The last trials of a tuning job that failed, each with the reason."""
    reasons = list(_reasons(job).items())
    yield from (f"  trial {id_}: {reason}" for id_, reason in reasons[-QUOTED_TRIALS:])
    if len(reasons) > QUOTED_TRIALS:
        yield f"  and {len(reasons) - QUOTED_TRIALS} more trials failed"


def _reasons(job: Job) -> dict[str, str]:
    """The reasons of failed trials by number, in order."""
    rows = trials.summarize_trials(job)
    return {row["id"]: row["infeasibleReason"] for row in rows if "infeasibleReason" in row}
