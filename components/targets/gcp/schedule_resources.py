"""The resources of one schedule on Google Cloud: a workflow that submits its jobs, and what starts it."""

from __future__ import annotations  # loads the provider's types only if they are used

import base64
from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi_gcp import cloudscheduler, workflows

from vertex_api.cron import shortest_gap
from vertex_api.messages import show_path
from vertex_api.names import location_name
from vertex_api.schedules import ScheduleRequest

from ...errors import DeclarationErrors, Problem
from ...runtime.resource import when_known
from ...workflow.source import MAX_REDELIVERY_WINDOW, Place, redelivery_window, workflow_source
from ...workflow.violations import request_violations, size_violation
from .propagation_retries import create_retrying_options
from .schedule_prerequisites import ScheduleAccounts

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_ATTEMPT_DEADLINE = "60s"
_RETRIES = 3
"""Of a start that fails. All attempts take at most six minutes, less than `MAX_REDELIVERY_WINDOW`."""


def create_workflow_and_scheduler_job(
    name: str,
    request: pulumi.Input[ScheduleRequest],
    *,
    project: str,
    region: str,
    scheduler_region: str,
    accounts: ScheduleAccounts,
    labels: Mapping[str, str],
    kms_key: str | None,
    protect: bool,
    opts: pulumi.ResourceOptions,
) -> cloudscheduler.Job:
    """Create the workflow of a schedule, and the job of Cloud Scheduler that starts it, which is returned.

    Workflows are where jobs run, in `region`. Cloud Scheduler is not in every region, and starts them from any.

    Raises DeclarationErrors for a schedule whose workflow would exceed a limit of Workflows.
    """

    def get_request_field(field: str) -> pulumi.Input[Any]:
        return when_known(lambda known: getattr(known, field), request)

    assert opts.parent
    ours = pulumi.ResourceOptions.merge(
        create_retrying_options(opts.parent, [accounts], protect=protect or None),
        pulumi.ResourceOptions(depends_on=opts.depends_on),
    )
    workflow = workflows.Workflow(
        f"{name}-workflow",
        name=get_request_field("id"),
        project=project,
        region=region,
        description=f"Submits the jobs of the schedule {name} of {pulumi.get_project()}/{pulumi.get_stack()}",
        service_account=accounts.workflow,
        source_contents=when_known(lambda known: _require_valid_workflow_source(name, known, project, region), request),
        labels=dict(labels) or None,
        crypto_key_name=kms_key,
        # What a job's request was refused with stays in the logs of Workflows, beside the execution's error.
        call_log_level="LOG_ERRORS_ONLY",
        # The provider would refuse `pulumi destroy`.
        deletion_protection=protect,
        opts=ours,
    )
    place = f"https://workflowexecutions.googleapis.com/v1/{location_name(project, region)}/workflows"
    return cloudscheduler.Job(
        f"{name}-scheduler",
        name=get_request_field("id"),
        project=project,
        region=scheduler_region,
        description=f"Starts the workflow of the schedule {name} of {pulumi.get_project()}/{pulumi.get_stack()}",
        schedule=get_request_field("cron"),
        time_zone=get_request_field("time_zone"),
        paused=get_request_field("paused"),
        attempt_deadline=_ATTEMPT_DEADLINE,
        retry_config=when_known(_build_retry_config, request),
        http_target={
            "uri": when_known(lambda known: f"{place}/{known.id}/executions", request),
            "http_method": "POST",
            "headers": {"Content-Type": "application/json"},
            "body": base64.b64encode(b"{}").decode(),
            "oauth_token": {"service_account_email": accounts.scheduler, "scope": _SCOPE},
        },
        opts=pulumi.ResourceOptions.merge(ours, pulumi.ResourceOptions(depends_on=[workflow])),
    )


def _require_valid_workflow_source(name: str, request: ScheduleRequest, project: str, region: str) -> str:
    """Return the source of a workflow. Raises DeclarationErrors if Workflows would not take it."""
    place = f"schedules.{name}"
    if violations := list(request_violations(request)):
        raise DeclarationErrors([Problem(place, show_path(path), message) for path, message in violations])
    window = redelivery_window(shortest_gap(request.cron, request.time_zone))
    source = workflow_source(request, Place(project, region, request.id), window)
    if message := size_violation(source):
        raise DeclarationErrors([Problem(place, "", message)])
    return source


def _build_retry_config(request: ScheduleRequest) -> cloudscheduler.JobRetryConfigArgsDict:
    """Return the retries of a start that fails: none if the next time comes before they would be over."""
    is_frequent = redelivery_window(shortest_gap(request.cron, request.time_zone)) < MAX_REDELIVERY_WINDOW
    count = 0 if is_frequent else _RETRIES
    return {"retry_count": count, "min_backoff_duration": "15s", "max_backoff_duration": "60s"}
