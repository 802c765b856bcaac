"""A command line that is parsed hundreds of times."""

import functools
from collections.abc import Iterator

import pytest
from vertex_training import cli


@pytest.fixture(scope="package", autouse=True)
def _one_parser() -> Iterator[None]:
    """Each call would make the parser anew: a fifth of its time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli, "build", functools.cache(cli.build))
        yield
