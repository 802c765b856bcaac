"""Google Cloud's REST APIs, to read from: each call is a GET, or a POST that changes nothing, and ends in time."""

import os
import re
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any, NoReturn
from urllib.parse import quote

from vertex_api.retry import DISABLED_API

from ..runtime.refusals import PERIMETER
from .findings import Place

CALL_SECONDS = 5.0
QUOTA_SECONDS = 15.0
"""Of a call for a quota, which Google takes its time for."""
READING = (":testIamPermissions", "/testIamPermissions", ":getIamPolicy", ":getEffectiveOrgPolicy", ":getAncestry")
"""The POSTs that only read: REST references of IAM, Resource Manager, Compute Engine and BigQuery."""
_APIS = {
    "cloudresourcemanager": ("RESOURCE_MANAGER", "https://cloudresourcemanager.googleapis.com/v1/"),
    "hierarchy": ("RESOURCE_MANAGER_V3", "https://cloudresourcemanager.googleapis.com/v3/"),
    "serviceusage": ("SERVICE_USAGE", "https://serviceusage.googleapis.com/v1/"),
    "cloudbilling": ("CLOUD_BILLING", "https://cloudbilling.googleapis.com/v1/"),
    "iam": ("IAM", "https://iam.googleapis.com/v1/"),
    "storage": ("STORAGE", "https://storage.googleapis.com/storage/v1/"),
    "artifactregistry": ("ARTIFACT_REGISTRY", "https://artifactregistry.googleapis.com/v1/"),
    "cloudkms": ("KMS", "https://cloudkms.googleapis.com/v1/"),
    "secretmanager": ("SECRET_MANAGER", "https://secretmanager.googleapis.com/v1/"),
    "compute": ("COMPUTE", "https://compute.googleapis.com/compute/v1/"),
    "servicenetworking": ("SERVICE_NETWORKING", "https://servicenetworking.googleapis.com/v1/"),
    "bigquery": ("BIG_QUERY", "https://bigquery.googleapis.com/bigquery/v2/"),
    "aiplatform": ("VERTEX_AI", "https://{region}-aiplatform.googleapis.com/v1/"),
    "monitoring": ("MONITORING", "https://monitoring.googleapis.com/v3/"),
    "openidconnect": ("OPENIDCONNECT", "https://openidconnect.googleapis.com/v1/"),
}
"""By API, its base URL and the part of `GOOGLE_…_CUSTOM_ENDPOINT`, the gcp provider's variable for another one."""
_QUOTA_PROJECT = re.compile(r"requires a quota project|USER_PROJECT_DENIED")
_CONSUMER = re.compile(r"\bprojects?[ /]([a-z0-9:.-]+)")


class LookUpFailed(Exception):
    """A look-up has no answer that says anything of what was asked for."""


class Unclear(LookUpFailed):
    """The service does not answer in time, or not as it should. The message is one line."""


class NotFound(LookUpFailed):
    """What was asked for does not exist. The message names its place."""


class NotSignedIn(LookUpFailed):
    """The credentials are not accepted."""


class NotAllowed(LookUpFailed):
    """The caller may not look at what is in a `place`."""

    def __init__(self, place: Place) -> None:
        super().__init__(str(place))
        self.place = place


class ApiOff(LookUpFailed):
    """The `api`, such as `compute`, is off in the project that calls are counted for, `consumer`."""

    def __init__(self, api: str, consumer: str | None) -> None:
        super().__init__(api)
        self.api, self.consumer = api, consumer


class QuotaProjectRefused(LookUpFailed):
    """The caller has no quota project, or may not use it."""


class Cloud:
    """The calls of one run, with `sign` for the headers of a caller; all end by `deadline`, a time of `monotonic`.

    A server that is reached by http gets no credentials. Methods raise LookUpFailed; `count` is how many calls were
    made.
    """

    def __init__(self, project: str, region: str, deadline: float, sign: Callable[[dict[str, str]], None]) -> None:
        self.project, self.deadline, self.count = project, deadline, 0
        self._region, self._sign = region, sign

    def sign_as(self, sign: Callable[[dict[str, str]], None]) -> None:
        """Let another caller make the calls from now on."""
        self._sign = sign

    def get(self, api: str, path: str, place: Place | None = None, **query: Any) -> dict[str, Any]:
        """Return a resource, or a list of them. The caller needs to be granted the look at a place."""
        return self._send("GET", api, _quoted(path), place, params=query)

    def quota(self, service: str, metric: str) -> dict[str, Any]:
        """Return what is granted of a metric, in all regions (Service Usage's REST reference, consumerQuotaMetrics).

        Cloud Quotas would need an API that is off in a new project, and ids that no page lists.
        """
        # The slash of a metric is part of its name.
        path = f"projects/{self.project}/services/{service}/consumerQuotaMetrics/{quote(metric, safe='')}"
        return self._send("GET", "serviceusage", path, None, "v1beta1", QUOTA_SECONDS, params={"view": "FULL"})

    def whose(self, token: str) -> str | None:
        """Return the e-mail that an access token is of, `None` if its scopes do not tell.

        Userinfo refuses a quota project (terraform-provider-google #10260), so the call has the token alone.
        """
        try:
            answer = self._send("GET", "openidconnect", "userinfo", None, token=token)
        except LookUpFailed:
            return None
        email = answer.get("email")
        return email if isinstance(email, str) and "@" in email else None

    def ask(self, api: str, path: str, place: Place | None = None, **body: Any) -> dict[str, Any]:
        """Return what a POST answers whose path ends with one of `READING`."""
        return self._send("POST", api, _quoted(path), place, json=body)

    def is_public(self, bucket: str) -> bool:
        """Whether everybody may list a bucket, whose policy is then nobody's to read."""
        try:
            self._send("GET", "storage", f"b/{_quoted(bucket)}/o", None, is_signed=False, params={"maxResults": 1})
        except LookUpFailed:
            return False
        return True

    def permissions(self, place: Place, permissions: list[str]) -> set[str]:
        """Return those of these permissions that the caller has on a place."""
        name = place.name
        if place.kind == "bucket":
            answer = self.get("storage", f"b/{name}/iam/testPermissions", place, permissions=permissions)
        else:
            api, path = {
                "project": ("cloudresourcemanager", f"projects/{name}"),
                "repository": ("artifactregistry", name),
                "key": ("cloudkms", name),
                "secret": ("secretmanager", name),
                "account": ("iam", f"projects/-/serviceAccounts/{name}"),
                "subnetwork": ("compute", name),
            }[place.kind]
            separator = "/" if api == "compute" else ":"
            answer = self.ask(api, f"{path}{separator}testIamPermissions", place, permissions=permissions)
        return set(answer.get("permissions", []))

    def _send(
        self,
        method: str,
        api: str,
        path: str,
        place: Place | None,
        version: str = "",
        limit: float | None = None,
        token: str = "",
        is_signed: bool = True,
        **content: Any,
    ) -> dict[str, Any]:
        import requests

        from vertex_api import transport

        if method != "GET" and not path.endswith(READING):
            raise AssertionError(f"{method} {path} may change something")
        part, default = _APIS[api]
        base = os.environ.get(f"GOOGLE_{part}_CUSTOM_ENDPOINT") or default.format(region=self._region)
        if version:
            base = f"{base.removesuffix('/').removesuffix('/v1')}/{version}"
        host = base.partition("://")[2].partition("/")[0]
        limit = limit or CALL_SECONDS
        seconds = min(limit, self.deadline - monotonic() + limit - CALL_SECONDS)
        if seconds <= 0:
            raise Unclear(f"{host} was not asked, as there was no time left")
        headers: dict[str, str] = {}
        if base.startswith("https://") and token:
            headers["Authorization"] = f"Bearer {token}"
        elif base.startswith("https://") and is_signed:
            self._sign(headers)
        self.count += 1
        try:
            with transport.mount(requests.Session(), seconds) as session:
                url = f"{base.rstrip('/')}/{path}"
                answer = session.request(method, url, headers=headers, timeout=seconds + 1, **content)
        except transport.AnswerRefused as error:
            raise Unclear(str(error)) from error
        except (requests.RequestException, ValueError) as error:
            raise Unclear(f"{host} does not answer") from error
        try:
            found = answer.json()
        except (ValueError, RecursionError):
            found = None
        if answer.status_code >= 400:
            self._refuse(api, host, answer.status_code, answer.text, place or Place("project", self.project))
        if not isinstance(found, Mapping):
            raise Unclear(f"{host} answers as no API of Google's does; a proxy may stand before it")
        return dict(found)

    def _refuse(self, api: str, host: str, status: int, text: str, place: Place) -> NoReturn:
        """Raise the error for an answer of this status. Google's page "Error model" has the reasons."""
        if status == 401:
            raise NotSignedIn(host)
        if status == 404:
            raise NotFound(str(place))
        if status in (400, 403):
            if DISABLED_API.refusal.search(text) or "accessNotConfigured" in text:
                consumer = _CONSUMER.search(text)
                raise ApiOff(api, consumer[1].rstrip(".") if consumer else None)
            if _QUOTA_PROJECT.search(text):
                raise QuotaProjectRefused(host)
            if PERIMETER.search(text):
                raise Unclear(f"{host} is behind a service perimeter, which does not let this machine look")
        if status == 403:
            raise NotAllowed(place)
        raise Unclear(f"{host} answers with status {status}")


def _quoted(path: str) -> str:
    return quote(path, safe="/:@")
