"""How `make test` runs the tests side by side."""

import os

import pytest

MOST = 6
"""Docker has addresses for some thirty networks."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors: tests of containers and of `pulumi` wait most of the time."""
    return min(MOST, (os.cpu_count() or 1) + 1)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A file's tests run in one process, as they share an emulator or a browser, but for those with their own project.

    These take longest and begin, so that what is left at the end is short.
    """
    if hasattr(config, "workerinput"):
        for item in items:
            if not _has_own_project(item):
                item.add_marker(pytest.mark.xdist_group(str(item.path)))
        items.sort(key=lambda item: (not _has_own_project(item), item.path.parent.name != "engine"))


def _has_own_project(item: pytest.Item) -> bool:
    return item.path.parent.name == "engine" and "project" in getattr(item, "fixturenames", ())
