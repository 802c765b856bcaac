"""Vertex AI custom training as code: the whole program."""

import gc

from components import Images, Jobs, Packages, Settings, export, foundation, show_availability, show_cost

gc.disable()  # a program of seconds frees nothing by it, and with 1,000 jobs it costs a tenth of a preview

settings = Settings.load()
show_cost(settings)
show_availability(settings)
ground = foundation(settings)
images = Images(settings, ground)
packages = Packages(settings, ground)
jobs = Jobs(settings, ground, images, packages)
export(images, jobs)
