"""The packages of the distribution: every folder of three rooms, of which `components` is installed as another name.

The rest stands in pyproject.toml, which cannot list the packages of a renamed folder.
"""

from setuptools import find_packages, setup

INSTALLED_AS = {"components": "vertex_training", "vertex_api": "vertex_api", "vertex_emulator": "vertex_emulator"}

setup(
    packages=[
        ".".join([INSTALLED_AS[room], *folders])
        for room, *folders in (name.split(".") for name in find_packages())
        if room in INSTALLED_AS
    ]
)
