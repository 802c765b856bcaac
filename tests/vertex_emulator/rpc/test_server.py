"""What a call of gRPC becomes, and what its answer is; and Google's own client on the port that answers REST."""

import json
import socket
from importlib import import_module
from typing import Any

import grpc
import pytest
from google.api_core import exceptions
from google.longrunning import operations_pb2

from tests.vertex_emulator.running import PARENT, RunningEmulator, custom_job, pool, until
from vertex_emulator.rpc import messages
from vertex_emulator.rpc.relay import HEADER, OWN, Translator
from vertex_emulator.rpc.server import binding

JOBS = "google.cloud.aiplatform.{}.JobService"


def called(method: str, request: Any) -> tuple[str, str, list[tuple[str, Any]], Any]:
    """What a call becomes: verb, path, query and body."""
    kind = type(request)
    bind = binding(f"/{method}")
    assert bind is not None
    call = bind(kind.serialize(request) if hasattr(kind, "serialize") else request.SerializeToString())
    return call.verb, call.path, call.query, json.loads(call.body) if call.body is not None else None


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_method_has_the_path_of_the_api(version: str) -> None:
    # Imported here, as that takes each process that collects tests three seconds.
    types = import_module(f"google.cloud.aiplatform_{version}")
    job = types.CustomJob(display_name="a", labels={"b": "c"})
    create = types.CreateCustomJobRequest(parent=PARENT, custom_job=job)
    assert called(f"{JOBS.format(version)}/CreateCustomJob", create) == (
        "POST",
        f"/{version}/{PARENT}/customJobs",
        [],
        {"displayName": "a", "labels": {"b": "c"}},
    )
    listed = types.ListCustomJobsRequest(parent=PARENT, page_size=3, filter="a=b", read_mask="name,state")
    verb, path, query, body = called(f"{JOBS.format(version)}/ListCustomJobs", listed)
    assert (verb, path, body) == ("GET", f"/{version}/{PARENT}/customJobs", None)
    assert sorted(query) == [("filter", "a=b"), ("pageSize", "3"), ("readMask", "name,state")]


def test_operations_secrets_and_entries_have_theirs() -> None:
    name = f"{PARENT}/operations/1"
    found = called("google.longrunning.Operations/GetOperation", operations_pb2.GetOperationRequest(name=name))
    assert found == ("GET", f"/v1/{name}", [], None)
    types = messages.types()
    version = "projects/p/secrets/s/versions/1"
    method = "google.cloud.secretmanager.v1.SecretManagerService/AccessSecretVersion"
    assert called(method, types["Name"](name=version)) == ("GET", f"/v1/{version}:access", [], None)
    entry = types["Entry"](text_payload="hello", severity="ERROR")
    found = called("google.logging.v2.LoggingServiceV2/WriteLogEntries", types["Entries"](entries=[entry]))
    assert found == ("POST", "/v2/entries:write", [], {"entries": [{"textPayload": "hello", "severity": "ERROR"}]})


@pytest.mark.parametrize("method", ["a.B/C", f"{JOBS.format('v1')}/Nope", "google.cloud.aiplatform.v1.No/Get", "", "a"])
def test_other_methods_have_none(method: str) -> None:
    assert binding(f"/{method}") is None


def test_only_the_process_speaks_for_callers() -> None:
    translator = Translator("http://127.0.0.1:1")
    translator._callers[7] = OWN
    own = "ipv4:127.0.0.1:7"
    assert translator.caller(f"{translator.secret}:{own}") == OWN
    others = ("ipv4:127.0.0.1:8", "ipv4:127.0.0.1:x", "ipv4:172.17.0.2:7", "7", "")
    for header in (*(f"{translator.secret}:{each}" for each in others), f"secret:{own}", "", translator.secret):
        assert translator.caller(header) is None


def test_google_s_client_works_by_grpc(shared: RunningEmulator) -> None:
    """The SDK's generated client in its default transport, on the port of REST."""
    from google.cloud import aiplatform_v1
    from google.cloud.aiplatform_v1.services.job_service.transports import JobServiceGrpcTransport

    address = shared.url.removeprefix("http://")
    channel = grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)])
    client = aiplatform_v1.JobServiceClient(transport=JobServiceGrpcTransport(channel=channel))
    job = aiplatform_v1.CustomJob.from_json(json.dumps(custom_job(pool("print(42)"))))
    created = client.create_custom_job(parent=PARENT, custom_job=job)

    def ended_job() -> Any:
        found = client.get_custom_job(name=created.name)
        return found if found.state.name == "JOB_STATE_SUCCEEDED" else None

    ended = until(ended_job, "the end")
    assert ended.job_spec.worker_pool_specs[0].container_spec.image_uri
    assert created.name in [each.name for each in client.list_custom_jobs(parent=PARENT)]
    with pytest.raises(exceptions.NotFound, match="does not exist"):
        client.get_custom_job(name=f"{PARENT}/customJobs/1")
    with pytest.raises(exceptions.InvalidArgument) as refused:
        client.create_custom_job(parent=PARENT, custom_job=aiplatform_v1.CustomJob(display_name="a"))
    assert refused.value.details
    client.delete_custom_job(name=created.name).result()
    with pytest.raises(exceptions.NotFound):
        client.get_custom_job(name=created.name)
    reply = shared.http.get(f"{shared.url}/healthz", headers={HEADER: "a:1"})
    assert reply.status_code == 403
    channel.close()


def test_what_is_no_http_is_refused(shared: RunningEmulator) -> None:
    host, port = shared.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as client:
        client.sendall(b"PRI * HTTP/1.0\r\n\r\nnothing\r\n\r\n")
        assert b"HTTP/1.1 4" in client.recv(1000)
