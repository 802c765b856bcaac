"""The look-up of what a project is granted of Vertex AI's quotas: one call of the gcp provider.

It is the call of `pulumi_gcp.cloudquota.get_s_quota_infos`, sent by itself for two reasons. Pulumi's own takes a second
to turn the answer into objects: hundreds of quotas with dozens of regions each, of which few matter here. And it has no
deadline.
"""

import os
import re
import socket
import threading
import urllib.request
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import grpc
from google.protobuf import json_format, struct_pb2
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.settings import get_monitor

from vertex_api.estimates.quota import SERVICE, granted_quota

from ..errors import GrantedQuotasUnknown
from ..runtime.engine import defer_pulumi_gcp

ENDPOINT_VARIABLE = "GOOGLE_CLOUD_QUOTAS_CUSTOM_ENDPOINT"
"""The gcp provider's own variable for another address of the Cloud Quotas API."""
CONNECT_SECONDS = 3.0
ANSWER_SECONDS = 20.0
"""How long the program waits for the answer, which has several pages."""
_TOKEN = "gcp:cloudquota/getSQuotaInfos:getSQuotaInfos"
_MAX_REASON_LENGTH = 200
_REASONS = (
    (
        r"requires a quota project",
        "your user credentials need gcp:userProjectOverride: true and gcp:billingProject: {project} in the stack file",
    ),
    (
        r"has not been used in project|it is disabled|SERVICE_DISABLED",
        "the Cloud Quotas API is off; run `gcloud services enable cloudquotas.googleapis.com --project={project}`",
    ),
    (
        r"\b403\b|PERMISSION_DENIED",
        "permission is missing; grant whoever runs `pulumi` the role roles/cloudquotas.viewer",
    ),
)
"""Texts of Google's refusals, and what to do."""


def fetch(project: str, region: str, metrics: Collection[str]) -> dict[str, float]:
    """Return what a project is granted of the metrics (in full, `aiplatform.googleapis.com/…`) in a region.

    Raises GrantedQuotasUnknown.
    """
    _connect()
    # Imported here, because stacks of other targets do without it.
    defer_pulumi_gcp()
    from pulumi_gcp import _utilities

    arguments = struct_pb2.Struct()
    arguments.update({"parent": f"projects/{project}", "service": SERVICE})
    # The defaults of the stack's resources, so that the engine takes the same provider.
    defaults = _utilities.get_invoke_opts_defaults()
    request = resource_pb2.ResourceInvokeRequest(
        tok=_TOKEN,
        args=arguments,
        version=defaults.version or "",
        pluginDownloadURL=defaults.plugin_download_url or "",
    )
    monitor = get_monitor()
    assert monitor is not None, "no Pulumi program is running"
    try:
        response = monitor.Invoke(request, timeout=ANSWER_SECONDS)
    except grpc.RpcError as error:
        is_late = error.code() == grpc.StatusCode.DEADLINE_EXCEEDED
        reason = f"no answer within {ANSWER_SECONDS:.0f} s" if is_late else str(error.details())
        raise GrantedQuotasUnknown(explain(reason, project)) from None
    if response.failures:
        raise GrantedQuotasUnknown(explain(response.failures[0].reason, project))
    answer: struct_pb2.Struct = getattr(response, "return")
    return granted_quota(_select_quota_infos(answer, metrics), region)


def explain(text: str, project: str) -> str:
    """Return why quotas are unknown, in one line: what to do about a known refusal, else what the provider says."""
    for pattern, reason in _REASONS:
        if re.search(pattern, text):
            return reason.format(project=project)
    line = " ".join(text.split())
    return line if len(line) <= _MAX_REASON_LENGTH else f"{line[:_MAX_REASON_LENGTH]}…"


def address(environment: Mapping[str, str]) -> tuple[str, int]:
    """Return host and port that the gcp provider connects to: of the Cloud Quotas API, or of the proxy before it."""
    api = urlsplit(environment.get(ENDPOINT_VARIABLE) or "https://cloudquotas.googleapis.com/")
    proxy = urllib.request.getproxies().get(api.scheme)
    server = urlsplit(proxy) if proxy and not urllib.request.proxy_bypass(api.hostname or "") else api
    return server.hostname or "", server.port or (443 if server.scheme == "https" else 80)


def _connect() -> None:
    """Raise GrantedQuotasUnknown if the API cannot be reached.

    The provider would try again for five minutes, and Pulumi's engine does not end before it.
    """
    host, port = address(os.environ)
    is_reachable = threading.Event()

    def connect() -> None:
        with suppress(OSError), socket.create_connection((host, port), timeout=CONNECT_SECONDS):
            is_reachable.set()

    # A daemon, because the resolver of a machine without network may take longer, and nobody waits for it.
    attempt = threading.Thread(target=connect, daemon=True)
    attempt.start()
    attempt.join(CONNECT_SECONDS)
    if not is_reachable.is_set():
        raise GrantedQuotasUnknown(f"{host}:{port} cannot be reached")


def _select_quota_infos(answer: struct_pb2.Struct, metrics: Collection[str]) -> list[dict[str, Any]]:
    infos = (value.struct_value for value in answer.fields["quotaInfos"].list_value.values)
    return [json_format.MessageToDict(info) for info in infos if info.fields["metric"].string_value in metrics]
