"""ScheduleAccounts: what the schedules of a stack share: APIs, the agent of Workflows, and two accounts."""

from __future__ import annotations  # loads the provider's types only if they are used

from collections.abc import Mapping, Sequence

import pulumi
from pulumi_gcp import projects, serviceaccount

from ...schema import shapes
from .account_emails import ServiceAgentMembers, build_account_email
from .enabled_apis import Services
from .key_access import grant_key_use
from .propagation_retries import create_retrying_options
from .training_identity import ACT_AS

APIS = ("cloudscheduler", "workflowexecutions", "workflows")
STARTER_PERMISSIONS = ("workflows.executions.create",)
"""Of Cloud Scheduler's account, which need not read and cancel executions, as roles/workflows.invoker lets it.

On the project: workflows have no policies of their own (discovery document, v1), and are not among the resources that
a condition can name (page "Resource attributes for IAM Conditions").
"""
SUBMITTER_PERMISSIONS = (
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
SUBMITTER_ROLES = {"logs": "roles/logging.logWriter"}
"""Of the workflows' account: without it, what workflows log is lost (page "Grant a workflow permission")."""
WORKFLOWS_AGENT_ROLE = "roles/workflows.serviceAgent"


class ScheduleAccounts(pulumi.ComponentResource):
    """The accounts with which Cloud Scheduler starts workflows, and workflows submit jobs: `scheduler`, `workflow`.

    Both are e-mails, as plain text. An account that exists already gets no grants, except that `workflow` may submit
    jobs as the training account. Each other one has a custom role, whose ids are `role_ids`. `submitters` may use both
    accounts. `kms_key` encrypts workflows, as they hold the requests of jobs.
    """

    def __init__(
        self,
        name: str,
        accounts: shapes.CloudScheduling,
        *,
        project: str,
        project_number: str,
        training_account_name: str,
        role_ids: Mapping[str, str],
        submitters: Sequence[str] = (),
        kms_key: str | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("vertex:gcp:ScheduleAccounts", name, None, opts)
        self._name, self._project, self._submitters, self._role_ids = name, project, submitters, role_ids
        services = Services(f"{name}-services", APIS, project=project, opts=pulumi.ResourceOptions(parent=self))
        self._upstream: list[pulumi.Resource] = [services]
        self._create_workflows_agent_and_grants(project_number, kms_key)
        self.scheduler = self._get_account_email_and_create_if_new(
            "scheduler", accounts["scheduler"], "Cloud Scheduler", STARTER_PERMISSIONS, {}
        )
        self.workflow = self._get_account_email_and_create_if_new(
            "workflow", accounts["workflow"], "Workflows", SUBMITTER_PERMISSIONS, SUBMITTER_ROLES
        )
        serviceaccount.IAMMember(
            f"{name}-act-as",
            service_account_id=training_account_name,
            role=ACT_AS,
            member=f"serviceAccount:{self.workflow}",
            opts=create_retrying_options(self, self._upstream),
        )
        self.register_outputs({"scheduler": self.scheduler, "workflow": self.workflow})

    def _get_account_email_and_create_if_new(
        self,
        key: str,
        account: shapes.ScheduleAccount,
        purpose: str,
        permissions: Sequence[str],
        roles: Mapping[str, str],
    ) -> str:
        """Create an account with its grants, unless it exists, and return its e-mail."""
        if "existing" in account:
            return account["existing"]
        name, project = f"{self._name}-{key}", self._project
        email = build_account_email(account["account"], project)
        title = f"Vertex AI training: {purpose}"
        options = create_retrying_options(self, self._upstream)
        created = serviceaccount.Account(
            name, project=project, account_id=account["account"], display_name=title, opts=options
        )
        self._upstream.append(created)
        role_id = self._role_ids[key]
        custom_role = projects.IAMCustomRole(
            f"{name}-role", project=project, role_id=role_id, title=title, permissions=list(permissions), opts=options
        )
        options = create_retrying_options(self, [created, custom_role])
        for suffix, role in {"role": f"projects/{project}/roles/{role_id}", **roles}.items():
            projects.IAMMember(
                f"{name}-{suffix}", project=project, role=role, member=f"serviceAccount:{email}", opts=options
            )
        for submitter in self._submitters:
            serviceaccount.IAMMember(
                f"{name}-{submitter}",
                service_account_id=f"projects/{project}/serviceAccounts/{email}",
                role=ACT_AS,
                member=submitter,
                opts=options,
            )
        return email

    def _create_workflows_agent_and_grants(self, project_number: str, kms_key: str | None) -> None:
        """Let the service agent exist before the first workflow, which is refused without it.

        It may not exist for minutes after its API is enabled (terraform-google-bigquery #226, #232), and an agent that
        is created on request does not get its role. It stays after the stack, as other workflows need it.
        """
        name = f"{self._name}-agent"
        kept = pulumi.ResourceOptions(retain_on_delete=True)
        options = pulumi.ResourceOptions.merge(create_retrying_options(self, self._upstream), kept)
        agent = projects.ServiceIdentity(name, project=self._project, service="workflows.googleapis.com", opts=options)
        options = pulumi.ResourceOptions.merge(create_retrying_options(self, [agent]), kept)
        member = ServiceAgentMembers(project_number).workflows
        granted = projects.IAMMember(
            f"{name}-role", project=self._project, role=WORKFLOWS_AGENT_ROLE, member=member, opts=options
        )
        self._upstream.append(granted)
        if kms_key:
            options = create_retrying_options(self, [agent])
            self._upstream.append(grant_key_use(f"{self._name}-key", kms_key, member, options))
