"""The requests of a schedule: those that its jobs would be submitted with, with a place for the id of each run."""

import re
from collections.abc import Mapping

from vertex_api.job import MODEL_DIR, Job
from vertex_api.schedules import JOB_LABEL, RUN_ID, SCHEDULE_LABEL, ScheduledJob

from ..jobs.spec_defaults import copy_with_defaults, copy_with_output_folder
from ..runtime.foundation import Foundation
from ..schema import interpolation


def build_job_label_value(job_name: str) -> str:
    """Return the value of the label that names a job of a schedule."""
    return re.sub(r"[^a-z0-9_-]", "-", job_name)


def build_scheduled_jobs(
    schedule_name: str,
    schedule_id: str,
    specs_by_name: Mapping[str, Job],
    foundation: Foundation,
    tensorboard_name: str | None = None,
) -> tuple[ScheduledJob, ...]:
    """Return the requests of a schedule's jobs, in their order.

    References to images and packages in the specs are resolved. Each job has the foundation's defaults as any other,
    and for each run a name and an output folder of its own. `tensorboard_name` is that of the stack's TensorBoard.
    """
    tables: dict[str, dict[str, str]] = {interpolation.JOBS: {}}
    if tensorboard_name:
        tables[interpolation.TENSORBOARD] = {"name": tensorboard_name}
    jobs = []
    for name, spec in specs_by_name.items():
        whole = copy_with_defaults(spec, foundation)
        declared = whole.job_spec.get("baseOutputDirectory", {}).get("outputUriPrefix", "").rstrip("/")
        folder = declared or f"{foundation.staging_folder_uri}/{schedule_name}"
        whole = copy_with_output_folder(whole, f"{folder}/{RUN_ID}/{name}")
        labels = {SCHEDULE_LABEL: schedule_id, JOB_LABEL: build_job_label_value(name)}
        fields = {
            **whole.fields,
            "displayName": f"{whole.fields['displayName']}-{RUN_ID}",
            "labels": {**whole.fields.get("labels", {}), **labels},
        }
        resolved = whole.replace(interpolation.resolve(fields, tables))
        if resolved.model_dir:
            tables[interpolation.JOBS][f"{name}.{MODEL_DIR}"] = resolved.model_dir
        jobs.append(ScheduledJob(name, spec.kind.collection, resolved.fields))
    return tuple(jobs)
