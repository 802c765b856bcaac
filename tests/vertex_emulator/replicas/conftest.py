"""An executor on the real Docker."""

from collections.abc import Iterator
from secrets import token_hex

import pytest

from vertex_emulator.replicas.executor import Executor


@pytest.fixture
def executor() -> Iterator[Executor]:
    """An executor whose containers and firewall rules are removed afterwards."""
    executor = Executor(token_hex(6), on_pulled=lambda _: None)
    yield executor
    for job in executor.job_ids():
        executor.remove(job)
    executor.release_firewall()
