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
    """A daemon that has no image until its pull has ended; `variables` are the image's then."""

    def __init__(self) -> None:
        self.variables: list[str] | None = None
        self.looks = 0
        self.may_end, self.has_ended = threading.Event(), threading.Event()
        self.on_missing: Callable[[], object] = lambda: None

    def inspect_image(self, _image: str) -> dict[str, Any]:
        self.looks += 1
        if not self.has_ended.is_set():
            self.on_missing()
            raise ImageNotFound("no such image")
        return {"Config": {"Env": self.variables}}

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


def test_variables_of_an_image_are_those_of_its_last_look() -> None:
    daemon = Daemon()
    images = Images(lambda call: call(daemon), lambda _job: None)
    assert images.variables("trainer:1") == {}  # it is gone
    daemon.has_ended.set()
    assert images.variables("trainer:1") == {}
    daemon.variables = ["A=b=c", "D="]
    assert images.ensure("1", "trainer:1")
    looks = daemon.looks
    assert images.variables("trainer:1") == {"A": "b=c", "D": ""}
    assert daemon.looks == looks
