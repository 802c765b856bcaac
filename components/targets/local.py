"""LocalFoundation: this machine as the target, with the emulator in place of Vertex AI."""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from vertex_api.names import location_name
from vertex_api.schedules import ScheduleRequest

from ..jobs.ledger import LEDGER_NAME, Ledger
from ..plan.program import Program
from ..plan.training import Defaults
from ..runtime.emulator import Emulator
from ..runtime.resource import PerRun
from ..runtime.target import LOCAL_PREFIX
from ..schedules.resources import EmulatorSchedule
from ..settings.names import slug
from ..settings.settings import Settings

_emulator: PerRun[Emulator] = PerRun()
"""One process serves all stacks of a program."""


class LocalFoundation(pulumi.ComponentResource):
    """The foundation on this machine: images stay in Docker, and buckets are folders of the emulator."""

    def __init__(self, name: str, settings: Settings, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("vertex-training:index:LocalFoundation", name, None, opts)
        self.image_uri_prefix = f"localhost/{slug(settings.pulumi_project)}"
        self.defaults = Defaults(f"gs://{slug(settings.pulumi_project)}-{slug(settings.stack)}")
        self.full_location_name = LOCAL_PREFIX + location_name(settings.project, settings.region)
        self.program = Program(settings.plan)
        self.tensorboard_name: pulumi.Input[str] | None = None
        self.image_builder_config: Mapping[str, Any] | None = None
        self.image_dependencies: Sequence[pulumi.Resource] = []
        ours = pulumi.ResourceOptions(parent=self)
        process = _emulator.get(lambda: Emulator("emulator", settings.emulator, settings.project, ours))
        after = pulumi.ResourceOptions(parent=self, depends_on=[process])
        ledger = Ledger(settings.named(LEDGER_NAME), settings.resources, self.full_location_name, after)
        self.job_dependencies: Sequence[pulumi.Resource] = [ledger]
        self.register_outputs({})

    def create_schedule(
        self, name: str, request: pulumi.Input[ScheduleRequest], opts: pulumi.ResourceOptions
    ) -> pulumi.Output[Mapping[str, Any]]:
        """Let the emulator keep a schedule and run it. Returns its status."""
        return EmulatorSchedule(name, self.full_location_name, request, opts).recovered("status")
