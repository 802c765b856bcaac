"""The schedules of a stack, and the jobs that each one submits."""

import pulumi

from ..runtime.foundation import Foundation
from ..schedules.component import JobTemplate, Schedule
from ..settings.settings import Settings
from .images_and_packages import Images, Packages
from .job_spec_references import (
    collect_referenced_names_by_table,
    resolve_references_now_or_when_known,
    select_built_resources,
    select_uris_by_table,
)
from .jobs import RESOURCE_TYPES


class Schedules:
    """A stack's schedules, `resources` by name. Jobs with `lifecycle.run: scheduled` are submitted by them alone."""

    def __init__(self, settings: Settings, foundation: Foundation, images: Images, packages: Packages) -> None:
        templates = {job.name: job for job in settings.scheduled_jobs}
        self.resources: dict[str, Schedule] = {}
        for schedule in settings.schedules:
            jobs, dependencies = {}, list[pulumi.Resource]()
            for declaration in (templates[name] for name in schedule.job_names):
                names = collect_referenced_names_by_table(declaration)
                spec = resolve_references_now_or_when_known(
                    declaration.required_valid_spec, select_uris_by_table(names, images, packages)
                )
                jobs[declaration.name] = JobTemplate(RESOURCE_TYPES[declaration.kind.collection], spec)
                dependencies += select_built_resources(names, images, packages)
            self.resources[schedule.name] = Schedule(
                schedule.name,
                {
                    "cron": schedule.cron,
                    "time_zone": schedule.time_zone,
                    "paused": schedule.paused,
                    "overlap": schedule.overlap,
                    "jobs": jobs,
                },
                pulumi.ResourceOptions(depends_on=dependencies),
                foundation=foundation,
            )
