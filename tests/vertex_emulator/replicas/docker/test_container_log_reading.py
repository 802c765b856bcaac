"""Logs as the daemon gives them; the daemon here is a stand-in for the answers that come too seldom to wait for."""

from collections.abc import Callable
from typing import Any

import pytest
import requests
from docker.errors import APIError

from vertex_emulator.replicas.docker.container_log_reading import MAX_LINE_BYTES, iterate_container_log_lines


def daemon(status: int) -> Callable[[Callable[[Any], Any]], Any]:
    """A daemon that answers every call with an error."""

    def call(_: Callable[[Any], Any]) -> Any:
        response = requests.Response()
        response.status_code = status
        raise APIError("no log", response=response)

    return call


@pytest.mark.parametrize("status", [404, 409])
def test_a_missing_container_has_no_log(status: int) -> None:
    assert list(iterate_container_log_lines(daemon(status), "name", 0)) == []


def test_an_error_is_not_an_empty_log() -> None:
    with pytest.raises(APIError):
        list(iterate_container_log_lines(daemon(500), "name", 0))


def test_a_line_without_end_is_split() -> None:
    frame = b"2026-11-22T00:00:00.000000001Z " + b"x" * (16 << 10)
    frames = [frame] * 1000 + [frame + b"\n"]

    def call(answer: Callable[[Any], Any]) -> Any:
        class Client:
            def logs(self, _name: str, stdout: bool, **_options: Any) -> list[bytes]:
                return frames if stdout else []

        return iter(answer(Client()))

    lines = list(iterate_container_log_lines(call, "name", 0))
    assert sum(len(line.text) for line in lines) == 1001 * (16 << 10)
    assert max(len(line.text) for line in lines) == MAX_LINE_BYTES
