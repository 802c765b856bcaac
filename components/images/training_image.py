"""TrainingImage: an image whose tag is the digest of its content, built where no image has that tag yet."""

import posixpath
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pulumi
from pulumi import dynamic

from ..errors import BuildFailed
from ..files.content_digests import MAX_LISTED_FILES, short_digests
from ..runtime.engine import Provider
from ..runtime.foundation import Foundation
from ..schema import shapes
from . import builder
from . import store as image_store
from .context import BuildContext
from .package_context import PackageContext

PLATFORM = "linux/amd64"
"""What Vertex AI runs on; laptops with another processor must not build for themselves."""

_INPUTS = ("uri", "context", "package", "dockerfile", "buildArgs", "target", "platform", "secrets", "files")


class TrainingImageProvider(Provider):
    """Builds images; deleting one leaves it alone, for other stacks may run it."""

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        return dynamic.CreateResult(_repository(props["uri"]), _built(props))

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        return dynamic.UpdateResult(_built(news))

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        found = image_store.store_of(props["uri"]).find(props["uri"])
        if found is None:
            return dynamic.ReadResult(None, {})
        inputs = {name: props[name] for name in _INPUTS if name in props}
        return dynamic.ReadResult(id_, {**inputs, "digest": found}, inputs)

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        return None


class TrainingImage(dynamic.Resource, module="vertex", name="TrainingImage"):
    """An image built from a folder of the project, by its Dockerfile or as a `package`.

    `uri` is known in a preview: `<registry>/<name>:<digest of what it is built from>`. `digest` is that of the image,
    `sha256:…`, as its registry has it (as the daemon has it, for images that stay there). `image` has the fields
    `context` (relative to the program's folder), and optionally `dockerfile` (relative to the context), `target`,
    `buildArgs`, `platform` and `secrets` (only their names count here); or `package` and optionally `platform`.
    `secrets` has the values by name.
    """

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
        context = build_context(Path.cwd(), image)
        #: The URI as plain text, for what needs it while the program runs.
        self.reference = f"{foundation.registry}/{name}:{context.tag}"
        props: dict[str, Any] = {
            "uri": self.reference,
            "context": posixpath.normpath(image["package"]["path"] if "package" in image else image["context"]),
            "package": image.get("package"),
            "dockerfile": context.dockerfile,
            "buildArgs": dict(context.build_args),
            "target": context.target,
            "platform": context.platform,
            "files": short_digests(context.files) if context.count <= MAX_LISTED_FILES else None,
            "digest": None,
        }
        if secrets:
            props["secrets"] = pulumi.Output.secret(dict(secrets))
        ours = pulumi.ResourceOptions(depends_on=[*foundation.for_images])
        super().__init__(TrainingImageProvider(), name, props, pulumi.ResourceOptions.merge(ours, opts))


def build_context(root: Path, image: Mapping[str, Any]) -> BuildContext:
    """The context that a declared image is built from."""
    if image.get("package"):
        return PackageContext.of(root, image["package"], image.get("platform") or PLATFORM)
    return BuildContext(
        folder=root / image["context"],
        dockerfile=posixpath.normpath(image.get("dockerfile") or "Dockerfile"),
        build_args=image.get("buildArgs") or {},
        target=image.get("target"),
        platform=image.get("platform") or PLATFORM,
        secret_ids=tuple(sorted(image.get("secrets") or {})),
    )


def _built(props: dict[str, Any]) -> dict[str, Any]:
    uri = props["uri"]
    store = image_store.store_of(uri)
    digest = store.find(uri)
    if digest is None:
        name = posixpath.basename(_repository(uri))

        def report(line: str) -> None:
            print(f"{name}: {line}", flush=True)  # noqa: T201

        # The daemon has it when it was built before and its push did not end.
        if image_store.Daemon().find(uri) is None:
            _build(props, report)
        digest = store.keep(uri, report)
    return {**props, "digest": digest}


def _build(props: dict[str, Any], report: builder.Report) -> None:
    context = build_context(Path.cwd(), props)
    if not props["uri"].endswith(f":{context.tag}"):
        raise BuildFailed(
            f'{props["uri"]}: the files in "{props["context"]}" changed since the preview; run `pulumi up` again'
        )
    builder.builder().build(context, props["uri"], props.get("secrets") or {}, report)


def _repository(uri: str) -> str:
    """The URI without its tag, which stays the same from build to build."""
    return uri.rpartition(":")[0]
