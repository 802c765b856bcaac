"""Orphans: jobs that a stack has submitted and that its state does not record.

The job that a pipeline runs has the pipeline's labels, and no state records it. It is removed with its pipeline.
"""

import json
import subprocess
from collections.abc import Iterable, Mapping

from vertex_api.client import Client
from vertex_api.names import TRAINING_PIPELINE, ResourceName, location_name
from vertex_api.pipelines import backing_job_name

from .job_labels import build_stack_filter
from .job_removal import remove_job

_EXPORT_SECONDS = 120


def remove_orphans_among_jobs(
    client: Client, fully_qualified_stack_name: str, display_names_by_resource_name: Mapping[str, str]
) -> None:
    """Remove those jobs that the stack `organization/project/stack` does not record, and print a line for each.

    Display names are for messages. If the state cannot be read, nothing is removed.
    Raises VertexError, and SubmitFailed for a job that does not end.
    """
    if not display_names_by_resource_name:
        return
    recorded_ids = export_state_and_get_resource_ids_or_none(fully_qualified_stack_name)
    if recorded_ids is None:
        shown = ", ".join(sorted(display_names_by_resource_name))
        print(f"{shown}: may be left of a run that was killed; the state cannot be read", flush=True)  # noqa: T201
        return
    orphans = {name: ResourceName.parse(name) for name in display_names_by_resource_name if name not in recorded_ids}
    parents = {location_name(each.project, each.region) for each in orphans.values() if each.kind != TRAINING_PIPELINE}
    backing_jobs = _fetch_backing_job_api_names(client, fully_qualified_stack_name, parents)
    for name, resource_name in orphans.items():
        if name not in backing_jobs:
            display_name = display_names_by_resource_name[name]
            print(f"{display_name}: removing {name}, which a killed run has left", flush=True)  # noqa: T201
            remove_job(client, resource_name, display_name)


def export_state_and_get_resource_ids_or_none(fully_qualified_stack_name: str) -> set[str] | None:
    """Return the ids of all resources in the state of `organization/project/stack`; None if it cannot be read.

    A provider is told of one resource at a time, so this asks the `pulumi` command (it takes half a second).
    """
    command = ["pulumi", "stack", "export", "--stack", fully_qualified_stack_name, "--non-interactive"]
    try:
        export = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_EXPORT_SECONDS)
        resources = json.loads(export.stdout)["deployment"].get("resources", [])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError):
        return None
    return {resource["id"] for resource in resources if "id" in resource}


def _fetch_backing_job_api_names(
    client: Client, fully_qualified_stack_name: str, parents: Iterable[str]
) -> set[str | None]:
    """Return the jobs that pipelines of the stack have run, in the locations `parents`."""
    filter_ = build_stack_filter(fully_qualified_stack_name.partition("/")[2])
    pipelines = (pipeline for parent in parents for pipeline in client.list(TRAINING_PIPELINE, parent, filter_))
    return {backing_job_name(pipeline) for pipeline in pipelines}
