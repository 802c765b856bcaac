"""A target without an emulator: providers reach a training API in memory."""

import sys

import pytest

from components import job_provider, target, waiting
from tests.components.fakes import Clock, FakeClient


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    """The API that every call reaches. The engine's address is not among the process's arguments."""
    client = FakeClient()
    url = "http://127.0.0.1:1"
    monkeypatch.setattr(target, "connect", lambda parent: target.Target(client, parent.removeprefix(target.LOCAL), url))
    monkeypatch.setattr(sys, "argv", ["pytest"])
    return client


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(waiting, "time", clock)
    monkeypatch.setattr(job_provider, "time", clock)
    return clock
