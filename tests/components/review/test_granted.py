"""The look-up of granted quotas: its refusals in one line, its limits of time, and what the provider's own call is."""

import socket
import threading
from collections.abc import Iterator
from concurrent import futures
from typing import Any

import grpc
import pytest
from google.protobuf import struct_pb2
from pulumi.runtime.proto import resource_pb2, resource_pb2_grpc
from vertex_training.errors import GrantedQuotasUnknown
from vertex_training.review import granted
from vertex_training.review.granted import ENDPOINT_VARIABLE, address, explain, fetch

from tests.standins.gcp.functions import argument_problems, result_problems
from tests.standins.gcp.quotas import PREFIX, answer_quota_infos

SERVICE = "aiplatform.googleapis.com"
L4 = f"{PREFIX}nvidia_l4_gpus"


class Engine(resource_pb2_grpc.ResourceMonitorServicer):
    """The part of Pulumi's engine that answers a program; `answering` is whether it does."""

    def __init__(self) -> None:
        self.answering = threading.Event()
        self.answering.set()
        self.requests: list[Any] = []

    def Invoke(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.requests.append(request)
        self.answering.wait()
        answer = struct_pb2.Struct()
        answer.update(answer_quota_infos(request.args["parent"], request.args["service"]))
        return resource_pb2.ResourceInvokeResponse(**{"return": answer})


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    engine = Engine()
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
    resource_pb2_grpc.add_ResourceMonitorServicer_to_server(engine, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = resource_pb2_grpc.ResourceMonitorStub(channel)
        monkeypatch.setattr(granted, "get_monitor", lambda: stub)
        monkeypatch.setenv(ENDPOINT_VARIABLE, f"http://127.0.0.1:{port}/")
        yield engine
    engine.answering.set()
    server.stop(0).wait()


def test_the_call_is_the_provider_s_own(engine: Engine) -> None:
    assert fetch("acme-dev", "us-east1", {L4, f"{PREFIX}cpus"}) == {L4: 0, f"{PREFIX}cpus": 2200}
    (request,) = engine.requests
    assert list(argument_problems(request.tok, dict(request.args))) == []
    assert dict(request.args) == {"parent": "projects/acme-dev", "service": SERVICE}
    assert list(result_problems(request.tok, answer_quota_infos("projects/acme-dev", SERVICE))) == []


def test_a_wrong_name_differs_from_the_provider_s() -> None:
    token = "gcp:cloudquota/getSQuotaInfos:getSQuotaInfos"
    assert list(argument_problems(token, {"parents": "x"})) == [f"parents: {token} has no such argument"]
    wrong = {"quotaInfos": [{"metric": 3, "dimensionInfos": []}]}
    assert sorted(result_problems(token, wrong)) == [
        "quotaInfos.0.dimensionInfos: GetSQuotaInfosQuotaInfoResult has no such property",
        "quotaInfos.0.metric: 3 is not of type <class 'str'>",
    ]


def test_a_missing_answer_is_not_waited_for(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.answering.clear()
    monkeypatch.setattr(granted, "ANSWER_SECONDS", 0.01)
    with pytest.raises(GrantedQuotasUnknown, match="no answer within 0 s"):
        fetch("acme-dev", "us-east1", {L4})


def test_without_network_the_provider_is_not_called(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        port = unheard.getsockname()[1]
        monkeypatch.setenv(ENDPOINT_VARIABLE, f"http://127.0.0.1:{port}/")
        with pytest.raises(GrantedQuotasUnknown, match=f"127.0.0.1:{port} cannot be reached"):
            fetch("acme-dev", "us-east1", {L4})
    assert engine.requests == []


def test_a_resolver_that_hangs_is_not_waited_for(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()

    def connect(*_: Any, **__: Any) -> None:
        released.wait()
        raise OSError

    monkeypatch.setattr(socket, "create_connection", connect)
    monkeypatch.setattr(granted, "CONNECT_SECONDS", 0.01)
    with pytest.raises(GrantedQuotasUnknown, match="cannot be reached"):
        fetch("acme-dev", "us-east1", {L4})
    released.set()
    assert engine.requests == []


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, ("cloudquotas.googleapis.com", 443)),
        ({"https_proxy": "http://proxy.test:3128"}, ("proxy.test", 3128)),
        ({"https_proxy": "http://proxy.test:3128", "no_proxy": "googleapis.com"}, ("cloudquotas.googleapis.com", 443)),
        ({ENDPOINT_VARIABLE: "https://quotas.p.test/v1/"}, ("quotas.p.test", 443)),
    ],
)
def test_a_proxy_replaces_the_api_s_address(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: tuple[str, int]
) -> None:
    for name in ("https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert address(environment) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "googleapi: Error 403: Your application is authenticating by using local Application Default Credentials. "
            "The cloudquotas.googleapis.com API requires a quota project, which is not set by default.",
            "your user credentials need gcp:userProjectOverride: true and gcp:billingProject: acme-dev in the stack "
            "file",
        ),
        (
            "googleapi: Error 403: Cloud Quotas API has not been used in project 123 before or it is disabled.",
            "the Cloud Quotas API is off; run `gcloud services enable cloudquotas.googleapis.com --project=acme-dev`",
        ),
        (
            "googleapi: Error 403: Permission 'cloudquotas.quotas.get' denied on resource, forbidden",
            "permission is missing; grant whoever runs `pulumi` the role roles/cloudquotas.viewer",
        ),
        ("oauth2: cannot\nfetch token", "oauth2: cannot fetch token"),
        ("x" * 500, "x" * 200 + "…"),
    ],
)
def test_a_refusal_is_one_line_with_its_remedy(text: str, reason: str) -> None:
    assert explain(text, "acme-dev") == reason
