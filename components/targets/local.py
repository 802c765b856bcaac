"""LocalFoundation: this machine as the target, with the emulator in place of Vertex AI."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pulumi

from vertex_api.names import location_name
from vertex_api.schedules import NAME_LABEL, SCHEDULE_LABEL, ScheduleRequest

from ..jobs.identity import own_labels
from ..jobs.ledger import LEDGER_NAME, Ledger
from ..plan.job_rules import SUBMITTER_LABELS
from ..plan.programmed import Program
from ..plan.training import Defaults, Training, job_label
from ..runtime.emulator import Emulator, replace_declarations
from ..runtime.resource import PerRun
from ..runtime.target import LOCAL_PREFIX
from ..schedules.component import schedule_id
from ..schedules.provider import EmulatorSchedule
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
        ledger = Ledger(
            settings.named(LEDGER_NAME),
            settings.resources,
            self.full_location_name,
            {**settings.applied, "registry": self.image_uri_prefix},
            after,
        )
        self.job_dependencies: Sequence[pulumi.Resource] = [ledger]
        if not pulumi.runtime.is_dry_run():
            process.id.apply(lambda _: _tell_declarations(settings))
        self.register_outputs({})

    def create_schedule(
        self, name: str, request: pulumi.Input[ScheduleRequest], opts: pulumi.ResourceOptions
    ) -> pulumi.Output[Mapping[str, Any]]:
        """Let the emulator keep a schedule and run it. Returns its status."""
        return EmulatorSchedule(name, self.full_location_name, request, opts).recovered("status")


def _tell_declarations(settings: Settings) -> None:
    """Tell the emulator's page where the stack's jobs are declared.

    No resource has this: the line of a job changes with each edit above it, and no preview is to show that.
    """
    with suppress(OSError, ValueError):  # a page that does not know it fails no update
        replace_declarations(f"{settings.pulumi_project}/{settings.stack}", settings.root, [*_declarations(settings)])


def _declarations(settings: Settings) -> Iterator[dict[str, Any]]:
    """Yield of each declared job its name, its place, and the labels that its jobs have and no others."""
    project, stack = pulumi.get_project(), pulumi.get_stack()

    def declaration(training: Training, labels: Mapping[str, str]) -> dict[str, Any]:
        name, place = f"{training.kind.collection}.{training.name}", training.place((), "").place
        return {"name": name, "place": place, "stack": stack, "labels": labels}

    for training in settings.jobs:
        labels = own_labels(f"{project}/{stack}/{settings.named(training.name)}", "")
        yield declaration(training, {label: labels[label] for label in SUBMITTER_LABELS})
    for schedule in settings.schedules:
        id_ = schedule_id(project, stack, settings.named(schedule.name))
        for name in schedule.jobs:
            yield declaration(settings.scheduled[name], {SCHEDULE_LABEL: id_, NAME_LABEL: job_label(name)})
