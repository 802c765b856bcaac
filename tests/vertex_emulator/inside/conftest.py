"""A door for the tests of a module."""

from collections.abc import Iterator

import pytest

from tests.vertex_emulator.inside.served import ServedDoor


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedDoor]:
    """One with secrets of two projects."""
    secrets = {"my-project": {"hf-token": "mine"}, "other-project": {"hf-token": "other"}}
    found = ServedDoor(tmp_path_factory.mktemp("door"), secrets)
    yield found
    found.close()
