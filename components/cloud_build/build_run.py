"""The run of a build: started once, found again by its tag, waited for, and cancelled by Ctrl-C."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from vertex_api.client_errors import Interrupted, RateLimited, Unavailable, VertexError

from ..errors import BuildFailed
from ..runtime.engine import require_alive, wait_for_cancellation
from .build_and_log_client import Build, CloudBuildClient
from .build_log import BuildLog
from .build_request import ImageBuild, build_request_body, can_reuse_layers, compute_build_tag, get_uri_without_tag
from .failure_explanations import explain_refusal

ACTIVE_STATUSES = frozenset({"STATUS_UNKNOWN", "PENDING", "QUEUED", "WORKING"})
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 1.0, 10.0
"""Between two looks at a build: often at first, and six times a minute in the end (skaffold#2637 was refused)."""


class BuildRun:
    """One build of an image, from its start to its end.

    An active build of an earlier `pulumi up` is found by its tag, and a new one may reuse layers of the last image.
    `options` are those of `build_request_body`. `report` is called with lines of progress. `wait` waits for seconds and
    returns whether the run is to be cancelled.
    """

    def __init__(
        self,
        client: CloudBuildClient,
        build: ImageBuild,
        options: Mapping[str, Any],
        report: Callable[[str], None],
        wait: Callable[[float], bool] = wait_for_cancellation,
    ) -> None:
        self._client, self._build, self._options = client, build, options
        self._report, self._wait = report, wait
        self._image, self._parent, self._account = build.tagged_uri, options["parent"], options["serviceAccount"]

    def find_active_or_start_build(self) -> Build:
        """Return the active build of the image, or start one. Raises BuildFailed."""
        try:
            builds = self._list_builds_of_all_tags()
            if build := self._find_active_build_or_none(builds):
                self._report(f"waits for build {build['id']}, which an earlier run has started")
                return build
            return self._client.create(
                self._parent,
                build_request_body(self._copy_build_with_cache_image_and_report(builds), self._options),
                check_before=lambda: require_alive(self._image),
                find_created=lambda: self._find_active_build_or_none(self._list_builds_of_all_tags()),
            )
        except VertexError as error:
            raise BuildFailed(f"{self._image}: {explain_refusal(error, self._account)}") from error

    def wait_for_end_or_cancel(
        self, build: Build, log: BuildLog, report_log_lines: Callable[[Iterable[str]], object]
    ) -> Build:
        """Return a build in its terminal state, and pass on new lines of its log until then.

        Raises BuildFailed after Ctrl-C, or if the state stays unknown.
        """
        name, pause = self._get_resource_name(build), FIRST_PAUSE_SECONDS
        while build["status"] in ACTIVE_STATUSES:
            require_alive(self._image)
            if self._wait(pause):
                self._try_to_cancel_build_and_raise_build_failed(build)
            pause = min(pause * 1.5, MAX_PAUSE_SECONDS)
            try:
                build = self._client.require(name)
            except Interrupted:
                self._try_to_cancel_build_and_raise_build_failed(build)
            except (Unavailable, RateLimited) as error:  # the client has tried for minutes
                message = f"{self._image}: the state of build {build['id']} is unknown, and it goes on: {error}"
                raise BuildFailed(f"{message}; run `pulumi up` again to wait on") from error
            except VertexError as error:
                raise BuildFailed(f"{self._image}: {explain_refusal(error, self._account)}") from error
            report_log_lines(log.iterate_new_lines_if_due(is_last_read=build["status"] not in ACTIVE_STATUSES))
        return build

    def _list_builds_of_all_tags(self) -> Sequence[Build]:
        """Return the builds of all tags of the image, the newest first."""
        return self._client.list_newest_builds(self._parent, compute_build_tag(get_uri_without_tag(self._image)))

    def _find_active_build_or_none(self, builds: Iterable[Build]) -> Build | None:
        tag = compute_build_tag(self._image)
        return next(
            (each for each in builds if each["status"] in ACTIVE_STATUSES and tag in each.get("tags", [])), None
        )

    def _copy_build_with_cache_image_and_report(self, builds: Iterable[Build]) -> ImageBuild:
        """Return what to build, with an image of these earlier builds to reuse layers of, if there is one."""
        cache_image = (
            find_newest_other_image_in_repository_or_none(builds, self._image)
            if can_reuse_layers(self._options)
            else None
        )
        if cache_image:
            self._report(f"reuses layers of {cache_image}, if it still exists")
        return replace(self._build, cache_image=cache_image)

    def _try_to_cancel_build_and_raise_build_failed(self, build: Build) -> NoReturn:
        """Raises BuildFailed, whether or not the build can be cancelled."""
        try:
            self._client.cancel(self._get_resource_name(build))
        except VertexError as error:
            message = f"{self._image}: build {build['id']} could not be cancelled and goes on: {error}"
            raise BuildFailed(f"{message}; the next `pulumi up` waits for it") from error
        raise BuildFailed(f"{self._image}: its build was cancelled with this run; run `pulumi up` again to build it")

    def _get_resource_name(self, build: Build) -> str:
        # What the service names a build by has the project's number in it.
        return f"{self._parent}/builds/{build['id']}"


def find_newest_other_image_in_repository_or_none(builds: Iterable[Build], tagged_uri: str) -> str | None:
    """Return the image that the newest successful build has pushed to the repository of an image, with its tag.

    `builds` are the newest first. The image itself does not count: it is built because the registry lacks it.
    """
    repository = get_uri_without_tag(tagged_uri)
    for build in builds:
        for image in build.get("results", {}).get("images", []) if build["status"] == "SUCCESS" else []:
            name = str(image["name"])
            if get_uri_without_tag(name) == repository and name != tagged_uri:
                return name
    return None


def get_built_digest_or_none(build: Build, tagged_uri: str) -> str | None:
    """Return the digest that a build reports for an image; `None` if it has none."""
    images = build.get("results", {}).get("images", []) if build["status"] == "SUCCESS" else []
    return next((str(image["digest"]) for image in images if image["name"] == tagged_uri), None)
