"""A target without an emulator: providers reach a training API in memory."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from vertex_training.jobs import completion, metrics, removal
from vertex_training.runtime import engine, holders, target
from vertex_training.runtime.target import LOCAL_PREFIX, EmulatorLinks, Target

from tests.components.fakes import Clock, FakeClient, start_new_process
from tests.components.targets.gcp import graph
from tests.registry import Registry, registry


@pytest.fixture(scope="module", autouse=True)
def _loops() -> Iterator[None]:
    """Nothing of the event loops of Pulumi's mocks is left for a later module."""
    yield
    graph.forget_loops()


@pytest.fixture(autouse=True)
def recorded(monkeypatch: pytest.MonkeyPatch) -> holders.State:
    """What the state of every stack records. No `pulumi` is asked for it."""
    start_new_process()
    state = holders.State()
    monkeypatch.setattr(holders.Holders, "state", lambda *_: state)
    monkeypatch.setattr(holders.Holders, "own_state", lambda *_: state)
    return state


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    """The API that every call reaches. The engine's address is not among the process's arguments."""
    client = FakeClient()
    links = EmulatorLinks("http://127.0.0.1:1")

    def connect(parent: str) -> Target:
        return Target(client, parent.removeprefix(LOCAL_PREFIX), links)

    monkeypatch.setattr(target, "resolve", connect)
    start_new_process()
    monkeypatch.setattr(sys, "argv", ["pytest"])
    return client


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(completion, "time", clock)
    monkeypatch.setattr(removal, "time", clock)
    monkeypatch.setattr(engine, "wait_for_cancellation", clock.wait)
    return clock


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every job that succeeds has written a model."""
    monkeypatch.setattr(metrics, "without_model", lambda _parent, _jobs: [])


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    """A registry that this process is logged in to."""
    with registry(tmp_path / "registry") as made:
        monkeypatch.setenv("DOCKER_CONFIG", str(made.docker_config))
        yield made
