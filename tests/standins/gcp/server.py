"""The stand-in as a Pulumi provider: a plugin that the engine starts, or a server that it attaches to.

A plugin reads off the real provider what that takes with every command, which is a fifth of the command's processor
time. A server in the test's process does it once.

It checks every input as `properties` says, records what it is told to do in the file of `GCP_STANDIN_RECORD` (one JSON
line an operation), refuses what `world` does not know, and answers with what the real provider would know. What is new
is unknown to the first `GCP_STANDIN_UNKNOWN` attempts that use it. What the record has from earlier commands, also of
other stacks, exists. `GCP_STANDIN_EXISTS` is what can be imported: inputs by id, as JSON. `GCP_STANDIN_CONNECTED` are
the ranges of networks that are peered already, as JSON. What it answers about quotas is in `quotas`.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from concurrent import futures
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import empty_pb2, struct_pb2
from google.protobuf.json_format import MessageToDict
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc

from tests.standins.gcp.functions import argument_problems
from tests.standins.gcp.properties import problems
from tests.standins.gcp.quotas import answer_quota_infos
from tests.standins.gcp.world import STORAGE_AGENT, World

_NUMBERS = {"acme-dev": "123456789012"}
"""The projects that the caller may see; others are refused, whether they exist or not."""


def answer_project(projectId: str, environment: Any) -> dict[str, Any]:  # noqa: N803
    """Answer as the provider does, with the fields that are read here."""
    if projectId not in _NUMBERS:
        raise PermissionError(f"Error 403: The caller does not have permission to see {projectId}, forbidden")
    return {"projectId": projectId, "number": _NUMBERS[projectId]}


_FUNCTIONS = {
    "gcp:cloudquota/getSQuotaInfos:getSQuotaInfos": answer_quota_infos,
    "gcp:organizations/getProject:getProject": answer_project,
}
_NETWORK_BY_ID = "https://www.googleapis.com/compute/v1/projects/by-id/"
_RESULTS = {
    "gcp:vertex/aiTensorboard:AiTensorboard": {"name": "projects/123456789012/locations/europe-west4/tensorboards/77"},
    "gcp:monitoring/notificationChannel:NotificationChannel": {"name": "projects/acme-dev/notificationChannels/5"},
}
"""What the real provider adds to the inputs, by type."""


class StandIn(provider_pb2_grpc.ResourceProviderServicer):
    """The calls that an engine makes of a provider."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._lock = threading.Lock()
        self._read_record()

    def _read_record(self) -> None:
        """Know what earlier commands have done, and nothing of how often they tried."""
        connected = json.loads(self._environment.get("GCP_STANDIN_CONNECTED", "{}"))
        self._world = World(int(self._environment.get("GCP_STANDIN_UNKNOWN", "0")), connected=connected)
        self._record = Path(self._environment["GCP_STANDIN_RECORD"])
        for line in self._record.read_text().splitlines() if self._record.exists() else ():
            entry = json.loads(line)
            if entry["operation"] == "create":
                self._world.create(entry["type"], entry["inputs"])
            elif entry["operation"] == "delete":
                self._world.delete(entry["type"], entry["inputs"])
            elif entry["operation"] == "invoke":
                self._world.invoke(entry["type"], entry["inputs"])

    def Attach(self, request: Any, context: Any) -> Any:
        with self._lock:
            self._read_record()
        return empty_pb2.Empty()

    def GetPluginInfo(self, request: Any, context: Any) -> Any:
        return plugin_pb2.PluginInfo(version=metadata.version("pulumi_gcp"))

    def CheckConfig(self, request: Any, context: Any) -> Any:
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: Any) -> Any:
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    def Configure(self, request: Any, context: Any) -> Any:
        return provider_pb2.ConfigureResponse(supportsPreview=True, acceptSecrets=False)

    def Check(self, request: Any, context: Any) -> Any:
        token = request.urn.split("::")[2].rpartition("$")[2]
        found = [
            provider_pb2.CheckFailure(property=path, reason=reason)
            for path, reason in problems(token, MessageToDict(request.news))
        ]
        return provider_pb2.CheckResponse(inputs=request.news, failures=found)

    def Diff(self, request: Any, context: Any) -> Any:
        olds, news = MessageToDict(request.old_inputs), MessageToDict(request.news)
        changed = sorted(key for key in olds.keys() | news.keys() if olds.get(key) != news.get(key))
        # Compute Engine answers with the id of a project that was given by its number.
        shown = MessageToDict(request.olds).get("network", "")
        is_other = str(shown).startswith(_NETWORK_BY_ID) and shown != news.get("network")
        replaces = ["network"] if is_other and "network" not in request.ignoreChanges else []
        changed = sorted({*changed, *replaces})
        update = provider_pb2.PropertyDiff(kind=provider_pb2.PropertyDiff.UPDATE, inputDiff=True)
        return provider_pb2.DiffResponse(
            changes=provider_pb2.DiffResponse.DIFF_SOME if changed else provider_pb2.DiffResponse.DIFF_NONE,
            diffs=changed,
            replaces=replaces,
            detailedDiff=dict.fromkeys(changed, update),
            hasDetailedDiff=True,
        )

    def Create(self, request: Any, context: Any) -> Any:
        urn = request.urn.split("::")
        token, name = urn[2].rpartition("$")[2], urn[3]
        if request.preview:
            return provider_pb2.CreateResponse(properties=request.properties)
        inputs = MessageToDict(request.properties)
        with self._lock:
            if refusal := self._world.find_refusal(token, inputs):
                self._write("refuse", token, name, inputs)
                context.abort(grpc.StatusCode.UNKNOWN, refusal)
            self._world.create(token, inputs)
            self._write("create", token, name, inputs)
        properties = struct_pb2.Struct()
        properties.update({**inputs, **_RESULTS.get(token, {})})
        if token.endswith(":GlobalAddress"):
            properties["network"] = _NETWORK_BY_ID + inputs["network"].split("/", 2)[2]
        return provider_pb2.CreateResponse(id=f"standin-{name}", properties=properties)

    def Read(self, request: Any, context: Any) -> Any:
        known = json.loads(self._environment.get("GCP_STANDIN_EXISTS", "{}"))
        if request.id in known:  # is imported
            found = struct_pb2.Struct()
            found.update(known[request.id])
            return provider_pb2.ReadResponse(id=request.id, properties=found, inputs=found)
        return provider_pb2.ReadResponse(id=request.id, properties=request.properties, inputs=request.inputs)

    def Invoke(self, request: Any, context: Any) -> Any:
        arguments = MessageToDict(request.args)
        if found := list(argument_problems(request.tok, arguments)):
            return provider_pb2.InvokeResponse(failures=[provider_pb2.CheckFailure(reason=reason) for reason in found])
        if request.tok == STORAGE_AGENT:
            with self._lock:
                self._world.invoke(request.tok, arguments)
                self._write("invoke", request.tok, "", arguments)
            return provider_pb2.InvokeResponse()
        try:
            result = _FUNCTIONS[request.tok](**arguments, environment=self._environment)
        except PermissionError as refusal:
            context.abort(grpc.StatusCode.UNKNOWN, str(refusal))
        answer = struct_pb2.Struct()
        answer.update(result)
        return provider_pb2.InvokeResponse(**{"return": answer})

    def Update(self, request: Any, context: Any) -> Any:
        token = request.urn.split("::")[2].rpartition("$")[2]
        self._write("update", token, request.urn.split("::")[3], {})
        properties = struct_pb2.Struct()
        properties.update({**MessageToDict(request.news), **_RESULTS.get(token, {})})
        return provider_pb2.UpdateResponse(properties=properties)

    def Delete(self, request: Any, context: Any) -> Any:
        token, name = request.urn.split("::")[2].rpartition("$")[2], request.urn.split("::")[3]
        inputs = MessageToDict(request.old_inputs)
        with self._lock:
            if refusal := self._world.delete(token, inputs):
                context.abort(grpc.StatusCode.UNKNOWN, refusal)
            self._write("delete", token, name, inputs)
        return empty_pb2.Empty()

    def Cancel(self, request: Any, context: Any) -> Any:
        return empty_pb2.Empty()

    def _write(self, operation: str, token: str, name: str, inputs: dict[str, Any]) -> None:
        line = {"operation": operation, "type": token, "name": name, "inputs": inputs}
        with self._record.open("a") as record:
            record.write(json.dumps(line) + "\n")


def start_server(environment: Mapping[str, str]) -> tuple[grpc.Server, int]:
    """Serve on a port of this machine, which is returned with the server; it stops once nobody refers to it."""
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=16))
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(StandIn(environment), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, port


def main() -> None:
    """Serve until the engine goes away; the port is the first line on standard output, as engines expect."""
    server, port = start_server(os.environ)
    print(port, flush=True)  # noqa: T201
    parent = os.getppid()
    with suppress(KeyboardInterrupt):  # how an engine may end it
        while os.getppid() == parent:
            time.sleep(0.5)
    server.stop(0)
    sys.exit(0)


if __name__ == "__main__":
    main()
