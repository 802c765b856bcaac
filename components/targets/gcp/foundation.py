"""GcpFoundation: a Google Cloud project as the target."""

from collections.abc import Iterable, Mapping
from typing import Any

import pulumi
from pulumi import ResourceOptions

from vertex_api.names import location_name
from vertex_api.schedules import ScheduleRequest

from ...jobs.ledger import Ledger
from ...runtime.program_job_validation import ProgramJobs
from ...runtime.target import CLOUD_PREFIX
from ...schedules.component import schedule_id_prefix
from ...schedules.status import ScheduleStatus
from ...schema import shapes
from ...schema.formats import SOURCE_FOLDER
from ...settings.default_cloud_names import generate_builder_account_id, generate_role_id
from ...settings.program_job_rules import ProgramJobRules
from ...settings.settings import Settings
from ...settings.writable_folders import WritableFolders
from .account_emails import is_account_of_project
from .builder_identity import BuilderIdentity
from .enabled_apis import Services, get_required_api_short_names
from .image_registry import ImageRegistry
from .job_failure_alerts import JobFailureAlerts, ScheduleAlerts
from .job_network_connection import JobNetwork
from .persistent_resource_component import PersistentResource
from .schedule_prerequisites import ScheduleAccounts
from .secret_access import SecretAccess
from .service_agent_access import Grants, ServiceAgentAccess
from .staging_bucket import StagingBucket
from .tensorboard import Tensorboard
from .training_identity import TrainingIdentity


class GcpFoundation(pulumi.ComponentResource):
    """APIs, repository, account, bucket, network, grants and machines, in the order in which they need one another.

    Image URIs, IAM members, the bucket and output directories are plain text, so a preview shows them.
    """

    def __init__(self, settings: Settings, stack: shapes.Cloud, opts: ResourceOptions | None = None) -> None:
        super().__init__("vertex:foundation:Gcp", "gcp", None, opts)
        project, region = settings.project, settings.region
        number, kms_key = stack["projectNumber"], stack.get("kmsKey")
        options = ResourceOptions(parent=self)
        services = Services("services", get_required_api_short_names(stack), project=project, opts=options)

        def build_options_after_services_and(*upstream: pulumi.Resource | None) -> ResourceOptions:
            return ResourceOptions(parent=self, depends_on=[services, *filter(None, upstream)])

        registry = ImageRegistry(
            "registry",
            stack["registry"],
            project=project,
            project_number=number,
            region=region,
            opts=build_options_after_services_and(),
        )
        identity, training = stack["identity"], None
        if "account" in identity:
            training = TrainingIdentity(
                "identity",
                identity["account"],
                project=project,
                submitters=identity.get("submitters", []),
                uses_vertex_ai=identity.get("useVertexAi", True),
                opts=build_options_after_services_and(),
            )
        account = training.email if training else identity["existing"]
        folders = WritableFolders.of_stack(settings.pulumi_project, settings.stack, stack)
        specs = [job.required_valid_spec for job in (*settings.jobs, *settings.scheduled_jobs)]
        bucket = StagingBucket(
            "bucket",
            stack["bucket"],
            project=project,
            project_number=number,
            region=region,
            member=f"serviceAccount:{account}",
            folders=folders,
            other_folders=folders.list_others(specs),
            opts=build_options_after_services_and(training),
        )
        builder = None
        if (cloud_build := stack.get("builder", {}).get("cloudBuild")) is not None:
            builder = BuilderIdentity(
                "builder",
                account=generate_builder_account_id(settings.pulumi_project, settings.stack),
                existing=cloud_build.get("serviceAccount"),
                project=project,
                repository=registry.repository,
                bucket=bucket.name,
                secrets=_list_build_secret_names(cloud_build, settings.images.values()),
                submitters=identity.get("submitters", []),
                opts=build_options_after_services_and(registry, bucket),
            )
        network = None
        if "network" in stack:
            network = JobNetwork(
                "network", stack["network"], project=project, region=region, opts=build_options_after_services_and()
            )
        grants = Grants(
            repository=registry.repository,
            kms_key=kms_key,
            legacy_buckets=tuple(stack["registry"].get("legacyBuckets", [])),
            has_legacy_agent=stack["registry"].get("legacyAgent", False),
            dns_projects=network.dns_projects if network else (),
            # The service agent creates tokens for an account of another project.
            foreign_account=None if is_account_of_project(account, project, number) else account,
            has_agent_roles=identity.get("agentRoles", True),
            # The owner of an attachment in another project grants its use there.
            attachment_role_id=generate_role_id(project, settings.pulumi_project, settings.stack)
            if network and network.attachment_project in (project, number)
            else None,
        )
        access = ServiceAgentAccess(
            "access", grants, project=project, project_number=number, opts=build_options_after_services_and(registry)
        )
        machines = None
        if "persistentResource" in stack:
            machines = PersistentResource(
                "machines",
                stack["persistentResource"],
                project=project,
                region=region,
                network=network.fields if network else None,
                kms_key=kms_key,
                labels=stack.get("labels"),
                opts=build_options_after_services_and(access, network),
            )
        secrets = alerts = board = None
        if names := identity.get("secrets"):
            options = build_options_after_services_and(training)
            secrets = SecretAccess("secrets", names, project=project, member=f"serviceAccount:{account}", opts=options)
        if "alerts" in stack:
            alerts = JobFailureAlerts(
                "alerts", stack["alerts"], project=project, opts=build_options_after_services_and()
            )
        if "tensorboard" in stack:
            options = build_options_after_services_and(access)
            board = Tensorboard(
                "tensorboard", stack["tensorboard"], project=project, region=region, kms_key=kms_key, opts=options
            )
        self.image_uri_prefix = registry.image_prefix
        self.staging_folder_uri = f"{bucket.uri}/{folders.own.rstrip('/')}"
        self.full_location_name = CLOUD_PREFIX + location_name(project, region)
        self.job_spec_defaults: Mapping[str, Any] = {
            "serviceAccount": account,
            **(network.fields if network else {}),
            **(board.fields if board else {}),
        }
        self.tensorboard_name: pulumi.Input[str] | None = board.created_name if board else None
        self.encryption_key: str | None = kms_key
        self.job_labels: Mapping[str, str] = stack.get("labels", {})
        self.program_jobs = ProgramJobs(ProgramJobRules(settings))
        self.image_builder_config: Mapping[str, Any] | None = None
        if builder and cloud_build is not None:
            defaults = {"region": region, "serviceAccount": builder.email}
            self.image_builder_config = _build_image_builder_config(
                cloud_build, project, defaults, self.staging_folder_uri
            )
        self.image_dependencies: list[pulumi.Resource] = [services, registry, *([bucket, builder] if builder else [])]
        everything = build_options_after_services_and(
            registry, training, bucket, builder, network, access, machines, secrets, alerts, board
        )
        ledger = Ledger("ledger", settings.jobs, self.full_location_name, everything)
        self.job_dependencies: list[pulumi.Resource] = [ledger]
        self._settings, self._stack, self._account = settings, stack, account
        self._schedule_accounts: ScheduleAccounts | None = None
        self._alerts = alerts
        self._schedule_upstream = build_options_after_services_and(training)
        self.register_outputs({})

    def create_schedule(
        self, name: str, request: pulumi.Input[ScheduleRequest], opts: ResourceOptions
    ) -> pulumi.Output[Mapping[str, Any]]:
        """Create the workflow of a schedule, what starts it, and the accounts that all schedules share."""
        # Imported here, because most stacks have no schedules.
        from .schedule_resources import create_workflow_and_scheduler_job

        starter = create_workflow_and_scheduler_job(
            name,
            request,
            project=self._settings.project,
            region=self._settings.region,
            scheduler_region=self._stack["scheduling"].get("region", self._settings.region),
            accounts=self._create_schedule_accounts_once(),
            labels=self.job_labels,
            kms_key=self.encryption_key,
            protect=self._stack["scheduling"].get("protect", False),
            opts=opts,
        )
        options = ResourceOptions.merge(opts, ResourceOptions(depends_on=[starter]))
        status = ScheduleStatus(name, self.full_location_name, request, options)
        return status.recovered("status")

    def _create_schedule_accounts_once(self) -> ScheduleAccounts:
        """Return what all schedules share; a stack without schedules does without."""
        if self._schedule_accounts is None:
            is_created_here = "account" in self._stack["identity"]
            project = self._settings.project
            self._schedule_accounts = ScheduleAccounts(
                "schedules",
                self._stack["scheduling"],
                project=project,
                project_number=self._stack["projectNumber"],
                role_ids={
                    key: generate_role_id(project, self._settings.pulumi_project, self._settings.stack, key)
                    for key in ("scheduler", "workflow")
                },
                training_account_name=f"projects/{project if is_created_here else '-'}/serviceAccounts/{self._account}",
                submitters=self._stack["identity"].get("submitters", []),
                kms_key=self.encryption_key,
                opts=self._schedule_upstream,
            )
            if self._alerts:
                ScheduleAlerts(
                    "schedule-alerts",
                    self._stack["alerts"],
                    id_prefix=schedule_id_prefix(self._settings.pulumi_project, self._settings.stack),
                    channels=self._alerts.channels,
                    project=project,
                    # Their metric and their logs are of services that are enabled with the accounts.
                    opts=ResourceOptions(parent=self, depends_on=[self._schedule_accounts]),
                )
        return self._schedule_accounts


def _build_image_builder_config(
    cloud_build: shapes.CloudBuild, project: str, defaults: Mapping[str, str], staging_folder_uri: str
) -> dict[str, Any]:
    """Return the `image_builder_config` of a foundation. `defaults` are those of `region` and `serviceAccount`."""
    options = {**defaults, **cloud_build}
    options |= {"project": project, "sourceFolder": f"{staging_folder_uri}/{SOURCE_FOLDER}"}
    return {"cloudBuild": options}


def _list_build_secret_names(cloud_build: shapes.CloudBuild, images: Iterable[shapes.Image]) -> list[str]:
    """Return the secrets of Secret Manager that builds read, `projects/P/secrets/NAME`."""
    own = (image.get("builder", {}).get("cloudBuild", {}) for image in images)
    versions = [version for options in (cloud_build, *own) for version in options.get("secrets", {}).values()]
    return sorted({version.partition("/versions/")[0] for version in versions})
