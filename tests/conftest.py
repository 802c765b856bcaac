"""How `make test` runs the tests side by side."""

import os
from typing import Any

import pytest

MOST = 6
"""Docker has addresses for some thirty networks."""
ENGINE = "tests/engine/"
"""The tests here have a project of their own each, and take longest."""
SHARED = ("tests/engine/test_promotion.py",)
"""Its tests share a registry, to which a base image takes long to send."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """More than there are processors: tests of containers and of `pulumi` wait for a third of their time."""
    return min(MOST, 2 * (os.cpu_count() or 1) + 1)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The tests of a file run in one process, as they share an emulator or a browser; in ENGINE, those of a class."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file, *classes, _ = nodeid.partition("[")[0].split("::")
            if file in SHARED:
                return file
            has_own_project = file.startswith(ENGINE) and not classes
            return nodeid if has_own_project else "::".join([file, *classes])

    return Scheduling(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest begin, so that what is left at the end is short."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: not item.nodeid.startswith(ENGINE))
