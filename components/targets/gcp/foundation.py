"""GcpFoundation: a Google Cloud project as the target."""

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi import ResourceOptions

from vertex_api import credentials
from vertex_api.names import location_name
from vertex_api.schedules import ScheduleRequest

from ...jobs.ledger import LEDGER_NAME, Ledger
from ...plan.programmed import Program
from ...plan.training import Defaults
from ...runtime.target import CLOUD_PREFIX
from ...schedules.component import schedule_id_prefix
from ...schedules.provider import ScheduleStatus
from ...schema.formats import SOURCE_FOLDER
from ...settings.names import builder_account, role_id
from ...settings.settings import Settings
from . import schedules
from .access import BuilderIdentity, DataAccess, SecretAccess, ServiceAgentAccess, TrainingIdentity
from .alerts import JobFailureAlerts, ScheduleAlerts
from .network import JobNetwork
from .project import Component, Services, is_own_account, required_apis
from .schedules import ScheduleAccounts
from .storage import ImageRegistry, RepositoryName, StagingBucket
from .vertex import PersistentResource, Tensorboard


class GcpFoundation(Component):
    """APIs, repository, account, bucket, network, grants and machines, in the order in which they need one another.

    It is made of `settings.cloud`. Image URIs, IAM members, the bucket and output directories are plain text, so a
    preview shows them.
    """

    def __init__(self, name: str, settings: Settings, opts: ResourceOptions | None = None) -> None:
        assert settings.cloud is not None
        stack = settings.cloud
        super().__init__(name, opts, stack.get("labels"))
        self._settings, self._stack = settings, stack
        project, region, number, key = settings.project, settings.region, stack["projectNumber"], stack.get("kmsKey")
        self._services = Services(
            settings.named("services"),
            {"project": project, "apis": required_apis(stack, settings.granted_data)},
            ResourceOptions(parent=self),
        )
        registry = ImageRegistry(
            settings.named("registry"),
            {"project": project, "project_number": number, "region": region, "registry": stack["registry"]},
            self._after(),
        )
        identity, training = stack["identity"], None
        if "account" in identity:
            training = TrainingIdentity(
                settings.named("identity"),
                {
                    "project": project,
                    "account": identity["account"],
                    "submitters": identity.get("submitters", []),
                    "uses_vertex_ai": identity.get("useVertexAi", True),
                },
                self._after(),
            )
        self._account = account = training.email if training else identity["existing"]
        folders = settings.plan.folders
        assert folders is not None
        bucket = StagingBucket(
            settings.named("bucket"),
            {
                "project": project,
                "project_number": number,
                "region": region,
                "bucket": stack["bucket"],
                "member": f"serviceAccount:{account}",
                "folders": folders,
                "other_folders": folders.others,
            },
            self._after(training),
        )
        self.image_uri_prefix = registry.image_prefix
        self._folder = f"{bucket.uri}/{folders.own.rstrip('/')}"
        builder = self._create_builder(registry, bucket)
        network = None
        if "network" in stack:
            network = JobNetwork(
                settings.named("network"),
                {"project": project, "project_number": number, "region": region, "network": stack["network"]},
                self._after(),
            )
        access = ServiceAgentAccess(
            settings.named("access"),
            {
                "project": project,
                "project_number": number,
                "repository": registry.repository,
                "kms_key": key,
                "legacy_buckets": stack["registry"].get("legacyBuckets", []),
                "has_legacy_agent": stack["registry"].get("legacyAgent", False),
                "other_repositories": [RepositoryName.parse(each) for each in stack["registry"].get("alsoRead", [])],
                "dns_projects": network.dns_projects if network else (),
                "host_project": network.host_project if network else None,
                # The service agent creates tokens for an account of another project.
                "foreign_account": None if is_own_account(account, project, number) else account,
                "creates_agents": identity.get("createAgents", True),
                "has_agent_roles": identity.get("agentRoles", True),
                # The owner of an attachment in another project grants its use there.
                "attachment_role_id": role_id(project, settings.pulumi_project, settings.stack)
                if network and network.attachment_project == project
                else None,
            },
            self._after(registry),
        )
        machines = secrets = alerts = board = data = None
        if "persistentResource" in stack:
            machines = PersistentResource(
                settings.named("machines"),
                {
                    "project": project,
                    "region": region,
                    "resource": stack["persistentResource"],
                    "network": network.fields if network else None,
                    "kms_key": key,
                },
                self._after(access, network),
            )
        if names := identity.get("secrets"):
            secrets = SecretAccess(
                settings.named("secrets"),
                {"project": project, "secrets": names, "member": f"serviceAccount:{account}"},
                self._after(training),
            )
        if uris := settings.granted_data:
            data = DataAccess(
                settings.named("data"),
                {"project": project, "uris": uris, "member": f"serviceAccount:{account}"},
                self._after(training),
            )
        if "alerts" in stack:
            alerts = JobFailureAlerts(
                settings.named("alerts"),
                {"project": project, "alerts": stack["alerts"]},
                self._after(),
            )
        if "tensorboard" in stack:
            board = Tensorboard(
                settings.named("tensorboard"),
                {"project": project, "region": region, "tensorboard": stack["tensorboard"], "kms_key": key},
                self._after(access),
            )
        self.full_location_name = CLOUD_PREFIX + location_name(project, region)
        self.defaults = Defaults(
            folder=self._folder,
            job_spec={
                "serviceAccount": account,
                **(network.fields if network else {}),
                **(board.fields if board else {}),
            },
            labels=settings.plan.labels,
            kms_key=key,
        )
        self.tensorboard_name: pulumi.Input[str] | None = board.created_name if board else None
        self.program = Program(settings.plan)
        self.image_dependencies: list[pulumi.Resource] = [
            self._services,
            registry,
            *([bucket, builder] if builder else []),
        ]
        everything = self._after(
            registry, training, bucket, builder, network, access, machines, secrets, data, alerts, board
        )
        ledger = Ledger(
            settings.named(LEDGER_NAME),
            settings.resources,
            self._checked_location(),
            {**settings.applied, "registry": self.image_uri_prefix},
            everything,
        )
        self.job_dependencies: list[pulumi.Resource] = [ledger]
        self._schedule_accounts: ScheduleAccounts | None = None
        self._alerts, self._training = alerts, training
        self.register_outputs({})

    def _checked_location(self) -> pulumi.Input[str]:
        """Return `full_location_name`, once it is known that a program's own provider is who submits jobs there too.

        Otherwise it raises a RunError, and no job is registered.
        """
        provider: Any = self.get_provider("gcp:index:Provider")
        if provider is None:
            return self.full_location_name

        def require_one_identity(given: Mapping[str, Any]) -> str:
            is_known = not pulumi.contains_unknowns(given)
            if is_known and (keys := credentials.differing(given, pulumi.runtime.get_config_env())):
                raise pulumi.RunError(
                    f'provider "{provider._name}": {", ".join(keys)}: differs from what jobs, images and packages are '
                    "submitted with: the stack's config, and then the environment; give both the same"
                )
            return self.full_location_name

        own = {
            "gcp:accessToken": provider.access_token,
            "gcp:credentials": provider.credentials,
            "gcp:impersonateServiceAccount": provider.impersonate_service_account,
        }
        checked = pulumi.Output.all(**own).apply(require_one_identity, run_with_unknowns=True)
        return pulumi.Output.unsecret(checked)

    def _after(self, *upstream: pulumi.Resource | None) -> ResourceOptions:
        """Return options of a child that needs the APIs of the project, and what else is there of these resources."""
        return ResourceOptions(parent=self, depends_on=[self._services, *filter(None, upstream)])

    def _create_builder(self, registry: ImageRegistry, bucket: StagingBucket) -> BuilderIdentity | None:
        """Create the account of builds, if Cloud Build builds images, and set `image_builder_config`."""
        self.image_builder_config: Mapping[str, Any] | None = None
        settings, cloud_build = self._settings, self._stack.get("builder", {}).get("cloudBuild")
        if cloud_build is None:
            return None
        builder = BuilderIdentity(
            settings.named("builder"),
            {
                "project": settings.project,
                "account": builder_account(settings.pulumi_project, settings.stack),
                "existing": cloud_build.get("serviceAccount"),
                "repository": registry.repository,
                "bucket": bucket.name,
                "secrets": settings.build_secrets,
                "submitters": self._stack["identity"].get("submitters", []),
            },
            self._after(registry, bucket),
        )
        options = {"region": settings.region, "serviceAccount": builder.email, **cloud_build}
        options |= {"project": settings.project, "sourceFolder": f"{self._folder}/{SOURCE_FOLDER}"}
        self.image_builder_config = {"cloudBuild": options}
        return builder

    def create_schedule(
        self, name: str, request: pulumi.Input[ScheduleRequest], opts: ResourceOptions
    ) -> pulumi.Output[Mapping[str, Any]]:
        """Create the workflow of a schedule, what starts it, and the accounts that all schedules share."""
        settings, scheduling = self._settings, self._stack["scheduling"]
        starter = schedules.create(
            name,
            {
                "project": settings.project,
                "region": settings.region,
                "scheduler_region": scheduling.get("region", settings.region),
                "request": request,
                "accounts": self._shared_accounts(),
                "labels": self._stack.get("labels"),
                "kms_key": self.defaults.kms_key,
                "protect": scheduling.get("protect", False),
            },
            opts,
        )
        options = ResourceOptions.merge(opts, ResourceOptions(depends_on=[starter]))
        return ScheduleStatus(name, self.full_location_name, request, options).recovered("status")

    def _shared_accounts(self) -> ScheduleAccounts:
        """Return what all schedules share, created with the first of them."""
        if self._schedule_accounts is None:
            settings, stack, project = self._settings, self._stack, self._settings.project
            account_project = project if "account" in stack["identity"] else "-"
            self._schedule_accounts = ScheduleAccounts(
                settings.named("schedules"),
                {
                    "project": project,
                    "project_number": stack["projectNumber"],
                    "accounts": stack["scheduling"],
                    "training_account": f"projects/{account_project}/serviceAccounts/{self._account}",
                    "role_ids": {
                        key: role_id(project, settings.pulumi_project, settings.stack, key)
                        for key in ("scheduler", "workflow")
                    },
                    "submitters": stack["identity"].get("submitters", []),
                    "kms_key": self.defaults.kms_key,
                },
                self._after(self._training),
            )
            if self._alerts:
                ScheduleAlerts(
                    settings.named("schedule-alerts"),
                    {
                        "project": project,
                        "alerts": stack["alerts"],
                        "id_prefix": schedule_id_prefix(settings.pulumi_project, settings.stack),
                        "channels": self._alerts.channels,
                    },
                    # Their metric and their logs are of services that are enabled with the accounts.
                    ResourceOptions(parent=self, depends_on=[self._schedule_accounts]),
                )
        return self._schedule_accounts
