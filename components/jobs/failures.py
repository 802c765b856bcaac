"""Jobs that fail, are refused or wait without machines: why, and what can be done about it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime

from vertex_api.errors import (
    FOUND_HERE,
    InvalidRequest,
    NotFound,
    PermissionDenied,
    QuotaExceeded,
    VertexError,
    without_log_link,
)
from vertex_api.job import MODEL_DIR, TUNING_JOB, Job, job_results, stored_job
from vertex_api.names import SERVICE_TASK, JobJson, ResourceName, join_names, short_state
from vertex_api.pipelines import backing_job_name
from vertex_api.retry import find_propagation
from vertex_api.studies import count_ended, reported_metrics, trial_summaries, unreported_metrics

from ..runtime import refusals
from ..runtime.target import CLOUD_PREFIX, EmulatorLinks, Target
from .causes import STOCKOUT, likely_causes
from .tracebacks import last_exception

MAX_LOG_LINES = 10
"""How many of a failed job's last log lines its report quotes."""
_READ_LINES = 100
"""In how many of them a traceback is looked for: more may follow it, such as what other replicas and libraries say."""
EXCEPTION_PREFIX, CAUSE_PREFIX = "  last exception: ", "  likely cause: "
"""How lines of a report begin."""
MAX_REPORTS, MAX_REPORTED = 5, 20
"""Of how many jobs that fail together all is said, and of how many anything is."""
MAX_TRIALS = 3
_SERVICE_LINES = 40
LONG_WAIT_MINUTES = 10
"""From when on a job waits long: Vertex AI fails a job without machines after some 20 minutes in PENDING."""
MAX_NAMES = 5
"""How many jobs that change at once have lines of their own."""
WAIT_REASONS = {"QUEUED": "quota or machines are short", "PENDING": "machines and images are being prepared"}
"""States before a job runs, and their reasons (Google's page on the training service)."""
_REPLICA = re.compile(r"\breplica (workerpool\d+-\d+)|\blow on memory: (workerpool\d+)\b")
_MISSING_IMAGE = re.compile(r"The image \S+ does not exist")
"""The service's text for a training pipeline (Google's notebooks)."""


def failure_reports(api: Target, jobs: Mapping[str, JobJson]) -> list[str]:
    """Return all that is known about the first of the failed jobs, by name, and a line on each of the others."""
    names = list(jobs)
    reports = [failure_report(api, name, jobs[name]) for name in names[:MAX_REPORTS]]
    for name in names[MAX_REPORTS:MAX_REPORTED]:
        job = jobs[name]
        logs = api.links.logs(ResourceName.parse(backing_job_name(job) or job["name"]))
        reports.append(f"{name} failed: {' '.join(_reason(job).split())}: `{logs}`")
    rest = names[MAX_REPORTED:]
    return [*reports, *([f"{len(rest)} more failed: {join_names(rest)}"] if rest else [])]


def _reason(job: JobJson) -> str:
    return without_log_link(str(job.get("error", {}).get("message") or job["state"]))


def failure_report(api: Target, job_name: str, job: JobJson) -> str:
    """Return all that is known about a failed job, in lines."""
    logged_job = ResourceName.parse(backing_job_name(job) or job["name"])
    tuning_job = job.get(TUNING_JOB, job)
    reason = _reason(job)
    # Replicas of different trials have the same names, so the log of a whole tuning job counts.
    replica = None if "studySpec" in tuning_job else _failed_replica(reason)
    try:
        log = [*api.client.log_lines(logged_job, _READ_LINES, replica)]
    except VertexError as error:
        needed = "; whoever reads it needs roles/logging.viewer on the project" * isinstance(error, PermissionDenied)
        log = [f"(its log cannot be read: {error}{needed})"]
    trials = {
        row["id"]: without_log_link(row["infeasibleReason"])
        for row in trial_summaries(tuning_job)
        if "infeasibleReason" in row
    }
    raised = last_exception([reason, *log])
    log = log[-MAX_LOG_LINES:]
    causes = [
        *metric_notes(tuning_job, with_reason=False),
        *findings(api, logged_job),
        *likely_causes([reason, *trials.values(), *([raised] if raised else []), *log]),
    ]
    return "\n".join(
        [
            f"{job_name} failed: {reason}",
            *([f"{EXCEPTION_PREFIX}{raised}"] if raised else []),
            *_trial_lines(trials, reason),
            *(f"{CAUSE_PREFIX}{cause}" for cause in causes),
            *(capacity_advice(job) if re.search(STOCKOUT, reason) else ()),
            f"  the last log lines of {replica}:" if replica else "  its last log lines:",
            *([f"    {line}" for line in log] or ["    (it wrote nothing)"]),
            f"  all of it: {api.links.page(ResourceName.parse(job['name']))} or `{api.links.logs(logged_job)}`",
            "  fix it, or run it again as it is with another value of its lifecycle.rerun",
        ]
    )


def _trial_lines(reasons: Mapping[str, str], said: str) -> Iterator[str]:
    """Yield why the last of the failed trials failed, each reason once, and not again what has been `said`."""
    ids: dict[str, list[str]] = {}
    for id_, reason in [*reasons.items()][-MAX_TRIALS:]:
        ids.setdefault(reason, []).append(id_)
    for reason, of_trials in ids.items():
        if reason not in said:
            yield f"  {'trial' if len(of_trials) == 1 else 'trials'} {', '.join(of_trials)}: {reason}"
    if len(reasons) > MAX_TRIALS:
        yield f"  and {len(reasons) - MAX_TRIALS} more trials failed"


def success_notes(api: Target, job: JobJson, *, is_empty: bool) -> list[str]:
    """Return what is to be said of a job that has succeeded: it wrote no model, trials failed, what the emulator found.

    `is_empty` says that there is nothing in the folder of its model.
    """
    tuning_job = job.get(TUNING_JOB, job)
    notes = [*metric_notes(tuning_job), *_failed_trials(tuning_job)]
    if is_empty:
        notes.append(f"succeeded, and wrote no model: {job_results(job)[MODEL_DIR]} is empty")
    return [*notes, *findings(api, ResourceName.parse(backing_job_name(job) or job["name"]))]


def _failed_trials(job: JobJson) -> Iterator[str]:
    failed = [row for row in trial_summaries(job) if row["state"] == "INFEASIBLE"]
    lost = {id_ for ids in unreported_metrics(job).values() for id_ in ids} if failed else set()
    if failed := [row for row in failed if row["id"] not in lost]:  # those have a line of their own
        reason = without_log_link(failed[-1].get("infeasibleReason", "")) or "no reason is given"
        ids = join_names([row["id"] for row in failed])
        yield f"{len(failed)} of {count_ended(job)} trials failed ({ids}), the last: {reason}"


def findings(api: Target, job: ResourceName) -> list[str]:
    """Return what the emulator has found in the containers of an ended job, beyond what the service would say."""
    if not isinstance(api.links, EmulatorLinks):
        return []
    try:
        lines = api.client.log_lines(job, _SERVICE_LINES, SERVICE_TASK)
    except VertexError:
        return []
    return [line.removeprefix(FOUND_HERE) for line in dict.fromkeys(lines) if line.startswith(FOUND_HERE)]


def _failed_replica(reason: str) -> str | None:
    """Find the replica that a job failed for, or the pool where only that is named; the first pool has one replica."""
    match = _REPLICA.search(reason)
    if match is None:
        return None
    return match[1] or ("workerpool0-0" if match[2] == "workerpool0" else match[2])


def metric_notes(job: JobJson, *, with_reason: bool = True) -> Iterator[str]:
    """Yield a line for each metric that trials of a tuning job have not reported, with the call that reports it.

    It has the last trial's reason if that is wanted.
    """
    if "studySpec" not in job:
        return
    by_id = {trial["id"]: trial for trial in job.get("trials", [])}
    study_metrics = {metric["metricId"] for metric in job["studySpec"]["metrics"]}
    for metric, ids in unreported_metrics(job).items():
        others = sorted(set().union(*(reported_metrics(by_id[id_]) for id_ in ids)) - study_metrics)
        reasons = [
            without_log_link(by_id[id_]["infeasibleReason"])
            for id_ in ids
            if with_reason and "infeasibleReason" in by_id[id_]
        ]
        hint = f" Trial {ids[-1]}: {reasons[-1]}" if reasons else ""
        if others:
            hint = f" They reported {', '.join(others)}."
        yield (
            f"metric `{metric}` was never reported by {len(ids)} of {count_ended(job)} trials: "
            f"call hypertune.HyperTune().report_hyperparameter_tuning_metric(hyperparameter_metric_tag='{metric}', "
            f"metric_value=…).{hint}"
        )


def capacity_advice(job: JobJson) -> Iterator[str]:
    """Yield the changes of a job, as the service shows it, that may get it machines. Each replaces the job."""
    # Imported here, as below, because most jobs need no advice.
    from vertex_api.estimates.availability import alternatives

    yield "  what may help (each of these replaces the job):"
    for line in alternatives(_spec(job), ResourceName.parse(job["name"]).region):
        yield f"    - {line}"


def wait_reason(state: str, minutes: int) -> str:
    """Return why a job is for minutes in one of `WAIT_REASONS`, for every line that says so."""
    if state == "PENDING" and minutes >= LONG_WAIT_MINUTES:
        return "machines may be short, or an image is large"  # preparing alone does not take so long
    return WAIT_REASONS[state]


class WaitAdvice:
    """What has been said so far about jobs that wait long, for `parent`, the full name of the jobs' location.

    Nothing is said of jobs on this machine, where jobs wait for other jobs.
    """

    def __init__(self, parent: str) -> None:
        self._project = parent.removeprefix(CLOUD_PREFIX).split("/")[1] if parent.startswith(CLOUD_PREFIX) else None
        self._advised_names: set[tuple[str, str]] = set()
        self._advised: set[tuple[str, ...]] = set()

    def take_lines(self, jobs: Mapping[str, JobJson], now: float) -> list[str]:
        """Return the lines on jobs, by name, that have waited long by `now` (seconds since 1970), each advice once."""
        lines = []
        for state, names in self._take_names(jobs, now).items():
            by_advice: dict[tuple[str, ...], list[str]] = {}
            for name in names:
                by_advice.setdefault(tuple(self._advice(state, jobs[name])), []).append(name)
            for advice, alike in by_advice.items():
                if advice not in self._advised:
                    self._advised.add(advice)
                    minutes = max(age_in_minutes(jobs[name], now) for name in alike)
                    lines += [
                        f"{join_names(alike)}: {state} for {minutes} min, as {wait_reason(state, minutes)}",
                        *advice,
                    ]
        return lines

    def _take_names(self, jobs: Mapping[str, JobJson], now: float) -> dict[str, list[str]]:
        """Return the names of jobs that have come to wait long, by state."""
        by_state: dict[str, list[str]] = {state: [] for state in WAIT_REASONS}
        for name, job in jobs.items() if self._project else ():
            state = short_state(job["state"])
            is_new = state in by_state and (state, name) not in self._advised_names
            if is_new and age_in_minutes(job, now) >= LONG_WAIT_MINUTES:
                self._advised_names.add((state, name))
                by_state[state].append(name)
        return by_state

    def _advice(self, state: str, job: JobJson) -> Iterator[str]:
        from vertex_api.estimates.quota import METRIC_PREFIX, needed_quota, quota_page

        if state == "QUEUED" and (needed := needed_quota(_spec(job))):
            amounts = ", ".join(f"{metric} {amount:,}" for metric, amount in needed.items())
            yield f"  it needs these quotas ({METRIC_PREFIX}NAME): {amounts}"
            yield f"  see and ask for more: {quota_page(str(self._project))}"
        yield from capacity_advice(job)


def _spec(job: JobJson) -> Job:
    return stored_job(ResourceName.parse(job["name"]).kind, job)


def age_in_minutes(job: JobJson, moment: float) -> int:
    """Return the whole minutes from a job's creation to a moment in seconds since 1970."""
    return max(0, int((moment - datetime.fromisoformat(job["createTime"]).timestamp()) // 60))


@contextmanager
def explain_refusals(spec: Job, api: Target) -> Iterator[None]:
    """Raise the API's refusals that users meet again and again with what to do about them, in one line."""
    try:
        yield
    except QuotaExceeded as error:
        if not error.metrics:
            raise
        refusal = quota_refusal(error.metrics, spec, api.parent.rpartition("/")[2], api.links.quota_page)
        raise QuotaExceeded(refusal, error.metrics) from error
    except (InvalidRequest, PermissionDenied, NotFound) as error:
        if propagation := find_propagation(str(error)):
            remedy = propagation.remedy
        elif isinstance(error, NotFound) and _MISSING_IMAGE.search(str(error)):
            remedy = "build and push it, or correct imageUri or executorImageUri"
        elif advice := refusals.remedy(str(error), f"vertex-training.{spec.kind.type}"):
            remedy = advice
        else:
            raise
        raise type(error)(f"{error}; {remedy}") from error


def quota_refusal(metrics: Sequence[str], spec: Job, region: str, page: str) -> str:
    """Return what a job needs of the quotas that do not cover it in `region`, and the page to ask for more."""
    from vertex_api.estimates.quota import METRIC_PREFIX, needed_quota

    needs = needed_quota(spec)

    def with_need(metric: str) -> str:
        amount = needs.get(metric.removeprefix(METRIC_PREFIX))
        return metric if amount is None else f"{metric} (this job needs {amount:,})"

    return f"the quota in {region} does not cover {', '.join(map(with_need, metrics))}; ask for more at {page}"
