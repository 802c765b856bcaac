"""LocalFoundation: this machine as the target, with the emulator in place of Vertex AI."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
from pulumi import dynamic

from vertex_api.catalog.emulator_container_defaults import EGRESS, LOG_LIMIT_MB, PIDS_LIMIT
from vertex_api.resource_names import build_parent
from vertex_api.schedules.schedule_request_types import ScheduleRequest

from ..jobs.recovery.ledger import Ledger
from ..runtime import emulator_process, emulator_secrets_file
from ..runtime.api_target import LOCAL_PREFIX
from ..runtime.failure_tolerant_dynamic_resource import DynamicResource
from ..runtime.program_job_validation import ProgramJobs
from ..runtime.provider_base import Provider
from ..schedules.emulator_schedule import EmulatorSchedule
from ..schema import stack_config_types
from ..settings.program_job_rules import ProgramJobRules
from ..settings.settings import Settings

CONTAINER_DEFAULTS = {"pidsLimit": PIDS_LIMIT, "logLimitMb": LOG_LIMIT_MB, "egress": EGRESS}


class EmulatorProcessProvider(Provider):
    """Starts the emulator with the stack, and stops it with the stack unless jobs of other stacks are active in it."""

    input_names = ("port", *CONTAINER_DEFAULTS, "project", "secrets")

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        _replace_project_secrets(props, props.get("secrets"))
        emulator_process.start_emulator_unless_running(_build_serve_options(props))
        return dynamic.CreateResult("emulator", dict(props))

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        """Restart the emulator if an option of its start has changed; it reads secrets when they are asked for."""
        if olds.get("project", news.get("project")) != news.get("project"):
            _replace_project_secrets(olds, None)
        if _build_serve_options(olds) != _build_serve_options(news):
            emulator_process.stop_emulator_and_print_outcome()
        return super().update(_id, olds, news)

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        """Return what is recorded: whether the emulator runs does not matter, as every call to it starts it."""
        return self.build_read_result_with_inputs(id_, props)

    def delete(self, _id: str, props: dict[str, Any]) -> None:
        _replace_project_secrets(props, None)
        emulator_process.stop_emulator_and_print_outcome(only_if_idle=True)


class Emulator(DynamicResource, module="vertex", name="Emulator"):
    """The emulator's process. Without a `port` it chooses one and keeps it across restarts.

    It serves the `secrets` of `settings` as those of a Google Cloud `project`.
    """

    def __init__(
        self, name: str, settings: stack_config_types.Emulator, project: str, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        props: dict[str, Any] = {"port": None, **settings}
        if secrets := settings.get("secrets"):
            props |= {"project": project, "secrets": pulumi.Output.secret(secrets)}
        super().__init__(EmulatorProcessProvider(), name, props, opts)


class LocalFoundation(pulumi.ComponentResource):
    """The foundation on this machine: images stay in Docker, and buckets are folders of the emulator."""

    def __init__(self, settings: Settings, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("vertex:foundation:Local", "local", None, opts)
        self.image_uri_prefix = f"localhost/{_build_slug(settings.pulumi_project)}"
        self.staging_folder_uri = f"gs://{_build_slug(settings.pulumi_project)}-{_build_slug(settings.stack)}"
        self.full_location_name = LOCAL_PREFIX + build_parent(settings.project, settings.region)
        self.job_spec_defaults: Mapping[str, Any] = {}
        self.job_labels: Mapping[str, str] = {}
        self.encryption_key: str | None = None
        self.program_jobs = ProgramJobs(ProgramJobRules(settings))
        self.tensorboard_name: pulumi.Input[str] | None = None
        self.image_builder_config: Mapping[str, Any] | None = None
        self.image_dependencies: Sequence[pulumi.Resource] = []
        emulator = Emulator("emulator", settings.emulator, settings.project, pulumi.ResourceOptions(parent=self))
        after = pulumi.ResourceOptions(parent=self, depends_on=[emulator])
        ledger = Ledger("ledger", settings.jobs, self.full_location_name, after)
        self.job_dependencies: Sequence[pulumi.Resource] = [ledger]
        self.register_outputs({})

    def create_schedule_and_get_status(
        self, name: str, request: pulumi.Input[ScheduleRequest], opts: pulumi.ResourceOptions
    ) -> pulumi.Output[Mapping[str, Any]]:
        """Let the emulator keep a schedule and run it. Returns its status."""
        return EmulatorSchedule(name, self.full_location_name, request, opts).get_output_with_recovery(
            "status", lambda _: None
        )


def _replace_project_secrets(props: Mapping[str, Any], secrets: Mapping[str, str] | None) -> None:
    """Replace the secrets of the project that an emulator's inputs name, if they do."""
    if project := props.get("project"):
        emulator_secrets_file.replace_project_secrets(project, secrets or {})


def _build_serve_options(props: Mapping[str, Any]) -> list[str]:
    """Return options of `vertex-emulator serve`; it keeps those of its last start, so defaults are given as well."""
    containers = {
        name: default if props.get(name) is None else props[name] for name, default in CONTAINER_DEFAULTS.items()
    }
    return [
        *([f"--port={int(props['port'])}"] if props.get("port") else []),
        f"--pids-limit={int(containers['pidsLimit'])}",
        f"--log-limit-mb={int(containers['logLimitMb'])}",
        "--egress" if containers["egress"] else "--no-egress",
    ]


def _build_slug(name: str) -> str:
    """Return a name with the characters only that image repositories and buckets allow."""
    return re.sub(r"[^a-z0-9-]+", "-", name.lower()).strip("-")
