"""Vertex AI custom training as code: the whole program."""

from vertex_training import (
    Images,
    Jobs,
    Packages,
    Schedules,
    Settings,
    create_foundation,
    export_outputs,
    run_program,
    show_reports,
)


def program() -> None:
    settings = Settings.load()
    show_reports(settings.plan)
    foundation = create_foundation(settings)
    images = Images(settings, foundation)
    packages = Packages(settings, foundation)
    jobs = Jobs(settings, foundation, images, packages)
    schedules = Schedules(settings, foundation, images, packages)
    export_outputs(images, jobs, schedules)


run_program(program)
