"""TrainingImage: an image whose tag is the digest of its content, built where no image has that tag yet."""

import os
import posixpath
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pulumi
from pulumi import dynamic

from vertex_api.names import join_names

from .. import files, providers
from ..errors import BuildFailed, DockerUnavailable, FileNameUnusable
from ..plan.arguments import checked, read_arguments
from ..plan.programmed import Foundation, default_foundation
from ..plan.training import place
from ..runtime.resource import DynamicResource, Provider, formerly
from ..schema import shapes
from ..schema.formats import image_name_problem
from . import builders, registry
from .autopackage import PackageContext
from .cloud_build import CloudBuilder
from .context import BuildContext, DockerfileContext
from .declaration import built_violations, cloud_build_input

TrainingImageArgs = shapes.Image
"""The keys of an image, as a TypedDict; docs/configuration.md#images describes them."""

DEFAULT_PLATFORM = "linux/amd64"
"""What Vertex AI runs on; a laptop with another processor must not build for itself."""
_CONTENT_INPUTS = ("uri", "context", "package", "dockerfile", "buildArgs", "target", "platform", "files")
_BUILD_INPUTS = ("secrets", "builder")
"""What the tag does not depend on: the values of build secrets, and who builds."""


class TrainingImageProvider(Provider):
    """Builds and publishes images. Deletes none, because other stacks may run them."""

    input_names = (*_CONTENT_INPUTS, *_BUILD_INPUTS)

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.DiffResult:
        """Leave differences of the content to Pulumi. How an image was built does not matter once it is there.

        Prints which files differ: without `--diff`, Pulumi names the input alone.
        """
        is_same_content = all(olds.get(name) == news.get(name) for name in _CONTENT_INPUTS)
        if changes := _file_changes(olds.get("files") or {}, news.get("files") or {}):
            print(f"{posixpath.basename(registry.repository(news['uri']))}: {changes}", flush=True)  # noqa: T201
        return dynamic.DiffResult(changes=False if is_same_content else None)

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        digest = _published_digest(props) or _build(props)
        return dynamic.CreateResult(registry.repository(props["uri"]), {**props, "digest": digest})

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        digest = _published_digest(props)
        if digest is None:
            return dynamic.ReadResult(None, {})
        return self.read_result(id_, props, digest=digest)


class TrainingImage(DynamicResource):
    """An image built from a folder of the project, by its Dockerfile or as a `package`.

        image = TrainingImage("trainer", {"context": "trainer"})

    - `args`: either a `context` or a `package`, relative to the program's folder, and what else an image may have
      (`TrainingImageArgs`). Of `secrets`, only the names count here. An image that exists needs no TrainingImage.
    - `opts`: Pulumi's options. Let jobs depend on the image that they run.
    - `foundation`: which registry it goes to, and what builds it; by default as for `CustomJob`.
    - `secrets`: the values of build secrets by name, for builds on this machine; encrypted in the state.

    Outputs: `uri`, known in a preview, and `digest`; `reference` is the `uri` as plain text.

    Errors: `errors.DeclarationErrors` for wrong arguments, and `errors.ContextUnusable` if the folder cannot be read,
    both already in a preview. `pulumi up` fails with `errors.BuildFailed` and the end of the build's log, or says that
    Docker or the registry does not answer.
    """

    output_names = ("uri", "digest")
    uri: pulumi.Output[str]
    """Where the image is: `REGISTRY/NAME:TAG`. The tag is a digest of the build context."""
    digest: pulumi.Output[str]
    """The image's own digest, `sha256:…`, in its registry; for an image that stays on this machine, in Docker."""
    reference: str
    """The `uri` as plain text, for code that needs it while the program runs."""
    build_context: BuildContext
    """The files that the image is built from, and what is done with them."""

    @checked
    def __init__(
        self,
        name: str,
        args: TrainingImageArgs,
        opts: pulumi.ResourceOptions | None = None,
        *,
        foundation: Foundation | None = None,
        secrets: Mapping[str, pulumi.Input[str]] | None = None,
    ) -> None:
        rules = partial(built_violations, Path.cwd())
        at = place(f'TrainingImage "{name}"')
        args = read_arguments(args, at, rules, TrainingImageArgs, image_name_problem(name))
        foundation = foundation or default_foundation()
        context = build_context(Path.cwd(), args)
        self.build_context = context
        try:
            self.reference = f"{foundation.image_uri_prefix}/{name}:{context.tag}"
        except FileNameUnusable as error:
            raise FileNameUnusable(f'TrainingImage "{name}": {error}') from None
        foundation.program.built.add(registry.repository(self.reference))
        foundation.program.images.add(self.reference)
        is_listed = context.entry_count <= files.MAX_LISTED_FILES
        props: dict[str, Any] = {
            "uri": self.reference,
            "context": os.path.relpath(context.folder),
            "package": args.get("package"),
            "dockerfile": context.dockerfile,
            "buildArgs": dict(context.build_args),
            "target": context.target,
            "platform": context.platform,
            "files": files.listed(context.digests) if is_listed else None,
            "digest": None,
        }
        if builder := cloud_build_input(name, foundation.image_builder_config, args):
            props["builder"] = builder
        elif secrets:
            props["secrets"] = pulumi.Output.secret(dict(secrets))
        defaults = pulumi.ResourceOptions(depends_on=[*foundation.image_dependencies])
        options = pulumi.ResourceOptions.merge(formerly(defaults, name, args.get("formerly", [])), opts)
        super().__init__(providers.TrainingImage(), name, props, options)


def build_context(root: Path, image: Mapping[str, Any]) -> BuildContext:
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


def _file_changes(old: Mapping[str, str], new: Mapping[str, str]) -> str:
    """Return which files differ, as `a.py, b.py changed, c.py added`; "" if none is listed before or now."""
    if not (old and new):
        return ""
    by_verb = {
        "changed": [file for file in new if old.get(file, new[file]) != new[file]],
        "added": new.keys() - old.keys(),
        "removed": old.keys() - new.keys(),
    }
    return ", ".join(f"{join_names(sorted(names))} {verb}" for verb, names in by_verb.items() if names)


def _published_digest(props: Mapping[str, Any]) -> str | None:
    """Return the digest that the image has where it is kept, `None` if it is not there.

    A registry of Google's is asked without Docker if Cloud Build builds the image, or if there is no Docker: what a
    state records may have been built by another machine.
    """
    uri = props["uri"]
    if props.get("builder"):
        return registry.GoogleRegistry().digest(uri)
    try:
        return registry.store(uri).digest(uri)
    except DockerUnavailable:
        if not registry.is_google(uri):
            raise
        return registry.GoogleRegistry().digest(uri)


def _build(props: dict[str, Any]) -> str:
    """Build and publish an image, and return its digest."""
    uri = props["uri"]
    report = partial(print, f"{posixpath.basename(registry.repository(uri))}:", flush=True)
    if builder := props.get("builder"):
        return CloudBuilder(builder["cloudBuild"]).build(_unchanged_context(props), uri, report)
    # If it was built before and its push failed, the daemon has it.
    if registry.Daemon().digest(uri) is None:
        context = _unchanged_context(props)
        builders.build(context, uri, props.get("secrets") or {}, report)
    return registry.store(uri).publish(uri, report)


def _unchanged_context(props: dict[str, Any]) -> BuildContext:
    """Return the build context of a TrainingImage's inputs. Raises BuildFailed if its files changed since."""
    cloud_build = (props.get("builder") or {}).get("cloudBuild", {})
    secrets = cloud_build.get("secrets", {}) or props.get("secrets")
    context = build_context(Path.cwd(), {**props, "secrets": secrets})
    if not props["uri"].endswith(f":{context.tag}"):
        raise BuildFailed(
            f'{props["uri"]}: the files in "{props["context"]}" changed since the preview; run `pulumi up` again'
        )
    return context
