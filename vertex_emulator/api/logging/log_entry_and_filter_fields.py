"""A log entry as Vertex writes it, and the fields of it that a filter can name."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import to_json

from vertex_emulator.database.records import Job, Replica, ServiceMessage
from vertex_emulator.replicas.executor_protocol import LogLine
from vertex_emulator.timestamps import format_time

SERVICE_TASK = "service"
"""The task name of the lines that the service itself writes."""
SEVERITIES = ("DEFAULT", "DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL", "ALERT", "EMERGENCY")
_PAYLOAD = ("textPayload", "text_payload")
FIELDS = {"resource.type", "logName", "log_name", "timestamp", "severity", "insertId", "insert_id", *_PAYLOAD}
_JSON_PAYLOAD = ("jsonPayload.", "json_payload.")
MAP_FIELDS = ("resource.labels.", "labels.", *_JSON_PAYLOAD)

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


def get_field_text_or_severity_rank(entry: Entry, field: str) -> str | None:
    """Return the text of a field that a filter names; severities as ranks, which compare in their order."""
    match field:
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
    if field.startswith(_JSON_PAYLOAD):
        return _get_payload_text_or_none(entry.get("jsonPayload"), field.split(".")[1:])
    labels: Mapping[str, str] = entry["labels"]
    if field.startswith("resource.labels."):
        labels, field = entry["resource"]["labels"], field.removeprefix("resource.")
    return labels.get(field.removeprefix("labels.")) if field.startswith("labels.") else entry.get(field)


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
            "labels": {"job_id": job.study_or_own_kind_and_id[1], "task_name": task, "project_id": project},
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


def is_payload_field(field: str) -> bool:
    """Return whether a filter's field is in the text or the JSON of an entry."""
    return field in _PAYLOAD or field.startswith(_JSON_PAYLOAD)


def _get_payload_text_or_none(payload: Any, key_path: Sequence[str]) -> str | None:
    for key in key_path:
        payload = payload.get(key) if isinstance(payload, Mapping) else None
    return payload if payload is None or isinstance(payload, str) else json.dumps(payload)


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
