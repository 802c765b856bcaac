"""What a call of gRPC becomes, and what its answer is; and Google's own client on the port that answers REST."""

import http.server
import json
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack
from importlib import import_module
from typing import Any

import grpc
import pytest
from google.api_core import exceptions
from google.longrunning import operations_pb2

from tests.vertex_emulator.other_user import NOBODY, needs_root
from tests.vertex_emulator.running import PARENT, PATIENCE_SECONDS, RunningEmulator, custom_job, pool, until
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.inside.authority import Authority
from vertex_emulator.rpc import messages
from vertex_emulator.rpc.relay import HEADER, Translator
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


def test_methods_of_other_services_have_theirs() -> None:
    name = f"{PARENT}/operations/1"
    found = called("google.longrunning.Operations/GetOperation", operations_pb2.GetOperationRequest(name=name))
    assert found == ("GET", f"/v1/{name}", [], None)
    types = messages.types()
    version = "projects/p/secrets/s/versions/1"
    method = "google.cloud.secretmanager.v1.SecretManagerService/AccessSecretVersion"
    assert called(method, types["Name"](name=version)) == ("GET", f"/v1/{version}:access", [], None)
    method = "google.cloud.resourcemanager.v3.Projects/GetProject"
    assert called(method, types["Name"](name="projects/1")) == ("GET", "/v3/projects/1", [], None)
    entry = types["Entry"](text_payload="hello", severity="ERROR")
    found = called("google.logging.v2.LoggingServiceV2/WriteLogEntries", types["Entries"](entries=[entry]))
    assert found == ("POST", "/v2/entries:write", [], {"entries": [{"textPayload": "hello", "severity": "ERROR"}]})


@pytest.mark.parametrize("method", ["a.B/C", f"{JOBS.format('v1')}/Nope", "google.cloud.aiplatform.v1.No/Get", "", "a"])
def test_other_methods_have_none(method: str) -> None:
    assert binding(f"/{method}") is None


def test_only_the_process_speaks_for_callers() -> None:
    translator = Translator("http://127.0.0.1:1")
    translator._callers[7] = "me"
    own = "ipv4:127.0.0.1:7"
    assert translator.caller(f"{translator.secret}:{own}") == "me"
    others = ("ipv4:127.0.0.1:8", "ipv4:127.0.0.1:x", "ipv4:172.17.0.2:7", "7", "")
    for header in (*(f"{translator.secret}:{each}" for each in others), f"secret:{own}", "", translator.secret):
        assert translator.caller(header) is None


def channel(emulator: RunningEmulator, *, tls: bool) -> grpc.Channel:
    """A channel to the port of REST, of nobody else's connections."""
    address = emulator.url.removeprefix("http://")
    options = [("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1)]
    if not tls:
        return grpc.insecure_channel(address, options=options)
    data = DataFolder(emulator.data)
    roots = Authority(data.certificate, data.trusted).bundle().read_bytes()
    return grpc.secure_channel(address, grpc.ssl_channel_credentials(roots), options=options)


@pytest.mark.parametrize("tls", [False, True])
def test_google_s_client_works_by_grpc(shared: RunningEmulator, tls: bool) -> None:
    """The SDK's generated client in its default transport, on the port of REST."""
    from google.cloud import aiplatform_v1
    from google.cloud.aiplatform_v1.services.job_service.transports import JobServiceGrpcTransport

    with channel(shared, tls=tls) as connected:
        client = aiplatform_v1.JobServiceClient(transport=JobServiceGrpcTransport(channel=connected))
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
        client.delete_custom_job(name=created.name).result(timeout=PATIENCE_SECONDS)
        with pytest.raises(exceptions.NotFound):
            client.get_custom_job(name=created.name)
    reply = shared.http.get(f"{shared.url}/healthz", headers={HEADER: "a:1"})
    assert reply.status_code == 403


@needs_root
def test_another_user_needs_the_token(shared: RunningEmulator) -> None:
    """In another process, by the libraries that this one has: gRPC does not survive a fork."""
    data = DataFolder(shared.data)
    script = f"""
import grpc, os
from google.cloud.aiplatform_v1 import ListCustomJobsRequest
roots, token = open({str(data.trusted)!r}, "rb").read(), open({str(data.token)!r}).read().strip()
os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
address, options = {shared.url.removeprefix("http://")!r}, [("grpc.enable_http_proxy", 0)]
request = ListCustomJobsRequest.pb()(parent={PARENT!r}).SerializeToString()
plain = grpc.insecure_channel(address, options)
for channel in (plain, grpc.secure_channel(address, grpc.ssl_channel_credentials(roots), options)):
    listed = channel.unary_unary("/{JOBS.format("v1")}/ListCustomJobs")
    for metadata in ((), (("authorization", "Bearer no"),), (("authorization", f"Bearer {{token}}"),)):
        try:
            listed(request, metadata=metadata, timeout={PATIENCE_SECONDS})
            print("OK")
        except grpc.RpcError as error:
            print(error.code().name, error.details())
"""
    Authority(data.certificate, data.trusted).bundle()
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    refused, *others = done.stdout.splitlines()
    assert refused.startswith("PERMISSION_DENIED This emulator belongs to"), done
    assert others == [refused, "OK", refused, refused, "OK"]


def test_calls_of_others_take_no_place_of_the_owner_s() -> None:
    """Those of one caller that send no message, as many as it may have; another caller is answered, too."""
    from google.cloud.aiplatform_v1 import ListCustomJobsRequest

    class Emulator(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Emulator) as served, ExitStack() as stack:
        threading.Thread(target=served.serve_forever).start()
        stack.callback(served.shutdown)
        translator = Translator(f"http://127.0.0.1:{served.server_port}")
        stack.callback(translator.stop)
        own, others = translator.ports()
        method = f"/{JOBS.format('v1')}/ListCustomJobs"

        def connect(port: int) -> grpc.Channel:
            options = [("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1)]
            return stack.enter_context(grpc.insecure_channel(f"127.0.0.1:{port}", options=options))

        never = threading.Event()
        stack.callback(never.set)
        for _ in range(40):
            begin = connect(others).stream_unary(method).future
            for _ in range(8):
                begin(iter(never.wait, True))
        request = ListCustomJobsRequest.pb()(parent=PARENT).SerializeToString()
        for port in (own, others):
            assert connect(port).unary_unary(method)(request, timeout=PATIENCE_SECONDS) == b""


def test_what_is_no_http_is_refused(shared: RunningEmulator) -> None:
    host, port = shared.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as client:
        client.sendall(b"PRI * HTTP/1.0\r\n\r\nnothing\r\n\r\n")
        assert b"HTTP/1.1 4" in client.recv(1000)
