"""The run of a build: started once, found again by its tag, waited for, and cancelled by Ctrl-C."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from vertex_api.client_errors import RateLimited, Unavailable, VertexError

from ..errors import BuildFailed
from ..runtime import engine_liveness
from ..runtime.engine_cancellation import wait_unless_cancelled
from .build_log import BuildLog
from .client import Build, CloudBuildClient
from .failure_explanations import explain_refusal

ACTIVE_STATUSES = frozenset({"STATUS_UNKNOWN", "PENDING", "QUEUED", "WORKING"})
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 1.0, 10.0
"""Between two looks at a build: often at first, and six times a minute in the end (skaffold#2637 was refused)."""


class BuildRun:
    """One build of an image, from its start to its end.

    `request` is a `Build` with one tag, by which an active build of an earlier `pulumi up` is found. `report` is called
    with lines of progress. `wait` waits for seconds and returns whether the run is to be cancelled.
    """

    def __init__(
        self,
        client: CloudBuildClient,
        parent: str,
        request: Mapping[str, Any],
        report: Callable[[str], None],
        wait: Callable[[float], bool] = wait_unless_cancelled,
    ) -> None:
        self._client, self._parent, self._request = client, parent, request
        self._report, self._wait = report, wait
        (self._tag,), (self._image,) = request["tags"], request["images"]

    def find_or_start(self) -> Build:
        """Return the active build of the image, or start one. Raises BuildFailed."""
        try:
            if build := self._find_active():
                self._report(f"waits for build {build['id']}, which an earlier run has started")
                return build
            return self._client.create(
                self._parent,
                self._request,
                check_before=lambda: engine_liveness.require_engine_alive(self._image),
                find_created=self._find_active,
            )
        except VertexError as error:
            raise BuildFailed(f"{self._image}: {explain_refusal(error, self._request)}") from error

    def wait_for_end(self, build: Build, log: BuildLog, report_log_lines: Callable[[Iterable[str]], object]) -> Build:
        """Return a build in its terminal state, and pass on new lines of its log until then.

        Raises BuildFailed after Ctrl-C, or if the state stays unknown.
        """
        name, pause = self._name(build), FIRST_PAUSE_SECONDS
        while build["status"] in ACTIVE_STATUSES:
            engine_liveness.require_engine_alive(self._image)
            if self._wait(pause):
                self._cancel(build)
            pause = min(pause * 1.5, MAX_PAUSE_SECONDS)
            try:
                build = self._client.require(name)
            except (Unavailable, RateLimited) as error:  # the client has tried for minutes
                message = f"{self._image}: the state of build {build['id']} is unknown, and it goes on: {error}"
                raise BuildFailed(f"{message}; run `pulumi up` again to wait on") from error
            except VertexError as error:
                raise BuildFailed(f"{self._image}: {explain_refusal(error, self._request)}") from error
            report_log_lines(log.take_new_lines_if_due(is_last=build["status"] not in ACTIVE_STATUSES))
        return build

    def _find_active(self) -> Build | None:
        for build in self._client.list(self._parent, self._tag):
            # Never another image's build, however the service reads the filter.
            if build["status"] in ACTIVE_STATUSES and self._tag in build.get("tags", []):
                return build
        return None

    def _cancel(self, build: Build) -> None:
        """Raises BuildFailed, whether or not the build can be cancelled."""
        try:
            self._client.cancel(self._name(build))
        except VertexError as error:
            message = f"{self._image}: build {build['id']} could not be cancelled and goes on: {error}"
            raise BuildFailed(f"{message}; the next `pulumi up` waits for it") from error
        raise BuildFailed(f"{self._image}: its build was cancelled with this run; run `pulumi up` again to build it")

    def _name(self, build: Build) -> str:
        # What the service names a build by has the project's number in it.
        return f"{self._parent}/builds/{build['id']}"
