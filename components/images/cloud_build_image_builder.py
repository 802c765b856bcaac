"""CloudBuilder: builds and pushes an image in Cloud Build, from a source archive in the staging bucket."""

import gzip
import posixpath
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import IO, Any

from vertex_api.calls.retry_rules import PROPAGATION_SECONDS

from ..cloud_build.build_and_log_client import Build, get_client
from ..cloud_build.build_log import BuildLog
from ..cloud_build.build_request import CONTEXT_FOLDER, ImageBuild
from ..cloud_build.build_run import BuildRun, get_built_digest_or_none
from ..cloud_build.failure_explanations import (
    explain_failed_build,
    explain_unknown_instruction,
    has_failed_in_dockerfile,
    has_failed_in_step,
    may_have_failed_for_new_grant,
)
from ..errors import BuildFailed, ContextUnusable
from ..files.reproducible_tar_archives import ArchiveEntries
from ..runtime.engine import wait_for_cancellation
from ..runtime.storage import CloudStorage
from .build_context import BuildContext
from .buildx_and_classic_builders import (
    MAX_QUOTED_LINES,
    Report,
    create_build_failed_error,
    iterate_lines_and_report_steps,
)
from .google_registry_client import GoogleRegistryApi

_NEW_GRANT_PAUSES = (10.0, 20.0, 40.0, *[60.0] * 6, PROPAGATION_SECONDS - 430.0)
"""Seconds before a build is started again that found none of the grants of a new account: `PROPAGATION_SECONDS` in all,
with a line of progress at least once a minute."""


class CloudBuilder:
    """A builder of images for a registry of Google's. `options` are the input `builder.cloudBuild` of an image."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options

    def build_push_and_get_digest(self, context: BuildContext, tagged_uri: str, report: Report) -> str:
        """Build and push an image, and return its digest. Raises ComponentError."""
        source_uri = f"{self._options['sourceFolder']}/{context.digest}.tar.gz"
        entries, dockerfile = create_source_entries_and_dockerfile_path(context)
        build = ImageBuild(
            tagged_uri=tagged_uri,
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
            build = replace(build, source_generation=_upload_source(source_uri, entries, report))
            ended, log = self._run_build_and_get_ended_build_and_log(build, report)
            lines = log.read_last_lines_until_stable(MAX_QUOTED_LINES) if has_failed_in_step(ended) else []
            if pause is None or not may_have_failed_for_new_grant(ended, lines):
                break
            report(f"{explain_failed_build(ended, lines)}; trying again in {pause:.0f} s")
            if wait_for_cancellation(pause):
                break
        if has_failed_in_dockerfile(ended, lines):
            if lines:
                raise create_build_failed_error(tagged_uri, lines, explain_unknown_instruction(lines))
            raise BuildFailed(f"{tagged_uri} cannot be built; its log says why: {ended.get('logUrl')}")
        # If tags are immutable, someone else may have pushed this image first.
        if digest := get_built_digest_or_none(ended, tagged_uri) or GoogleRegistryApi().get_digest_or_none(tagged_uri):
            return digest
        raise BuildFailed(f"{tagged_uri}: {explain_failed_build(ended, lines)} ({ended.get('logUrl')})")

    def _run_build_and_get_ended_build_and_log(self, build: ImageBuild, report: Report) -> tuple[Build, BuildLog]:
        """Return a build that has ended, and its log."""
        client, project = get_client(), self._options["parent"].split("/")[1]
        run = BuildRun(client, build, self._options, report)
        started = run.find_active_or_start_build()
        report(f"builds in Cloud Build: {started.get('logUrl', started['id'])}")
        log = BuildLog(client, project, started["id"], report, wait_for_cancellation)
        return run.wait_for_end_or_cancel(
            started, log, lambda lines: list(iterate_lines_and_report_steps(lines, report))
        ), log


def create_source_entries_and_dockerfile_path(context: BuildContext) -> tuple[ArchiveEntries, str]:
    """Return what the source archive holds, and the Dockerfile's path in it. Raises ContextUnusable.

    A Dockerfile that `.dockerignore` excludes is beside the context's folder, so that no `COPY` sees it.
    """
    files = {posixpath.join(CONTEXT_FOLDER, path): file for path, file in context.files_by_context_path.items()}
    texts = {
        posixpath.join(CONTEXT_FOLDER, path): text for path, text in context.generated_texts_by_context_path.items()
    }
    dockerfile = posixpath.join(CONTEXT_FOLDER, context.dockerfile)
    if context.is_dockerfile_ignored:
        if (context.folder / context.dockerfile).is_symlink():
            raise ContextUnusable(
                f"{context.folder / context.dockerfile} is a link that .dockerignore excludes, which Cloud Build "
                f'cannot follow; include it by a line "!{context.dockerfile}" in .dockerignore'
            )
        files["Dockerfile"] = files.pop(dockerfile)
        dockerfile = "Dockerfile"
    return ArchiveEntries(context.folder, files, texts), dockerfile


def _upload_source(source_uri: str, entries: ArchiveEntries, report: Report) -> str:
    """Make an object of Cloud Storage have the archive, and return the generation that has it."""
    with _open_compressed_archive(entries) as archive:
        stored = CloudStorage().put(source_uri, archive)
    if stored.is_new:
        report(f"sent {len(entries.digests_by_path)} files to {source_uri}")
    return stored.generation


@contextmanager
def _open_compressed_archive(entries: ArchiveEntries) -> Iterator[IO[bytes]]:
    with tempfile.TemporaryFile() as file:
        with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as compressed:
            entries.write_tar(compressed)
        file.seek(0)
        yield file
