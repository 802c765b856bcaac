"""JobFailureAlerts and ScheduleAlerts: notifications of training jobs, and of runs of schedules, that fail."""

from __future__ import annotations  # loads the provider's types only if they are used

from collections.abc import Mapping, Sequence
from typing import Required, TypedDict

import pulumi
from pulumi_gcp import monitoring

from ...schema import shapes
from .project import Component

_FAILED_JOB_FILTER = (
    'resource.type="ml_job" resource.labels.task_name="service" '
    '(textPayload:"Job failed" OR jsonPayload.message:"Job failed")'
)
"""The service's own line in a job's log, as public logs show it.

A filter by severity would match all that containers write to stderr, which has the severity ERROR (tfx#5870).
"""
_FAILED_EXECUTIONS_FILTER = (
    'resource.type="workflows.googleapis.com/Workflow" AND resource.labels.workflow_id=starts_with("{prefix}") AND '
    'metric.type="workflows.googleapis.com/finished_execution_count" AND metric.labels.status="FAILED"'
)
"""Executions of workflows that have failed: pages "Monitor workflows" and "Google Cloud metrics". It needs no logs."""
_FAILED_STARTS_FILTER = 'resource.type="cloud_scheduler_job" resource.labels.job_id=~"^{prefix}" severity>=ERROR'
"""Starts that Cloud Scheduler has given up or will try again: its log has an entry of each (page "View logs")."""
_MINUTES_5, _MINUTES_30 = "300s", "1800s"
_DEFAULT_RATE_LIMIT = "300s"
_JOB = "${log.extracted_label.job_id}"


class JobFailureAlertsArgs(TypedDict, total=False):
    """`alerts` are those of a stack file. Policies and channels have `labels`."""

    project: Required[str]
    alerts: Required[shapes.Alerts]
    labels: Mapping[str, str] | None


class JobFailureAlerts(Component):
    """An alert policy for the failed jobs of a whole project, and an e-mail channel for each address in its channels.

    Monitoring requires a rate limit of policies that match logs: one notification in that time, however many jobs fail.
    The names of all channels are `channels`.
    """

    channels: Sequence[pulumi.Input[str]]

    def __init__(self, name: str, args: JobFailureAlertsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts, args.get("labels"))
        alerts, project, options = args["alerts"], args["project"], self.retrying()
        self.channels = [
            channel if "@" not in channel else _email_channel(name, channel, project, options).name
            for channel in dict.fromkeys(alerts["channels"])
        ]
        logs = f"https://console.cloud.google.com/logs/query;query=resource.labels.job_id%3D%22{_JOB}%22"
        monitoring.AlertPolicy(
            name,
            project=project,
            display_name=alerts["displayName"],
            combiner="OR",
            conditions=[
                {
                    "display_name": "A training job has failed",
                    "condition_matched_log": {
                        "filter": _FAILED_JOB_FILTER,
                        "label_extractors": {"job_id": "EXTRACT(resource.labels.job_id)"},
                    },
                }
            ],
            alert_strategy={
                "notification_rate_limit": {"period": alerts.get("notificationRateLimit", _DEFAULT_RATE_LIMIT)}
            },
            documentation={
                "content": f"The training job {_JOB} in {project} has failed: [logs]({logs}?project={project})",
                "mime_type": "text/markdown",
            },
            notification_channels=self.channels,
            opts=options,
        )
        self.register_outputs({})


class ScheduleAlertsArgs(TypedDict, total=False):
    """`alerts` are those of a stack file. The ids of its schedules begin with `id_prefix`. Policies have `labels`."""

    project: Required[str]
    alerts: Required[shapes.Alerts]
    id_prefix: Required[str]
    channels: Required[Sequence[pulumi.Input[str]]]
    labels: Mapping[str, str] | None


class ScheduleAlerts(Component):
    """Alert policies for the schedules of a stack: a run that fails, and a start.

    A run that ends before it has a job writes no line of a job, and Cloud Scheduler has started it, so neither the
    alerts of jobs nor those of starts see it. These are two policies, as one that matches logs has one condition only
    (page "Configure log-based alerting policies").
    """

    def __init__(self, name: str, args: ScheduleAlertsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts, args.get("labels"))
        alerts, project, id_prefix = args["alerts"], args["project"], args["id_prefix"]
        channels, options, console = args["channels"], self.retrying(), "https://console.cloud.google.com"
        run = "${resource.label.workflow_id}"
        executions = f"{console}/workflows/workflow/${{resource.label.location}}/{run}/executions?project={project}"
        failed: monitoring.AlertPolicyConditionConditionThresholdArgsDict = {
            "filter": _FAILED_EXECUTIONS_FILTER.format(prefix=id_prefix),
            "comparison": "COMPARISON_GT",
            "threshold_value": 0,
            "duration": "0s",
            "aggregations": [{"alignment_period": _MINUTES_5, "per_series_aligner": "ALIGN_SUM"}],
        }
        monitoring.AlertPolicy(
            f"{name}-runs",
            project=project,
            display_name=f"{alerts['displayName']}: runs of schedules",
            combiner="OR",
            conditions=[{"display_name": "A run of a schedule has failed", "condition_threshold": failed}],
            # An incident that stays open, by default for seven days, would keep the next night's to itself.
            alert_strategy={"auto_close": _MINUTES_30},
            documentation={
                "content": f"A run of the schedule {run} in {project} has failed: [executions]({executions})",
                "mime_type": "text/markdown",
            },
            notification_channels=channels,
            opts=options,
        )
        start = "${log.extracted_label.job_id}"
        monitoring.AlertPolicy(
            f"{name}-starts",
            project=project,
            display_name=f"{alerts['displayName']}: starts of schedules",
            combiner="OR",
            conditions=[
                {
                    "display_name": "Cloud Scheduler has not started a run",
                    "condition_matched_log": {
                        "filter": _FAILED_STARTS_FILTER.format(prefix=id_prefix),
                        "label_extractors": {"job_id": "EXTRACT(resource.labels.job_id)"},
                    },
                }
            ],
            alert_strategy={
                "notification_rate_limit": {"period": alerts.get("notificationRateLimit", _DEFAULT_RATE_LIMIT)}
            },
            documentation={
                "content": f"Cloud Scheduler has not started the schedule {start}: [jobs]({console}/cloudscheduler"
                f"?project={project})",
                "mime_type": "text/markdown",
            },
            notification_channels=channels,
            opts=options,
        )
        self.register_outputs({})


def _email_channel(
    name: str, address: str, project: str, options: pulumi.ResourceOptions
) -> monitoring.NotificationChannel:
    return monitoring.NotificationChannel(
        f"{name}-{address}",
        project=project,
        display_name=address,
        type="email",
        labels={"email_address": address},
        opts=options,
    )
