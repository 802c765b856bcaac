"""Vertex AI custom training as code: the whole program."""

from components import Images, Jobs, Settings, export, foundation

settings = Settings.load()
ground = foundation(settings)
images = Images(settings, ground)
jobs = Jobs(settings, ground, images)
export(images, jobs)
