"""Vertex AI custom training as code: the whole program."""

from vertex_training import (
    Images,
    Jobs,
    Packages,
    Settings,
    create_foundation,
    export_outputs,
    run,
    show_availability,
    show_cost,
)


def program() -> None:
    settings = Settings.load()
    show_cost(settings)
    show_availability(settings)
    foundation = create_foundation(settings)
    images = Images(settings, foundation)
    packages = Packages(settings, foundation)
    jobs = Jobs(settings, foundation, images, packages)
    export_outputs(images, jobs)


run(program)
