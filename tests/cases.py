"""Many cases in one test: each is named where it fails, and none costs what a test of its own does."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def case(name: object) -> Iterator[None]:
    """Add the name of a case to what fails in it."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"in the case {name}")
        raise
