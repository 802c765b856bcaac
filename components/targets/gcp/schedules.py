"""Schedules on Google Cloud: a workflow each that submits its jobs, what starts it, and the accounts that all share."""

from __future__ import annotations  # loads the provider's types only if they are used

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Required, TypedDict

import pulumi
from pulumi_gcp import cloudscheduler, projects, serviceaccount, workflows

from vertex_api.messages import show_path
from vertex_api.names import location_name
from vertex_api.schedules import ScheduleRequest

from ...errors import DeclarationErrors, Problem
from ...runtime.resource import when_known
from ...schema import shapes
from .project import (
    ACT_AS,
    LOG_WRITER,
    Component,
    ServiceAgents,
    Services,
    ServicesArgs,
    account_email,
    grant_act_as,
    grant_key,
    labelling,
    retrying,
)

_APIS = ("cloudscheduler", "workflowexecutions", "workflows")
_STARTER_PERMISSIONS = ("workflows.executions.create",)
"""Of Cloud Scheduler's account, which need not read and cancel executions, as roles/workflows.invoker lets it.

On the project: workflows have no policies of their own (discovery document, v1), and are not among the resources that
a condition can name (page "Resource attributes for IAM Conditions").
"""
_SUBMITTER_PERMISSIONS = (
    *(
        f"aiplatform.{collection}.{verb}"
        for collection in ("customJobs", "hyperparameterTuningJobs", "trainingPipelines")
        for verb in ("create", "get", "list")
    ),
    "aiplatform.models.upload",
    "workflows.executions.get",
    "workflows.executions.list",
)
"""Of the workflows' account: it submits and reads jobs, of which pipelines upload models, and looks for other
executions of its workflow. Each method needs the permission of its name (page "Vertex AI IAM permissions", and the REST
reference of executions); roles/aiplatform.user could delete models and endpoints."""
_SUBMITTER_ROLES = {"logs": LOG_WRITER}
"""Of the workflows' account: without it, what workflows log is lost (page "Grant a workflow permission")."""
_WORKFLOWS_AGENT_ROLE = "roles/workflows.serviceAgent"
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_ATTEMPT_DEADLINE = "60s"
_RETRIES = 3
"""Of a start that fails. All attempts take at most six minutes, less than `MAX_REDELIVERY_WINDOW`."""


class ScheduleArgs(TypedDict, total=False):
    """Workflows are where jobs run, in `region`. Cloud Scheduler is not in every region, and starts them from any."""

    project: Required[str]
    region: Required[str]
    scheduler_region: Required[str]
    request: Required[pulumi.Input[ScheduleRequest]]
    accounts: Required[ScheduleAccounts]
    labels: Mapping[str, str] | None
    kms_key: str | None
    protect: bool


def create(name: str, args: ScheduleArgs, opts: pulumi.ResourceOptions) -> cloudscheduler.Job:
    """Create the workflow of a schedule, and the job of Cloud Scheduler that starts it, which is returned.

    Raises DeclarationErrors for a schedule whose workflow would exceed a limit of Workflows.
    """
    project, region, request, accounts = args["project"], args["region"], args["request"], args["accounts"]
    protect = args.get("protect", False)

    def item(field: str) -> pulumi.Input[Any]:
        return when_known(lambda known: getattr(known, field), request)

    assert opts.parent
    ours = pulumi.ResourceOptions.merge(
        retrying(opts.parent, accounts, protect=protect or None),
        pulumi.ResourceOptions(depends_on=opts.depends_on, transformations=[labelling(args.get("labels") or {})]),
    )
    of = f"the schedule {name} of {pulumi.get_project()}/{pulumi.get_stack()}"
    workflow = workflows.Workflow(
        f"{name}-workflow",
        name=item("id"),
        project=project,
        region=region,
        description=f"Submits the jobs of {of}",
        service_account=accounts.workflow,
        source_contents=when_known(lambda known: _workflow_source(name, known, project, region), request),
        crypto_key_name=args.get("kms_key"),
        # What a job's request was refused with stays in the logs of Workflows, beside the execution's error.
        call_log_level="LOG_ERRORS_ONLY",
        # The provider would refuse `pulumi destroy`.
        deletion_protection=protect,
        opts=ours,
    )
    place = f"https://workflowexecutions.googleapis.com/v1/{location_name(project, region)}/workflows"
    return cloudscheduler.Job(
        f"{name}-scheduler",
        name=item("id"),
        project=project,
        region=args["scheduler_region"],
        description=f"Starts the workflow of {of}",
        schedule=item("cron"),
        time_zone=item("time_zone"),
        paused=item("paused"),
        attempt_deadline=_ATTEMPT_DEADLINE,
        retry_config=when_known(_retry_config, request),
        http_target={
            "uri": when_known(lambda known: f"{place}/{known.id}/executions", request),
            "http_method": "POST",
            "headers": {"Content-Type": "application/json"},
            "body": base64.b64encode(b"{}").decode(),
            "oauth_token": {"service_account_email": accounts.scheduler, "scope": _SCOPE},
        },
        opts=pulumi.ResourceOptions.merge(ours, pulumi.ResourceOptions(depends_on=[workflow])),
    )


def _workflow_source(name: str, request: ScheduleRequest, project: str, region: str) -> str:
    """Return the source of a workflow. Raises DeclarationErrors if Workflows would not take it."""
    # Imported here, because most stacks have no schedules.
    from vertex_api.cron import shortest_gap

    from ...workflow.source import (
        Place,
        length_violation,
        redelivery_window,
        request_violations,
        size_violation,
        workflow_source,
    )

    place = f"schedules.{name}"
    if violations := list(request_violations(request)):
        raise DeclarationErrors([Problem(place, show_path(path), message) for path, message in violations])
    window = redelivery_window(shortest_gap(request.cron, request.time_zone))
    source = workflow_source(request, Place(project, region, request.id), window)
    if message := length_violation(request) or size_violation(source):
        raise DeclarationErrors([Problem(place, "", message)])
    return source


def _retry_config(request: ScheduleRequest) -> cloudscheduler.JobRetryConfigArgsDict:
    """Return the retries of a start that fails: none if the next time comes before they would be over."""
    from vertex_api.cron import shortest_gap

    from ...workflow.source import MAX_REDELIVERY_WINDOW, redelivery_window

    is_frequent = redelivery_window(shortest_gap(request.cron, request.time_zone)) < MAX_REDELIVERY_WINDOW
    count = 0 if is_frequent else _RETRIES
    return {"retry_count": count, "min_backoff_duration": "15s", "max_backoff_duration": "60s"}


class ScheduleAccountsArgs(TypedDict, total=False):
    """`accounts` are the `scheduling` of a stack file. `submitters` may use both accounts.

    `training_account` is the resource name of the account that jobs run as. `role_ids` are those of the custom roles
    of `scheduler` and `workflow`. `kms_key` encrypts workflows, as they hold the requests of jobs.
    """

    project: Required[str]
    project_number: Required[str]
    accounts: Required[shapes.CloudScheduling]
    training_account: Required[str]
    role_ids: Required[Mapping[str, str]]
    submitters: Sequence[str]
    kms_key: str | None


class ScheduleAccounts(Component):
    """What the schedules of a stack share: APIs, the agent of Workflows, and two accounts.

    Cloud Scheduler starts workflows as `scheduler`, and workflows submit jobs as `workflow`: e-mails, as plain text. An
    account that exists already gets no grants, except that `workflow` may submit jobs as the training account. Each
    other one has a custom role.
    """

    def __init__(self, name: str, args: ScheduleAccountsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        self._name, self._args = name, args
        services: ServicesArgs = {"project": args["project"], "apis": _APIS}
        self._upstream: list[pulumi.Resource] = [
            Services(f"{name}-services", services, pulumi.ResourceOptions(parent=self))
        ]
        self._create_agent()
        self.scheduler = self._account("scheduler", "Cloud Scheduler", _STARTER_PERMISSIONS, {})
        self.workflow = self._account("workflow", "Workflows", _SUBMITTER_PERMISSIONS, _SUBMITTER_ROLES)
        serviceaccount.IAMMember(
            f"{name}-act-as",
            service_account_id=args["training_account"],
            role=ACT_AS,
            member=f"serviceAccount:{self.workflow}",
            opts=self.retrying(*self._upstream),
        )
        self.register_outputs({"scheduler": self.scheduler, "workflow": self.workflow})

    def _account(
        self,
        key: Literal["scheduler", "workflow"],
        purpose: str,
        permissions: Sequence[str],
        roles: Mapping[str, str],
    ) -> str:
        """Create an account with its grants, unless it exists, and return its e-mail."""
        account = self._args["accounts"][key]
        if "existing" in account:
            return account["existing"]
        name, project = f"{self._name}-{key}", self._args["project"]
        email = account_email(account["account"], project)
        title = f"Vertex AI training: {purpose}"
        options = self.retrying(*self._upstream)
        created = serviceaccount.Account(
            name, project=project, account_id=account["account"], display_name=title, opts=options
        )
        self._upstream.append(created)
        role_id = self._args["role_ids"][key]
        custom_role = projects.IAMCustomRole(
            f"{name}-role", project=project, role_id=role_id, title=title, permissions=list(permissions), opts=options
        )
        options = self.retrying(created, custom_role)
        for suffix, role in {"role": f"projects/{project}/roles/{role_id}", **roles}.items():
            projects.IAMMember(
                f"{name}-{suffix}", project=project, role=role, member=f"serviceAccount:{email}", opts=options
            )
        grant_act_as(name, email, self._args.get("submitters", ()), project, options)
        return email

    def _create_agent(self) -> None:
        """Let the agent of Workflows exist before the first workflow, which is refused without it.

        It may not exist for minutes after its API is enabled (terraform-google-bigquery #226, #232), and an agent that
        is created on request does not get its role. It stays after the stack, as other workflows need it.
        """
        name, project = f"{self._name}-agent", self._args["project"]
        kept = pulumi.ResourceOptions(retain_on_delete=True)
        options = pulumi.ResourceOptions.merge(self.retrying(*self._upstream), kept)
        agent = projects.ServiceIdentity(name, project=project, service="workflows.googleapis.com", opts=options)
        options = pulumi.ResourceOptions.merge(self.retrying(agent), kept)
        member = ServiceAgents(self._args["project_number"]).workflows
        granted = projects.IAMMember(
            f"{name}-role", project=project, role=_WORKFLOWS_AGENT_ROLE, member=member, opts=options
        )
        self._upstream.append(granted)
        if key := self._args.get("kms_key"):
            self._upstream.append(grant_key(f"{self._name}-key", key, member, self.retrying(agent)))
