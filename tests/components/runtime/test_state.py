"""The stack's own outputs as its program reads them: from the engine, in one call, and never as a failure."""

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import grpc
import pulumi
import pytest
from google.protobuf import struct_pb2
from pulumi.runtime.proto import provider_pb2
from vertex_training.runtime import state


class Refused(grpc.RpcError):
    def details(self) -> str:
        return "unknown stack\nof this backend"


class Engine:
    """A monitor that knows the outputs of stacks by name; `asked` are the names that it was asked for."""

    def __init__(self, outputs: Mapping[str, Any]) -> None:
        self.outputs, self.asked = outputs, list[str]()
        self.Invoke = self

    def future(self, request: Any, timeout: float) -> "Engine":
        assert request.tok == "pulumi:pulumi:readStackOutputs" and timeout
        self.asked.append(request.args["name"])
        return self

    def result(self) -> Any:
        if self.asked[-1] not in self.outputs:
            raise Refused
        answer = struct_pb2.Struct()
        answer.update({"name": self.asked[-1], "outputs": self.outputs[self.asked[-1]]})
        return provider_pb2.InvokeResponse(**{"return": answer})


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Mapping[str, str]]:
    """Reads the output `runs` of the stack `dev` from an engine, twice."""

    def read(engine: Any) -> Mapping[str, str]:
        monkeypatch.setattr(state, "get_monitor", lambda: engine)
        monkeypatch.setattr(pulumi, "get_organization", lambda: "acme")
        monkeypatch.setattr(pulumi, "get_project", lambda: "team")
        monkeypatch.setattr(pulumi, "get_stack", lambda: "dev")
        wait = state.read_texts("runs")
        assert wait() == wait()
        return wait()

    return read


def test_the_stack_s_own_output_is_asked_for_once(read: Callable[[Any], Mapping[str, str]]) -> None:
    engine = Engine({"acme/team/dev": {"runs": {"train": "a line"}, "images": {}}})
    assert read(engine) == {"train": "a line"} and engine.asked == ["acme/team/dev"]


@pytest.mark.parametrize("outputs", [{}, {"runs": "of a team's own"}, {"runs": None}])
def test_a_stack_without_such_an_output_has_none(
    read: Callable[[Any], Mapping[str, str]], outputs: Mapping[str, Any]
) -> None:
    assert read(Engine({"acme/team/dev": outputs})) == {}


def test_a_backend_without_projects_knows_the_name_alone(read: Callable[[Any], Mapping[str, str]]) -> None:
    engine = Engine({"dev": {"runs": {"train": "a line"}}})
    assert read(engine) == {"train": "a line"} and engine.asked == ["acme/team/dev", "dev"]


def test_an_unreadable_state_is_one_line(
    read: Callable[[Any], Mapping[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    monkeypatch.setattr(pulumi.log, "info", lines.append)
    assert read(Engine({})) == {}
    assert lines == ["runs: not known from the stack's state, so they begin anew: unknown stack of this backend"]


def test_mocks_of_a_unit_test_have_no_state(read: Callable[[Any], Mapping[str, str]]) -> None:
    mocks = SimpleNamespace(Invoke=lambda request: pytest.fail(str(request)))
    assert read(mocks) == read(None) == {}
