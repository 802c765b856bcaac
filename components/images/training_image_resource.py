"""TrainingImage: an image whose tag is the digest of its content, built where no image has that tag yet."""

import os
import posixpath
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pulumi
from pulumi import dynamic

from ..cloud_build.build_request import get_uri_without_tag
from ..errors import BuildFailed, DockerUnavailable
from ..files.cached_digests import MAX_LISTED_FILES, get_short_digests_or_none_if_many
from ..runtime.foundation import Foundation
from ..runtime.provider import Provider
from ..runtime.resource import DynamicResource
from ..schema import shapes
from .build_context import BuildContext, DockerfileContext
from .builder_choice_and_options import create_cloud_build_input_or_none
from .buildx_and_classic_builders import get_buildx_or_classic_builder
from .cloud_build_image_builder import CloudBuilder
from .docker_push_and_digest_lookup import Daemon, get_image_store
from .google_registry_client import GoogleRegistryApi, is_in_google_registry
from .package_context import PackageContext

DEFAULT_PLATFORM = "linux/amd64"
"""What Vertex AI runs on; a laptop with another processor must not build for itself."""


_CONTENT_INPUTS = ("uri", "context", "package", "dockerfile", "buildArgs", "target", "platform", "files")
_BUILD_INPUTS = ("secrets", "builder")
"""What the tag does not depend on: the values of build secrets, and who builds."""


class TrainingImageProvider(Provider):
    """Builds and publishes images. Deletes none, because other stacks may run them."""

    input_names = (*_CONTENT_INPUTS, *_BUILD_INPUTS)

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.DiffResult:
        """Leave differences of the content to Pulumi. How an image was built does not matter once it is there."""
        is_same_content = all(olds.get(name) == news.get(name) for name in _CONTENT_INPUTS)
        return dynamic.DiffResult(changes=False if is_same_content else None)

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        return dynamic.CreateResult(get_uri_without_tag(props["uri"]), _build_image_if_missing_and_get_outputs(props))

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        digest = _fetch_digest_from_store_or_none(props)
        if digest is None:
            return dynamic.ReadResult(None, {})
        return self.read_result(id_, props, digest=digest)


class TrainingImage(DynamicResource, module="vertex", name="TrainingImage"):
    """An image built from a folder of the project, by its Dockerfile or as a `package`.

    `image` has the fields `context` (relative to the program's folder), and optionally `dockerfile` (relative to the
    context), `target`, `buildArgs`, `platform` and `secrets` (only their names count here); or `package` and optionally
    `platform`. `secrets` are the values by name. `builder` replaces the foundation's: Cloud Build, which takes secrets
    from Secret Manager and not from `secrets`, or this machine.

    `uri` is known in a preview: `<registry>/<name>:<digest of the build context>`. `digest` is the image's own,
    `sha256:…`, in its registry (in the daemon, for images that stay there).
    """

    output_names = ("uri", "digest")
    uri: pulumi.Output[str]
    digest: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        image: shapes.Image,
        *,
        foundation: Foundation,
        secrets: Mapping[str, pulumi.Input[str]] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        context = create_build_context(Path.cwd(), image)
        #: What the image is built from.
        self.build_context = context
        #: The URI as plain text, for code that needs it while the program runs.
        self.reference = f"{foundation.image_uri_prefix}/{name}:{context.tag}"
        foundation.program_jobs.built_image_names.add(get_uri_without_tag(self.reference))
        is_listed = context.entry_count <= MAX_LISTED_FILES
        props: dict[str, Any] = {
            "uri": self.reference,
            "context": os.path.relpath(context.folder),
            "package": image.get("package"),
            "dockerfile": context.dockerfile,
            "buildArgs": dict(context.build_args),
            "target": context.target,
            "platform": context.platform,
            "files": get_short_digests_or_none_if_many(context.digests_by_context_path) if is_listed else None,
            "digest": None,
        }
        if builder := create_cloud_build_input_or_none(name, foundation.image_builder_config, image):
            props["builder"] = builder
        elif secrets:
            props["secrets"] = pulumi.Output.secret(dict(secrets))
        defaults = pulumi.ResourceOptions(depends_on=[*foundation.image_dependencies])
        super().__init__(TrainingImageProvider(), name, props, pulumi.ResourceOptions.merge(defaults, opts))


def is_built_by_this_stack(image: shapes.Image) -> bool:
    """Whether this stack builds a declared image."""
    return "context" in image or "package" in image


def create_build_context(root: Path, image: Mapping[str, Any]) -> BuildContext:
    """Return the build context of a declared image or a TrainingImage's inputs, whose paths are relative to `root`."""
    platform = image.get("platform") or DEFAULT_PLATFORM
    if package := image.get("package"):
        return PackageContext(root / package["path"], "Dockerfile", {}, None, platform, package=package)
    return DockerfileContext(
        folder=root / image["context"],
        dockerfile=posixpath.normpath(image.get("dockerfile") or "Dockerfile"),
        build_args=image.get("buildArgs") or {},
        target=image.get("target"),
        platform=platform,
        secret_ids=tuple(sorted(image.get("secrets") or {})),
    )


def _build_image_if_missing_and_get_outputs(props: dict[str, Any]) -> dict[str, Any]:
    """Build and publish an image unless its store has it, and return the outputs."""
    uri = props["uri"]
    digest = _fetch_digest_from_store_or_none(props)
    if digest is None:
        report = partial(print, f"{posixpath.basename(get_uri_without_tag(uri))}:", flush=True)
        if builder := props.get("builder"):
            context = _require_unchanged_context(props)
            digest = CloudBuilder(builder["cloudBuild"]).build_push_and_get_digest(context, uri, report)
        else:
            # If it was built before and its push failed, the daemon has it.
            if Daemon().get_digest_or_none(uri) is None:
                context, secrets = _require_unchanged_context(props), props.get("secrets") or {}
                get_buildx_or_classic_builder().build_and_load(context, uri, secrets, report)
            digest = get_image_store(uri).publish_and_get_digest(uri, report)
    return {**props, "digest": digest}


def _fetch_digest_from_store_or_none(props: Mapping[str, Any]) -> str | None:
    """Return the digest that an image's store has for it, `None` if it has none.

    Of a registry of Google's without Docker if Cloud Build builds the image, or if there is no Docker: what a state
    records may have been built by another machine.
    """
    uri = props["uri"]
    if props.get("builder"):
        return GoogleRegistryApi().get_digest_or_none(uri)
    try:
        return get_image_store(uri).get_digest_or_none(uri)
    except DockerUnavailable:
        if not is_in_google_registry(uri):
            raise
        return GoogleRegistryApi().get_digest_or_none(uri)


def _require_unchanged_context(props: dict[str, Any]) -> BuildContext:
    cloud_build = (props.get("builder") or {}).get("cloudBuild", {})
    secrets_by_id = cloud_build.get("secrets", {}) or props.get("secrets")
    context = create_build_context(Path.cwd(), {**props, "secrets": secrets_by_id})
    if not props["uri"].endswith(f":{context.tag}"):
        raise BuildFailed(
            f'{props["uri"]}: the files in "{props["context"]}" changed since the preview; run `pulumi up` again'
        )
    return context
