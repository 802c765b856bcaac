"""Jobs that a stack has submitted and that its state does not record.

The job that a pipeline runs has the pipeline's labels, and no state records it. It goes when its pipeline goes.
"""

import json
import subprocess
from collections.abc import Iterable, Mapping

from vertex_api.client import JobClient
from vertex_api.kinds import TRAINING_PIPELINE
from vertex_api.names import ResourceName, build_parent
from vertex_api.validation.pipeline_tasks import get_backing_job_name

from . import ownership, removal

_EXPORT_SECONDS = 120


def remove(client: JobClient, stack: str, jobs: Mapping[str, str]) -> None:
    """Removes those of `jobs` (what a person calls them, by resource name) that `stack` does not record, and says so.

    Where the state cannot be read nothing is removed. Raises VertexError, and SubmitFailed for one that does not end.
    """
    if not jobs:
        return
    known = recorded(stack)
    if known is None:
        print(f"{', '.join(sorted(jobs))}: may be left of a run that was killed; the state cannot be read", flush=True)  # noqa: T201
        return
    left = [name for name in jobs if name not in known]
    backing = _of_pipelines(client, stack, left)
    for name in left:
        if name not in backing:
            shown = jobs[name]
            print(f"{shown}: {name} is removed, which a run that was killed has left", flush=True)  # noqa: T201
            removal.remove(client, ResourceName.parse(name), shown)


def _of_pipelines(client: JobClient, stack: str, names: Iterable[str]) -> set[str | None]:
    """The jobs that pipelines of the stack have run, where jobs with these `names` are."""
    parsed = map(ResourceName.parse, names)
    parents = {build_parent(name.project, name.region) for name in parsed if name.kind != TRAINING_PIPELINE}
    filter_ = ownership.filter_of(stack.partition("/")[2])
    return {
        get_backing_job_name(pipeline)
        for place in parents
        for pipeline in client.list(TRAINING_PIPELINE, place, filter_)
    }


def recorded(stack: str) -> set[str] | None:
    """The ids of all resources that the state of `organization/project/stack` records by now; None if none can tell.

    A provider is told of one resource at a time, so this asks Pulumi, as a person would (it takes half a second).
    """
    command = ["pulumi", "stack", "export", "--stack", stack, "--non-interactive"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_EXPORT_SECONDS)
        resources = json.loads(done.stdout)["deployment"].get("resources", [])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError):
        return None
    return {resource["id"] for resource in resources if "id" in resource}
