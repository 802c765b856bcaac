"""The packages of the distribution: every folder of three rooms, of which `components` is installed as another name.

The rest stands in pyproject.toml, which cannot list the packages of a renamed folder.
"""

import atexit
import shutil
import tempfile

from setuptools import find_packages, setup

INSTALLED_AS = {"components": "vertex_training", "vertex_api": "vertex_api", "vertex_emulator": "vertex_emulator"}
# Not `build/` in the checkout, from which setuptools would install modules again that an earlier version had.
BUILD_FOLDER = tempfile.mkdtemp(prefix="vertex-training-build-")
atexit.register(shutil.rmtree, BUILD_FOLDER, ignore_errors=True)

setup(
    options={"build": {"build_base": BUILD_FOLDER}},
    packages=[
        "vertex_training.pages",
        *(
            ".".join([INSTALLED_AS[room], *folders])
            for room, *folders in (name.split(".") for name in find_packages())
            if room in INSTALLED_AS
        ),
    ],
)
