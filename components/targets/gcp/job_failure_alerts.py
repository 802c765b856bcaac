"""JobFailureAlerts: notifications of training jobs that fail."""

from __future__ import annotations  # loads the provider's types only if they are used

import pulumi
from pulumi_gcp import monitoring

from ...schema import stack_config_types
from .propagation_retries import create_retrying_options

FAILED_JOB_FILTER = (
    'resource.type="ml_job" resource.labels.task_name="service" '
    '(textPayload:"Job failed" OR jsonPayload.message:"Job failed")'
)
"""The service's own line in a job's log, as public logs show it.

A filter by severity would match all that containers write to stderr, which has the severity ERROR (tfx#5870).
"""
_DEFAULT_RATE_LIMIT = "300s"
_JOB = "${log.extracted_label.job_id}"


class JobFailureAlerts(pulumi.ComponentResource):
    """An alert policy for the failed jobs of a whole project, and an e-mail channel for each address in `channels`.

    Monitoring requires a rate limit of policies that match logs: one notification in that time, however many jobs fail.
    """

    def __init__(
        self, name: str, alerts: stack_config_types.Alerts, *, project: str, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("vertex:gcp:JobFailureAlerts", name, None, opts)
        options = create_retrying_options(self)
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
                        "filter": FAILED_JOB_FILTER,
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
            notification_channels=[
                channel if "@" not in channel else _create_email_channel(name, channel, project, options).name
                for channel in dict.fromkeys(alerts["channels"])
            ],
            opts=options,
        )
        self.register_outputs({})


def _create_email_channel(
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
