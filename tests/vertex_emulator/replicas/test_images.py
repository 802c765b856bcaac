"""Pulls of images that a stand-in for the daemon ends at a moment of the test's choice."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import docker
import pytest
from docker.errors import ImageNotFound

from tests.vertex_emulator.running import PATIENCE_SECONDS
from vertex_emulator.replicas.daemon import Images


class Daemon:
    """A daemon that has no image until its pull has ended."""

    def __init__(self) -> None:
        self.may_end, self.has_ended = threading.Event(), threading.Event()
        self.on_missing: Callable[[], object] = lambda: None

    def inspect_image(self, _image: str) -> None:
        if not self.has_ended.is_set():
            self.on_missing()
            raise ImageNotFound("no such image")

    def pull(self, _repository: str, **_options: Any) -> Iterator[dict[str, str]]:
        assert self.may_end.wait(PATIENCE_SECONDS)
        yield {"status": "pulled"}

    def close(self) -> None:
        pass


def test_pull_that_ends_during_look_has_not_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    daemon = Daemon()
    monkeypatch.setattr(docker, "APIClient", lambda **_: daemon)
    images = Images(lambda call: call(daemon), lambda _job: daemon.has_ended.set())
    assert not images.ensure("1", "trainer:1")

    def end_pull() -> None:
        daemon.may_end.set()
        assert daemon.has_ended.wait(PATIENCE_SECONDS)

    daemon.on_missing = end_pull
    assert images.ensure("1", "trainer:1")
