"""The calls to Cloud Build, and to Cloud Logging for the lines of its builds."""

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial
from typing import Any
from urllib.parse import quote

from vertex_api import credentials
from vertex_api.answers import log_entries, read_json, require_list, require_object, translate_errors
from vertex_api.errors import Unavailable, VertexError
from vertex_api.retry import Caller

from ..runtime import engine

Build = Mapping[str, Any]
BUILD_ENDPOINT_VARIABLE = "CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDBUILD"
LOGGING_ENDPOINT_VARIABLE = "CLOUDSDK_API_ENDPOINT_OVERRIDES_LOGGING"
"""gcloud's own variables for other addresses of the two APIs."""
CALL_SECONDS = 60.0
_ID = re.compile(r"[\w-]+")
_MAX_BUILDS = 50
"""Of one tag, the newest first: an active build is one of the first."""


class BuildClient:
    """Cloud Build over REST. Builds are JSON objects with the API's field names. Every method raises VertexError.

    Credentials are those of `vertex_api.credentials` for https, none for http.
    """

    def __init__(self, build_url: str, logging_url: str, caller: Caller | None = None) -> None:
        self._build_url, self._logging_url = build_url, logging_url
        self._caller = caller or Caller(report=partial(print, flush=True), wait=engine.wait_for_cancellation)

    def create(
        self,
        parent: str,
        request: Build,
        *,
        check_before: Callable[[], None],
        find_created: Callable[[], Build | None],
    ) -> Build:
        """Start a build in `projects/P/locations/R` and return it.

        `check_before` is called right before the request is sent. If its answer is lost, `find_created` looks for the
        build before it is sent again.
        """

        def start() -> Build:
            operation = self._send("POST", f"{self._build_url}/v1/{parent}/builds", request)
            metadata = operation.get("metadata")
            return _require_build(metadata.get("build") if isinstance(metadata, Mapping) else None)

        return self._caller.call("create", start, check_before=check_before, find_earlier_result=find_created)

    def get(self, name: str) -> Build:
        """Return a build, `projects/P/locations/R/builds/ID`, as it is now."""
        return self._caller.call("get", lambda: _require_build(self._send("GET", f"{self._build_url}/v1/{name}")))

    def list(self, parent: str, tag: str) -> Sequence[Build]:
        """Return the newest builds with a tag, the newest first."""
        tag_filter = quote(f'tags="{tag}"')
        url = f"{self._build_url}/v1/{parent}/builds?filter={tag_filter}&pageSize={_MAX_BUILDS}"
        return self._caller.call(
            "list", lambda: [_require_build(each) for each in require_list(self._send("GET", url), "builds")]
        )

    def cancel(self, name: str) -> None:
        """Request that a build is stopped."""
        self._caller.call("cancel", lambda: self._send("POST", f"{self._build_url}/v1/{name}:cancel", {}))

    def log_entries(self, project: str, build_id: str, count: int) -> Sequence[Mapping[str, Any]]:
        """Return at most `count` entries of a build's log, the newest first."""
        filter = (
            f'logName="projects/{project}/logs/cloudbuild" AND resource.type="build" '
            f'AND resource.labels.build_id="{build_id}"'
        )
        query = {"resourceNames": [f"projects/{project}"], "filter": filter, "orderBy": "timestamp desc"}
        send_query = partial(self._send, "POST", f"{self._logging_url}/v2/entries:list")
        return self._caller.call("read_log", lambda: log_entries(send_query, query, count))

    def _send(self, method: str, url: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        with translate_errors():
            return read_json(self._session.request(method, url, json=body, timeout=CALL_SECONDS))

    @cached_property
    def _session(self) -> Any:
        from google.auth.credentials import AnonymousCredentials
        from google.auth.transport.requests import AuthorizedSession

        from vertex_api import transport

        is_local = self._build_url.startswith("http://")
        with translate_errors():
            session = AuthorizedSession(AnonymousCredentials() if is_local else credentials.load())
        session.trust_env = not is_local  # a proxy does not reach a server on this machine
        return transport.mount(session)


def _require_build(value: Any) -> Build:
    """Return a build that has an id and a status, as all have. Raises Unavailable."""
    build = require_object(value)
    if not (_ID.fullmatch(str(build.get("id"))) and isinstance(build.get("status"), str)):
        raise Unavailable("what answers is not Cloud Build: it names a build without an id and a status")
    return build


def connect() -> BuildClient:
    """Return the client of Google's APIs, or of those that gcloud's variables name."""
    build = os.environ.get(BUILD_ENDPOINT_VARIABLE, "").rstrip("/") or "https://cloudbuild.googleapis.com"
    logging = os.environ.get(LOGGING_ENDPOINT_VARIABLE, "").rstrip("/") or "https://logging.googleapis.com"
    return _client(build, logging)


_client = cache(BuildClient)

READ_INTERVAL_SECONDS = 10.0
"""Between two reads of one build's log: a project may read 60 times a minute (Cloud Logging's page on quotas)."""
ENTRIES_PER_READ = 1000
_MAX_READS_OF_END = 4
_RETRY_SECONDS = 3.0
"""Lines reach Cloud Logging some seconds after they are written, so the last ones are read until they stay the same."""
_STEP_PREFIX = re.compile(r'Step #\d+(?: - "[^"]*")?: ')


class BuildLog:
    """The lines that one build has written. They are for people only: a log that cannot be read fails nothing.

    `report` is then called once. `wait` is called with the seconds between two reads of the last lines.
    """

    def __init__(
        self,
        client: BuildClient,
        project: str,
        build_id: str,
        report: Callable[[str], None],
        wait: Callable[[float], object],
    ) -> None:
        self._client, self._project, self._build_id = client, project, build_id
        self._report, self._wait = report, wait
        self._read_ids: set[str] = set()
        self._next_read = 0.0
        self._is_readable = True

    def new_lines(self, *, is_last_read: bool = False) -> Iterator[str]:
        """Yield the lines that were not yielded before. Reads nothing if it has just done so, but for the last read."""
        if time.monotonic() < self._next_read and not is_last_read:
            return
        self._next_read = time.monotonic() + READ_INTERVAL_SECONDS
        for id_, line in self._read(ENTRIES_PER_READ):
            if id_ not in self._read_ids:
                self._read_ids.add(id_)
                yield line

    def last_lines(self, count: int) -> list[str]:
        """Return the last lines, once two reads in a row are equal; none if the log cannot be read."""
        lines: list[str] = []
        for _ in range(_MAX_READS_OF_END):
            latest = [line for _, line in self._read(count)]
            if not self._is_readable or (latest and latest == lines):
                break
            lines = latest
            self._wait(_RETRY_SECONDS)
        return lines

    def _read(self, count: int) -> list[tuple[str, str]]:
        """Return ids and lines of the newest entries, in the order in which they were written.

        The first failure is reported. After it, nothing is read.
        """
        if not self._is_readable:
            return []
        try:
            entries = self._client.log_entries(self._project, self._build_id, count)
        except VertexError as error:
            self._is_readable = False
            self._report(f"the log of its build cannot be read: {error}; your account needs roles/logging.viewer")
            return []
        lines = [
            (str(entry.get("insertId")), _STEP_PREFIX.sub("", str(entry.get("textPayload", "")))) for entry in entries
        ]
        return lines[::-1]
