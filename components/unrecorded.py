"""Jobs that a stack has submitted and that its state does not record."""

import json
import subprocess
from collections.abc import Mapping

from components import removal
from vertex.client import JobClient
from vertex.names import ResourceName

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
    for name, shown in jobs.items():
        if name not in known:
            print(f"{shown}: {name} is removed, which a run that was killed has left", flush=True)  # noqa: T201
            removal.remove(client, ResourceName.parse(name), shown)


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
