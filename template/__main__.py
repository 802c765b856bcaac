"""Vertex AI custom training as code: the whole program."""

from vertex_training import Images, Jobs, Packages, Settings, export, foundation, run, show_availability, show_cost


def program() -> None:
    settings = Settings.load()
    show_cost(settings)
    show_availability(settings)
    ground = foundation(settings)
    images = Images(settings, ground)
    packages = Packages(settings, ground)
    jobs = Jobs(settings, ground, images, packages)
    export(images, jobs)


run(program)
