"""Removal of jobs from the API: one job, or the orphans of a stack, which it has submitted and no state records."""

import time
from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from dataclasses import replace
from typing import Any

from vertex_api.client import Client
from vertex_api.errors import InvalidRequest, NotFound
from vertex_api.job import stored_job
from vertex_api.names import KINDS, TERMINAL_STATES, TRAINING_PIPELINE, JobJson, Kind, ResourceName, location_name
from vertex_api.pipelines import backing_job_name

from ..errors import SubmitFailed
from ..plan.job_rules import SUBMITTER_LABELS, TOKEN_LABEL
from ..runtime import engine, holders
from ..runtime.target import Target
from ..schema import interpolation
from .identity import own_labels, stack_filter
from .inputs import Inputs

CANCEL_SECONDS = 900.0
"""How long to wait for a cancelled job to end before its deletion is left to the next run. Google gives no figure: a
job of many replicas takes minutes, and a tuning job ends when all its trials have."""
_REPORT_SECONDS = 60.0
_CANCELLING = {"JOB_STATE_CANCELLING", "PIPELINE_STATE_CANCELLING"}


def remove(
    client: Client,
    name: ResourceName,
    display_name: str,
    *,
    keep_record: bool = False,
    is_spared: Callable[[JobJson], bool] = lambda _: False,
) -> None:
    """Cancel a job if it is active, and delete it unless `keep_record` is set. A job that is gone is fine.

    With `keep_record` the job need not have ended, if the service is about to end it. `display_name` is for messages.
    A job for which `is_spared` is true is left as it is. Raises VertexError, and SubmitFailed for a job that does not
    end.
    """
    with suppress(NotFound):
        job = client.require(name)
        if is_spared(job):
            return
        if job["state"] not in TERMINAL_STATES:
            _cancel(client, name, display_name, TERMINAL_STATES | (_CANCELLING if keep_record else set()))
        if not keep_record:
            if name.kind == TRAINING_PIPELINE:
                _delete_backing_job(client, name)
            client.delete(name)


def stays(api: Target, name: ResourceName, display_name: str, reason: str) -> str:
    """Return the line on a job that is not removed, because it may be somebody else's."""
    return f"{display_name}: {name} stays: {reason}; if nobody needs it: {api.links.cancel(name)}"


def reason_to_stay(job: JobJson, urn: str) -> str | None:
    """Return why a job stays that the resource `urn` alone has in its own stack's state; None if nothing keeps it.

    A job that another stack has submitted, as its labels say, was moved or adopted, and that stack may have it still.
    """
    stack = holders.stack_of(urn)
    submitter = stack and submitting_stack(job, stack)
    if not submitter:
        return None
    names = holders.stacks()
    if names is None:
        return f"stack {submitter}, which has submitted it, may have it still, and the stacks cannot be listed"
    for name in names:
        if submitter == _label_text(own_labels(f"{'/'.join(name.split('/')[-2:])}/", "")):
            state = holders.current().state(name)
            if state is None:
                return f"stack {name}, which has submitted it, may have it still, and its state cannot be read"
            if job["name"] in state.ids:
                return f"stack {name}, which has submitted it, has it too"
    return None


def submitting_stack(job: JobJson, stack: str) -> str:
    """Return which other stack than `<pulumi project>/<stack>` has submitted a job, by its labels; "" for none."""
    submitter = _label_text(job.get("labels", {}))
    return "" if submitter == _label_text(own_labels(f"{stack}/", "")) else submitter


def _label_text(labels: Mapping[str, str]) -> str:
    return "/".join(labels[label] for label in SUBMITTER_LABELS[:-1] if label in labels)


def _cancel(client: Client, name: ResourceName, display_name: str, awaited: Set[str]) -> None:
    """Cancel a job, and wait until it is in one of the states that are `awaited`."""
    try:
        client.cancel(name)
    except InvalidRequest:
        if client.require(name)["state"] not in TERMINAL_STATES:
            raise
    start, pause = time.monotonic(), 0.1
    next_report = start + _REPORT_SECONDS
    goes_on = "the service goes on ending it; run this again to wait on"
    while (state := client.require(name)["state"]) not in awaited:
        waited = time.monotonic() - start
        if waited > CANCEL_SECONDS:
            raise SubmitFailed(f"{display_name}: still {state} {waited:.0f} s after it was cancelled; {goes_on}")
        if time.monotonic() >= next_report:
            print(f"{display_name}: {state} for {waited:.0f} s, up to {CANCEL_SECONDS:.0f} s", flush=True)  # noqa: T201
            next_report += _REPORT_SECONDS
        if engine.wait_for_cancellation(pause):
            raise SubmitFailed(f"{display_name}: stopped while it was {state}; {goes_on}")
        pause = min(pause * 1.5, 5)


def _delete_backing_job(client: Client, pipeline: ResourceName) -> None:
    """Delete the job that a pipeline has run, if it is of the pipeline's own project and region.

    Vertex AI leaves that job when its pipeline is deleted (docs/fidelity.md, captures). It is deleted first, because
    its name is known from its pipeline alone. The model stays, as all outputs of jobs do.
    """
    if backing := backing_job_name(client.require(pipeline)):
        job = ResourceName.parse(backing)
        if (job.project, job.region) == (pipeline.project, pipeline.region):
            # Its record costs nothing, so it may stay if the service does not delete it.
            with suppress(NotFound, InvalidRequest):
                client.delete(job)


def remove_orphans(api: Target, full_stack: str, display_names: Mapping[str, str]) -> None:
    """Remove those jobs that a killed run of the stack `organization/project/stack` has left, with a line for each.

    `display_names` are for messages, by resource name. A job is removed if the state does not record it, and proves
    that its creation was under way; one that may be somebody else's is named. The job that a pipeline runs has the
    pipeline's labels, and no state records it: it is removed with its pipeline. Raises VertexError, and SubmitFailed
    for a job that does not end.
    """
    run, client = holders.current(), api.client
    names = [name for name in display_names if not run.has(name)]
    if not names:
        return
    state = run.state(full_stack)
    if state is None:
        shown = ", ".join(sorted(display_names))
        print(f"{shown}: may be left of a run that was killed; the state cannot be read", flush=True)  # noqa: T201
        return
    orphans = {name: ResourceName.parse(name) for name in names if name not in state.ids}
    parents = {location_name(each.project, each.region) for each in orphans.values() if each.kind != TRAINING_PIPELINE}
    filter_ = stack_filter(full_stack.partition("/")[2])
    pipelines = (each for parent in parents for each in client.find(TRAINING_PIPELINE, parent, filter_))
    backing_jobs = {backing_job_name(each) for each in pipelines}
    for name, resource_name in orphans.items():
        shown = display_names[name]
        with suppress(NotFound):
            if name in backing_jobs:
                continue
            if was_being_created(state, client.require(resource_name)):
                print(f"{shown}: removing {name}, which a killed run has left", flush=True)  # noqa: T201
                remove(client, resource_name, shown)
            else:
                print(stays(api, resource_name, shown, FOUND_REASON), flush=True)  # noqa: T201


FOUND_REASON = "no state of this stack has submitted it for certain, and another stack may have it"


def was_being_created(state: holders.State, job: JobJson) -> bool:
    """Return whether a state proves that it was about to record a job: its creation was under way in a killed run.

    A pipeline's proof is that of the job that it runs, too.
    """
    kind, labels = ResourceName.parse(job["name"]).kind, job.get("labels", {})
    for type_, given in state.creating:
        declared = next((each for each in KINDS.values() if each.type == type_), None)
        if declared in (kind, TRAINING_PIPELINE):
            with suppress(KeyError, TypeError, ValueError, AttributeError):  # what is encrypted proves nothing
                if _is_that(Inputs.parse(declared, given), kind, job, labels):
                    return True
    return False


def was_declared(inputs: Inputs, given: Mapping[str, Any]) -> bool:
    """Return whether the state has a job of these inputs: `given` are those of a resource in it.

    The state has secrets encrypted: they are taken for equal.
    """
    with suppress(KeyError, TypeError, ValueError, AttributeError):  # what is encrypted tells nothing
        other = replace(Inputs.parse(inputs.spec.kind, given), secrets=inputs.secrets)
        return (other.token, other.parent, bool(other.adopt)) == (inputs.token, inputs.parent, bool(inputs.adopt))
    return False


def _is_that(inputs: Inputs, kind: Kind, job: JobJson, labels: Mapping[str, str]) -> bool:
    """Return whether a job, or the pipeline that runs it, is what a resource with these inputs submits."""
    token = labels.get(TOKEN_LABEL, "")
    if not own_labels(inputs.owner, token).items() <= labels.items():
        return False
    if not inputs.secrets:
        return inputs.token == token
    # The state has them encrypted, so that their token is not known.
    return inputs.spec.kind == kind and _agrees(inputs.spec.fields, stored_job(kind, job).fields)


def _agrees(declared: Any, actual: Any) -> bool:
    """Return whether a job has what is declared, apart from references."""
    if isinstance(declared, Mapping) and isinstance(actual, Mapping):
        return all(_agrees(value, actual.get(key)) for key, value in declared.items())
    if isinstance(declared, list) and isinstance(actual, list):
        return len(declared) == len(actual) and all(map(_agrees, declared, actual))
    if interpolation.is_unresolved(declared):
        return True
    # The service ends the URI of a folder with a slash, and leaves zeros out.
    return actual in (declared, f"{declared}/") or (actual is None and not declared)
