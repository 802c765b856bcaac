"""One log entry as Vertex writes it, and what a filter sees of it."""

import json
from collections.abc import Mapping
from typing import Any

from vertex_emulator.database.records import Job, Replica, ServiceMessage
from vertex_emulator.replicas.executor import LogLine
from vertex_emulator.times import format_time

SEVERITIES = ("DEFAULT", "DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL", "ALERT", "EMERGENCY")
FIELDS = frozenset(
    {
        "resource.type",
        "logName",
        "log_name",
        "timestamp",
        "severity",
        "insertId",
        "insert_id",
        "textPayload",
        "text_payload",
    }
)
MAP_FIELDS = ("resource.labels.", "labels.")

Entry = dict[str, Any]
Key = tuple[int, str]  # time in nanoseconds and insertId: the order of entries, in Cloud Logging too


def service_entry(job: Job, line: ServiceMessage) -> tuple[Key, Entry]:
    """A line of the service itself."""
    key = (line.at, f"{line.at}-service-{line.sequence:012d}")
    return key, _entry(job, "service", key, line.severity, line.text)


def replica_entry(job: Job, replica: Replica, line: LogLine, same: int) -> tuple[Key, Entry]:
    """A line of a container; `same` counts the lines before it that have the same time."""
    key = (line.at, f"{line.at}-{replica.task}-{job.trial or 0:06d}-{replica.attempt:03d}-{same:06d}{line.stream}")
    return key, _entry(job, replica.task, key, "ERROR" if line.stream == "e" else "INFO", line.text)


def field(entry: Entry, name: str) -> str | None:
    """The text of a field that a filter names; severities as ranks, which compare in their order."""
    match name:
        case "severity":
            return str(SEVERITIES.index(entry["severity"]))
        case "resource.type":
            return str(entry["resource"]["type"])
        case "insert_id":
            return str(entry["insertId"])
        case "log_name":
            return str(entry["logName"])
        case "text_payload":
            return entry.get("textPayload")
    labels: Mapping[str, str] = entry["labels"]
    if name.startswith("resource.labels."):
        labels, name = entry["resource"]["labels"], name.removeprefix("resource.")
    return labels.get(name.removeprefix("labels.")) if name.startswith("labels.") else entry.get(name)


def _entry(job: Job, task: str, key: Key, severity: str, text: str) -> Entry:
    """A line that is a JSON object becomes jsonPayload, its `severity` is lifted (as in the logs of real jobs)."""
    at, insert_id = key
    labels = {"ml.googleapis.com/job_id/log_area": "root"}
    if job.trial is not None:
        labels["ml.googleapis.com/trial_id"] = str(job.trial)
        labels["ml.googleapis.com/trial_type"] = "HYPERPARAMETER_TUNING"
    project = job.location.project
    entry: Entry = {
        "insertId": insert_id,
        "logName": f"projects/{project}/logs/{'ml.googleapis.com%2F' if task == 'service' else ''}{task}",
        "resource": {
            "type": "ml_job",
            "labels": {"job_id": job.visible_resource[1], "task_name": task, "project_id": project},
        },
        "timestamp": f"{format_time(at)[:19]}.{at % 10**9:09d}Z",
        "severity": severity,
        "labels": labels,
    }
    payload = _json_object(text)
    if payload is None:
        entry["textPayload"] = text
    else:
        if payload.get("severity") in SEVERITIES:
            entry["severity"] = payload.pop("severity")
        entry["jsonPayload"] = payload
    return entry


def _json_object(text: str) -> dict[str, Any] | None:
    """The object in a line; None for one that no JSON reply can hold: Python writes NaN, and halves of characters."""
    if not text.startswith("{"):
        return None
    try:
        payload = json.loads(text)
        json.dumps(payload, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return None
    return payload if isinstance(payload, dict) else None
