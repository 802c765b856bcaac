"""An executor on the real Docker."""

from collections.abc import Iterator
from secrets import token_hex

import pytest

from vertex_emulator.replicas.docker.docker_executor import DockerExecutor


@pytest.fixture
def executor() -> Iterator[DockerExecutor]:
    """An executor whose containers and firewall rules are removed afterwards."""
    executor = DockerExecutor(token_hex(6), on_pulled=lambda _: None)
    yield executor
    for job in executor.list_ids_of_jobs_with_containers_or_network():
        executor.remove_containers_and_network(job)
    executor.remove_firewall_rules_unless_containers_remain()
