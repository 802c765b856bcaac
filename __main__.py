"""Vertex AI custom training as code: the whole program."""

from vertex_training import (
    Images,
    Jobs,
    Packages,
    Schedules,
    Settings,
    check_quotas,
    create_foundation,
    export_outputs,
    run_program,
    show_cost,
    warn_of_unavailable_accelerators,
)


def program() -> None:
    settings = Settings.load()
    show_cost(settings)
    check_quotas(settings)
    warn_of_unavailable_accelerators(settings)
    foundation = create_foundation(settings)
    images = Images(settings, foundation)
    packages = Packages(settings, foundation)
    jobs = Jobs(settings, foundation, images, packages)
    schedules = Schedules(settings, foundation, images, packages)
    export_outputs(images, jobs, schedules)


run_program(program)
