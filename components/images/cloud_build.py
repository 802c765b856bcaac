"""CloudBuilder: builds and pushes an image in Cloud Build, from a source archive in the staging bucket.

A build is requested once, found again by its tag, waited for, and cancelled by Ctrl-C.
"""

import hashlib
import posixpath
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from vertex_api.errors import Interrupted, RateLimited, Unavailable, VertexError
from vertex_api.retry import PROPAGATION_SECONDS

from ..errors import BuildFailed, ContextUnusable
from ..files import Archive
from ..runtime.engine import require_alive, wait_for_cancellation
from ..runtime.storage import CloudStorage
from . import build_client
from .build_client import Build, BuildClient, BuildLog
from .build_failures import Outcome, failed_in_step, refusal
from .builders import MAX_QUOTED_LINES, Report, failure, follow
from .context import BuildContext
from .registry import GoogleRegistry, repository

DOCKER_STEP = "gcr.io/cloud-builders/docker"
"""Google's image with Docker's command line, which Cloud Build's workers have in their cache. Google moves it from
version to version; `dockerImage` names one."""
CONTEXT_FOLDER = "context"
"""The folder of the source archive that holds the build context. A Dockerfile that `COPY` must not see is beside it."""
ACTIVE_STATUSES = frozenset({"STATUS_UNKNOWN", "PENDING", "QUEUED", "WORKING"})
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 1.0, 10.0
"""Between two looks at a build: often at first, and six times a minute in the end (skaffold#2637 was refused)."""
_NEW_GRANT_PAUSES = (10.0, 20.0, 40.0, *[60.0] * 6, PROPAGATION_SECONDS - 430.0)
"""Seconds before a build is started again that found none of the grants of a new account: `PROPAGATION_SECONDS` in all,
with a line of progress at least once a minute."""


class CloudBuilder:
    """A builder of images for a registry of Google's. `options` are the input `builder.cloudBuild` of an image."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options

    def build(self, context: BuildContext, uri: str, report: Report) -> str:
        """Build and push an image, and return its digest. Raises ComponentError."""
        source_uri = f"{self._options['sourceFolder']}/{context.digest}.tar.gz"
        archive, dockerfile = source_archive(context)
        request = ImageBuild(
            tagged_uri=uri,
            source_uri=source_uri,
            source_generation="",
            dockerfile=dockerfile,
            platform=context.platform,
            build_args=context.build_args,
            target=context.target,
            secret_versions=self._options.get("secrets", {}),
        )
        for pause in (*_NEW_GRANT_PAUSES, None):
            # Anew each time: the generation of the last build may be gone, and its object replaced.
            request = replace(request, source_generation=_upload(source_uri, archive, report))
            outcome = self._run(request, report)
            if pause is None or not outcome.may_be_new_grant:
                break
            report(f"{outcome.explanation}; trying again in {pause:.0f} s")
            if wait_for_cancellation(pause):
                break
        if outcome.is_dockerfile:
            if outcome.last_lines:
                raise failure(uri, [*outcome.last_lines], outcome.advice)
            raise BuildFailed(f"{uri} cannot be built; its log says why: {outcome.build.get('logUrl')}")
        # If tags are immutable, someone else may have pushed this image first.
        if digest := built_images(outcome.build).get(uri) or GoogleRegistry().digest(uri):
            return digest
        raise BuildFailed(f"{uri}: {outcome.explanation} ({outcome.build.get('logUrl')})")

    def _run(self, request: "ImageBuild", report: Report) -> Outcome:
        client, project = build_client.connect(), self._options["parent"].split("/")[1]
        run = BuildRun(client, request, self._options, report)
        started = run.start()
        report(f"builds in Cloud Build: {started.get('logUrl', started['id'])}")
        log = BuildLog(client, project, started["id"], report, wait_for_cancellation)
        ended = run.wait(started, log, lambda lines: list(follow(lines, report)))
        return Outcome(ended, log.last_lines(MAX_QUOTED_LINES) if failed_in_step(ended) else [])


def source_archive(context: BuildContext) -> tuple[Archive, str]:
    """Return what the source archive holds, and the Dockerfile's path in it. Raises ContextUnusable.

    A Dockerfile that `.dockerignore` excludes is beside the context's folder, so that no `COPY` sees it.
    """
    files = {posixpath.join(CONTEXT_FOLDER, path): file for path, file in context.files.items()}
    texts = {posixpath.join(CONTEXT_FOLDER, path): text for path, text in context.texts.items()}
    dockerfile = posixpath.join(CONTEXT_FOLDER, context.dockerfile)
    if context.hides_dockerfile:
        if (context.folder / context.dockerfile).is_symlink():
            raise ContextUnusable(
                f"{context.folder / context.dockerfile} is a link that .dockerignore excludes, which Cloud Build "
                f'cannot follow; include it by a line "!{context.dockerfile}" in .dockerignore'
            )
        files["Dockerfile"] = files.pop(dockerfile)
        dockerfile = "Dockerfile"
    return Archive(context.folder, files, texts), dockerfile


def _upload(source_uri: str, archive: Archive, report: Report) -> str:
    """Make an object of Cloud Storage have the archive, and return the generation that has it."""
    with tempfile.TemporaryFile() as file:
        archive.write_gzip(file)
        file.seek(0)
        stored = CloudStorage().put(source_uri, file)
    if stored.is_new:
        report(f"sent {len(archive.digests)} files to {source_uri}")
    return stored.generation


@dataclass(frozen=True)
class ImageBuild:
    """What to build: `tagged_uri` from the archive `source_uri` (gs://…), and the options of `docker build`.

    Of the archive, a build takes the generation `source_generation`, whatever is written there later: training code may
    write to the bucket, and without a generation the latest one is built (StorageSource, discovery document cloudbuild
    v1).
    `dockerfile` is its path in the archive. `secret_versions` are names of Secret Manager's versions by the ids with
    which the Dockerfile mounts them. `cache_image` is an image whose layers may be reused.
    """

    tagged_uri: str
    source_uri: str
    source_generation: str
    dockerfile: str
    platform: str
    build_args: Mapping[str, str] = field(default_factory=dict)
    target: str | None = None
    secret_versions: Mapping[str, str] = field(default_factory=dict)
    cache_image: str | None = None

    def request(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the `Build` of Cloud Build's API (discovery document cloudbuild v1).

        `options` have `parent`, `serviceAccount` and the fields of `CloudBuild`. A build with an account of its own
        needs a logs bucket or CLOUD_LOGGING_ONLY (cert-manager#8851). A private pool decides on the machine, so its
        builds name no type.
        """
        bucket, _, name = self.source_uri.removeprefix("gs://").partition("/")
        project = options["parent"].split("/")[1]
        secrets = {f"BUILD_SECRET_{index}": id_ for index, id_ in enumerate(sorted(self.secret_versions))}
        step: dict[str, Any] = {
            "name": options.get("dockerImage", DOCKER_STEP),
            # BuildKit knows no networks but the default one, "host" and "none" (docker/buildx#591).
            "env": [f"DOCKER_BUILDKIT={0 if 'network' in options else 1}"],
            # `$NAME` would be one of Cloud Build's substitutions.
            "args": [argument.replace("$", "$$") for argument in self._arguments(secrets, options)],
        }
        request: dict[str, Any] = {
            "source": {"storageSource": {"bucket": bucket, "object": name, "generation": self.source_generation}},
            "steps": [step],
            "images": [self.tagged_uri],
            "tags": [build_tag(uri) for uri in (self.tagged_uri, repository(self.tagged_uri))],
            "serviceAccount": f"projects/{project}/serviceAccounts/{options['serviceAccount']}",
            "options": {"logging": "CLOUD_LOGGING_ONLY"},
        }
        if "timeout" in options:
            request["timeout"] = options["timeout"]
        if "pool" in options:
            request["options"]["pool"] = {"name": options["pool"]}
        elif "machineType" in options:
            request["options"]["machineType"] = options["machineType"]
        if secrets:
            step["secretEnv"] = list(secrets)
            versions = [{"versionName": self.secret_versions[id_], "env": name} for name, id_ in secrets.items()]
            request["availableSecrets"] = {"secretManager": versions}
        return request

    def _arguments(self, secrets: Mapping[str, str], options: Mapping[str, Any]) -> Iterable[str]:
        """Yield the arguments of `docker`; `secrets` are ids by environment variable."""
        yield from ("build", f"--tag={self.tagged_uri}", f"--platform={self.platform}", f"--file={self.dockerfile}")
        if self.target:
            yield f"--target={self.target}"
        if can_reuse_layers(options):
            # What the next build needs to find this one's layers is written into the image.
            yield "--build-arg=BUILDKIT_INLINE_CACHE=1"
            if self.cache_image:
                yield f"--cache-from={self.cache_image}"
        yield from (f"--build-arg={name}={value}" for name, value in sorted(self.build_args.items()))
        yield from (f"--secret=id={id_},env={variable}" for variable, id_ in secrets.items())
        if "network" in options:
            yield f"--network={options['network']}"
        yield CONTEXT_FOLDER


def build_tag(uri: str) -> str:
    """Return the tag by which builds are found again: of one image, or of all images of a URI without a tag.

    It is a digest, as a build's tag has no slashes and colons.
    """
    return f"vertex-training-{hashlib.sha256(uri.encode()).hexdigest()[:32]}"


def can_reuse_layers(options: Mapping[str, Any]) -> bool:
    """Whether builds with these options reuse layers: the classic builder would have to pull the whole image first."""
    return bool(options.get("cache")) and "network" not in options


class BuildRun:
    """One build of an image, from its start to its end.

    An active build of an earlier `pulumi up` is found by its tag, and a new one may reuse layers of the last image.
    `options` are those of `ImageBuild.request`. `report` is called with lines of progress. `wait` waits for seconds and
    returns whether the run is to be cancelled.
    """

    def __init__(
        self,
        client: BuildClient,
        build: ImageBuild,
        options: Mapping[str, Any],
        report: Report,
        wait: Callable[[float], bool] = wait_for_cancellation,
    ) -> None:
        self._client, self._build, self._options = client, build, options
        self._report, self._wait = report, wait
        self._image, self._parent = build.tagged_uri, options["parent"]

    def start(self) -> Build:
        """Return the active build of the image, or start one. Raises BuildFailed."""
        try:
            builds = self._list()
            if build := self._active(builds):
                self._report(f"waits for build {build['id']}, which an earlier run has started")
                return build
            cache_image = newest_image(builds, self._image) if can_reuse_layers(self._options) else None
            if cache_image:
                self._report(f"reuses layers of {cache_image}, if it still exists")
            return self._client.create(
                self._parent,
                replace(self._build, cache_image=cache_image).request(self._options),
                check_before=lambda: require_alive(self._image),
                find_created=lambda: self._active(self._list()),
            )
        except VertexError as error:
            raise self._refused(error) from error

    def wait(self, build: Build, log: BuildLog, report_lines: Callable[[Iterable[str]], object]) -> Build:
        """Return a build in its terminal state, and pass on new lines of its log until then.

        Raises BuildFailed after Ctrl-C, or if the state stays unknown.
        """
        name, pause = self._name(build), FIRST_PAUSE_SECONDS
        while build["status"] in ACTIVE_STATUSES:
            require_alive(self._image)
            if self._wait(pause):
                self._cancel(build)
            pause = min(pause * 1.5, MAX_PAUSE_SECONDS)
            try:
                build = self._client.get(name)
            except Interrupted:
                self._cancel(build)
            except (Unavailable, RateLimited) as error:  # the client has tried for minutes
                message = f"{self._image}: the state of build {build['id']} is unknown, and it goes on: {error}"
                raise BuildFailed(f"{message}; run `pulumi up` again to wait on") from error
            except VertexError as error:
                raise self._refused(error) from error
            report_lines(log.new_lines(is_last_read=build["status"] not in ACTIVE_STATUSES))
        return build

    def _list(self) -> Sequence[Build]:
        """Return the builds of all tags of the image, the newest first."""
        return self._client.list(self._parent, build_tag(repository(self._image)))

    def _active(self, builds: Iterable[Build]) -> Build | None:
        tag = build_tag(self._image)
        return next(
            (each for each in builds if each["status"] in ACTIVE_STATUSES and tag in each.get("tags", [])), None
        )

    def _refused(self, error: VertexError) -> BuildFailed:
        reason = refusal(error, self._options["serviceAccount"], self._options.get("pool", ""))
        return BuildFailed(f"{self._image}: {reason}")

    def _cancel(self, build: Build) -> NoReturn:
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


def newest_image(builds: Iterable[Build], tagged_uri: str) -> str | None:
    """Return the image that the newest successful build has pushed to the repository of an image, with its tag.

    `builds` are the newest first. The image itself does not count: it is built because the registry lacks it.
    """
    images = (image for build in builds for image in built_images(build))
    return next(
        (image for image in images if repository(image) == repository(tagged_uri) and image != tagged_uri), None
    )


def built_images(build: Build) -> dict[str, str]:
    """Return the images that a build reports, with their tags, and the digest of each."""
    images = build.get("results", {}).get("images", []) if build["status"] == "SUCCESS" else []
    return {str(image["name"]): str(image.get("digest", "")) for image in images}
