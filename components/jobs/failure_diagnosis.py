"""Diagnosis of a failed job: the service's reason, the likely cause, the last lines of the log, where the rest is."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vertex_api.errors import VertexError
from vertex_api.job import TUNING_JOB
from vertex_api.names import ResourceName
from vertex_api.pipelines import backing_job_name
from vertex_api.studies import count_ended, reported_metrics, trial_summaries, unreported_metrics

from ..runtime.target import Target
from .capacity_wait_advice import iterate_capacity_alternative_lines_of_job

Job = Mapping[str, Any]
MAX_LOG_LINES = 10
"""How many of a failed job's last log lines its report quotes."""
MAX_TRIALS = 3
_REPLICA = re.compile(r"\breplica (workerpool\d+-\d+)|\blow on memory: (workerpool0)\b")
_LOG_HINT = re.compile(r"\s*To find out more about why your job exited please check the logs: \S+")
"""The service's link to the log in the console, beside which a report has the page of the stack's target."""
_STOCKOUT = r"Resources are insufficient in region"
_CAUSES = [
    (
        r"low on memory|status of 137\b",
        "it needs more memory: take a larger machineType or smaller batches",
    ),
    (
        r'exec: "?([^":]+)"?: (?:executable file not found|no such file or directory)',
        r"the image has no program \1: correct the command, or add it to the image",
    ),
    (
        r"No module named '?([\w.]+)",
        r"the image has no Python module \1: add what brings it to the image's requirements",
    ),
    (
        r"(\S+@\S+) does not have (storage\.objects\.(?:create|delete|update))",
        r"\1 lacks the permission \2 there: write below AIP_MODEL_DIR; name the folder in bucket.writableFolders if it "
        "is in the stack's bucket; or grant the account a role on that other bucket",
    ),
    (
        r"(\S+@\S+) does not have (storage\.(?!objects\.(?:create|delete|update))\S+)",
        r"\1 lacks the permission \2: grant it a role on the bucket, such as roles/storage.objectViewer",
    ),
    (
        r"exceed quota limits: (\S+)",
        r"the quota \1 is used up: ask for more, take another region or machine, or run fewer jobs at a time",
    ),
    (
        _STOCKOUT,
        "the region is out of such machines for now: try later, or change the job as below",
    ),
    (r"Internal error occurred", "this is the service's own failure: run it again"),
]
"""Texts of the service (its pages on training, and errors that its users report), of Python and of Cloud Storage."""


def build_failure_report(api: Target, job_name: str, job: Job) -> str:
    """Return all that is known about a failed job, in lines."""
    resource_name = ResourceName.parse(job["name"])
    logged_job = ResourceName.parse(backing_job_name(job) or job["name"])
    tuning_job = job.get(TUNING_JOB, job)
    reason = _LOG_HINT.sub("", str(job.get("error", {}).get("message") or job["state"]))
    # Replicas of different trials have the same names, so the log of a whole tuning job counts.
    replica_name = None if "studySpec" in tuning_job else _find_replica_name_or_none(reason)
    try:
        log_lines = api.client.log_lines(logged_job, MAX_LOG_LINES, replica_name)
    except VertexError as error:
        log_lines = [f"(its log cannot be read: {error})"]
    rows = trial_summaries(tuning_job)
    trial_reasons = {row["id"]: _LOG_HINT.sub("", row["infeasibleReason"]) for row in rows if "infeasibleReason" in row}
    causes = [
        *iterate_unreported_metric_lines(tuning_job),
        *find_likely_causes([reason, *trial_reasons.values(), *log_lines]),
    ]
    return "\n".join(
        [
            f"{job_name} failed: {reason}",
            *_iterate_failed_trial_lines(trial_reasons),
            *(f"  likely cause: {cause}" for cause in causes),
            *(iterate_capacity_alternative_lines_of_job(job) if re.search(_STOCKOUT, reason) else ()),
            f"  the last log lines of {replica_name}:" if replica_name else "  its last log lines:",
            *([f"    {line}" for line in log_lines] or ["    (it wrote nothing)"]),
            f"  all of it: {api.links.page(resource_name)} or `{api.links.logs(logged_job)}`",
            "  fix it, or run it again with lifecycle.rerun",
        ]
    )


def find_likely_causes(lines: Sequence[str]) -> Iterator[str]:
    """Yield the usual causes of messages of the service, and of Python and Google's libraries in a log, each once."""
    text = "\n".join(lines)
    for pattern, cause in _CAUSES:
        if match := re.search(pattern, text):
            yield match.expand(cause)


def iterate_unreported_metric_lines(job: Job) -> Iterator[str]:
    """Yield a line for each metric that trials of a tuning job have not reported, with the call that reports it."""
    if "studySpec" not in job:
        return
    by_id = {trial["id"]: trial for trial in job.get("trials", [])}
    study_metrics = {metric["metricId"] for metric in job["studySpec"]["metrics"]}
    for metric, ids in unreported_metrics(job).items():
        others = sorted(set().union(*(reported_metrics(by_id[id_]) for id_ in ids)) - study_metrics)
        reasons = [_LOG_HINT.sub("", by_id[id_]["infeasibleReason"]) for id_ in ids if "infeasibleReason" in by_id[id_]]
        hint = f" Trial {ids[-1]}: {reasons[-1]}" if reasons else ""
        if others:
            hint = f" They reported {', '.join(others)}."
        yield (
            f"metric `{metric}` was never reported by {len(ids)} of {count_ended(job)} trials: "
            f"call hypertune.HyperTune().report_hyperparameter_tuning_metric(hyperparameter_metric_tag='{metric}', "
            f"metric_value=…).{hint}"
        )


def _find_replica_name_or_none(reason: str) -> str | None:
    """Find the replica that a job failed for. Of the pool that is out of memory, only the first has one replica."""
    match = _REPLICA.search(reason)
    return None if match is None else match[1] or f"{match[2]}-0"


def _iterate_failed_trial_lines(reasons_by_trial_id: Mapping[str, str]) -> Iterator[str]:
    for id_, reason in list(reasons_by_trial_id.items())[-MAX_TRIALS:]:
        yield f"  trial {id_}: {reason}"
    if len(reasons_by_trial_id) > MAX_TRIALS:
        yield f"  and {len(reasons_by_trial_id) - MAX_TRIALS} more trials failed"
