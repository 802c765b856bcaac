"""How many processes `make test` runs the tests in."""

import os

import pytest

MOST = 6
"""Docker has addresses for some thirty networks."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors: tests of containers and of `pulumi` wait most of the time."""
    return min(MOST, (os.cpu_count() or 1) + 1)
