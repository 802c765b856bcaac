"""A get of a job by Google's client over gRPC, with TLS and without, beside the same over REST.

Docker is needed. Takes about half a minute.
"""

from collections.abc import Iterator
from typing import Any

import grpc
from google.auth.credentials import AnonymousCredentials
from google.cloud.aiplatform_v1 import JobServiceClient
from google.cloud.aiplatform_v1.services.job_service.transports import JobServiceGrpcTransport

from benchmarks.emulator import PARENT, data_folder, running
from benchmarks.measure import medians, row, seconds
from vertex_emulator.testing.project import trusting

RUNS = 300
_JOB = {
    "display_name": "benchmark",
    "job_spec": {
        "worker_pool_specs": [
            {
                "machine_spec": {"machine_type": "n1-standard-4"},
                "replica_count": 1,
                "container_spec": {"image_uri": "localhost/absent:1"},
            }
        ]
    },
}


def rows() -> Iterator[str]:
    """Measure, and render a line per measurement."""
    with data_folder() as data, running(data) as emulator, trusting(data):
        address = emulator.url.removeprefix("http://")
        options = [("grpc.enable_http_proxy", 0)]
        known = {"credentials": AnonymousCredentials()}
        plain = grpc.insecure_channel(address, options=options)
        rest = JobServiceClient(transport="rest", client_options={"api_endpoint": emulator.url}, **known)
        clients = {
            "gRPC with TLS": JobServiceClient(client_options={"api_endpoint": address}, **known),
            "gRPC": JobServiceClient(transport=JobServiceGrpcTransport(channel=plain)),
        }
        name = rest.create_custom_job(parent=PARENT, custom_job=_JOB).name

        def get(client: Any) -> Any:
            return client.get_custom_job(name=name)

        first = seconds(lambda: get(clients["gRPC with TLS"]))
        yield row("first call over gRPC", first, "s", note="starts the process that translates")
        for kind, client in clients.items():
            by_rest, by_grpc = medians(lambda: get(rest), lambda client=client: get(client), RUNS, warm_ups=20)
            yield row("get over REST", by_rest * 1000, "ms", note=f"median of {RUNS}, alternating")
            yield row(f"get over {kind}", by_grpc * 1000, "ms")
            yield row(f"get over {kind}, ratio", by_grpc / by_rest, "", 2.5)
        plain.close()
