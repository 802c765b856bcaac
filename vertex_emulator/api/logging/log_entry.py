"""Log entries as Vertex writes them, from the lines of containers and the messages of the service."""

import json
from typing import Any

from pydantic_core import to_json

from vertex_emulator.database.records import Job, Replica, ServiceMessage
from vertex_emulator.replicas.executor_protocol import LogLine
from vertex_emulator.times import format_time

SERVICE_TASK = "service"
"""The task name of the lines that the service itself writes."""
SEVERITIES = ("DEFAULT", "DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL", "ALERT", "EMERGENCY")

Entry = dict[str, Any]
EntryKey = tuple[int, str]  # time in nanoseconds and insertId: the order of entries, in Cloud Logging too
KeyAndEntry = tuple[EntryKey, Entry]


def build_key_and_service_entry(job: Job, message: ServiceMessage) -> KeyAndEntry:
    """Return the key and the entry of a message that the service wrote."""
    key = (message.at, f"{message.at}-service-{message.sequence:012d}")
    return key, _build_entry(job, SERVICE_TASK, key, message.severity, message.text)


def build_key_and_replica_entry(job: Job, replica: Replica, line: LogLine, same_time_index: int) -> KeyAndEntry:
    """Return key and entry of a container's line; `same_time_index` counts the lines before it with the same time."""
    key = (
        line.at,
        f"{line.at}-{replica.task_name}-{job.trial or 0:06d}-{replica.attempt:03d}-{same_time_index:06d}{line.stream}",
    )
    return key, _build_entry(job, replica.task_name, key, "ERROR" if line.stream == "e" else "INFO", line.text)


def _build_entry(job: Job, task: str, key: EntryKey, default_severity: str, text: str) -> Entry:
    """Return an entry: a line of a container has a jsonPayload, one of the service a textPayload, as in real jobs.

    A line that is a JSON object is the payload itself, and sets the severity.
    """
    at, insert_id = key
    labels = {"ml.googleapis.com/job_id/log_area": "root"}
    if job.trial is not None:
        labels["ml.googleapis.com/trial_id"] = str(job.trial)
        labels["ml.googleapis.com/trial_type"] = "HYPERPARAMETER_TUNING"
    project = job.location.project
    entry: Entry = {
        "insertId": insert_id,
        "logName": f"projects/{project}/logs/{'ml.googleapis.com%2F' if task == SERVICE_TASK else ''}{task}",
        "resource": {
            "type": "ml_job",
            "labels": {"job_id": job.owner[1], "task_name": task, "project_id": project},
        },
        "timestamp": f"{format_time(at)[:19]}.{at % 10**9:09d}Z",
        "severity": default_severity,
        "labels": labels,
    }
    if task == SERVICE_TASK:
        return {**entry, "textPayload": text}
    payload = _parse_json_object_or_none(text)
    if payload is None:
        payload = {"message": text, "levelname": default_severity, "attrs": {"tag": task}}
    elif payload.get("severity") in SEVERITIES:
        entry["severity"] = payload.pop("severity")
    return {**entry, "jsonPayload": payload}


def _parse_json_object_or_none(text: str) -> dict[str, Any] | None:
    """Return the JSON object in a line, None for what no reply can contain: NaN, lone surrogates, endless nesting."""
    if not text.startswith("{"):
        return None
    try:
        payload = json.loads(text)
        json.dumps(payload, ensure_ascii=False, allow_nan=False).encode()
        to_json(payload)  # as replies are written
    except (ValueError, RecursionError):
        return None
    return payload if isinstance(payload, dict) else None
