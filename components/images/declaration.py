"""What a declaration of an image says: where the image comes from, the rules for it, who builds it, its base images."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import pulumi

from vertex_api.names import location_name
from vertex_api.scalars import quote
from vertex_api.validation.formats import IMAGE, Violation

from ..errors import BuilderUnusable, ContextUnusable, FileNameUnusable
from ..schema import interpolation, shapes
from ..schema.source import explain_outside
from . import autopackage, builders, dockerfile
from .context import BuildContext, included
from .dockerfile import Dockerfile

_SECRET_ID = re.compile(r"[A-Za-z0-9_.-]+")
_OPTIONS: Mapping[str, frozenset[str]] = {
    "context": frozenset({"dockerfile", "target", "buildArgs", "platform", "secrets", "builder"}),
    "package": frozenset({"platform", "builder"}),
    "uri": frozenset(),
    "stack": frozenset(),
}
"""The keys that say where an image comes from, each with the keys that may stand beside it."""
_ARCHITECTURES = ("amd64", "x86_64", "x86-64", "arm64", "aarch64", "arm", "386", "ppc64le", "s390x", "riscv64")
_PLATFORM = re.compile(rf"(?:linux/)?(?:{'|'.join(_ARCHITECTURES)})(?:/v\d+)?")
"""Common platforms, as Docker takes them (containerd, `platforms`). Others are refused only where one is close."""
_MACHINE_KEYS = frozenset({"machineType", "pool"})
"""Of which an image's one replaces the stack's other."""


def is_built_here(image: shapes.Image) -> bool:
    """Whether this stack builds a declared image."""
    return "context" in image or "package" in image


def built_violations(root: Path, image: shapes.Image) -> Iterator[Violation]:
    """Find what keeps an image that a program makes from being built. Its files may be anywhere."""
    yield from _key_violations(image)
    if elsewhere := [key for key in ("uri", "stack") if key in image]:
        yield (elsewhere[0],), "names an image that is built elsewhere; give it to the job as its imageUri"
    folder = image.get("context", image.get("package", {}).get("path", "."))
    if not (root / folder).is_dir():
        yield ("context",) if "context" in image else ("package", "path"), f'"{folder}" is not a folder in {root.name}/'
    elif "context" in image:
        file = Path(folder, posixpath.normpath(image.get("dockerfile", "Dockerfile")))
        unusual = dockerfile.explain_unusual(root / file, str(file))
        yield from [(("dockerfile",), unusual)] if unusual else _content_violations(root, image)


def image_violations(root: Path, image: shapes.Image) -> Iterator[Violation]:
    """Find every rule that a declared image breaks; `root` is the project's folder."""
    yield from _key_violations(image)
    if len(origins := image.keys() & _OPTIONS.keys()) != 1:
        return
    (origin,) = origins
    if origin == "uri" and not interpolation.is_unresolved(image["uri"]) and not IMAGE.matches(image["uri"]):
        yield ("uri",), IMAGE.mismatch(image["uri"])
    elif origin == "context":
        misplaced = _folder_violations(root, ("context",), image["context"])
        misplaced = misplaced or [*_dockerfile_violations(root, image)]
        yield from misplaced or _content_violations(root, image)
        if not any(key == ("context",) for key, _ in misplaced):
            yield from _secret_violations(image)
    elif origin == "package":
        declared = image["package"]
        misplaced = _folder_violations(root, ("path",), declared["path"])
        try:
            for key, message in misplaced or autopackage.violations(root / declared["path"], declared):
                yield ("package", *key), message
        except FileNameUnusable as error:
            yield ("package", "path"), str(error)


def _key_violations(image: shapes.Image) -> Iterator[Violation]:
    """Find keys of which an image has none or too many."""
    origins = [key for key in _OPTIONS if key in image]
    if len(origins) != 1:
        sources = (
            "a context folder to build, a package, the uri of an image built elsewhere, or the stack that builds it"
        )
        yield (), f"needs exactly one of: {sources}"
        return
    (origin,) = origins
    platform = image.get("platform", "linux/amd64")
    meant = get_close_matches(platform, [f"linux/{each}" for each in _ARCHITECTURES], 1, 0.85)
    if meant and not _PLATFORM.fullmatch(platform):
        yield ("platform",), f"{quote(platform)} is no platform; did you mean {meant[0]}?"
    for option in sorted(image.keys() - {origin, "formerly"} - _OPTIONS[origin]):
        if origin == "package":
            yield (option,), "is for a Dockerfile of your own; a package's is generated, so leave this out"
        else:
            yield (option,), f"says how to build an image, but {origin} names one that is built elsewhere"


def _folder_violations(root: Path, key: tuple[str, ...], folder: str) -> list[Violation]:
    if Path(folder).is_absolute():
        return [(key, f'"{folder}" must be relative to the project\'s folder')]
    if message := explain_outside(root, folder):
        return [(key, message)]
    return [] if (root / folder).is_dir() else [(key, f'"{folder}" is not a folder in {root.name}/')]


def _dockerfile_violations(root: Path, image: shapes.Image) -> Iterator[Violation]:
    name = posixpath.normpath(image.get("dockerfile", "Dockerfile"))
    path = Path(image["context"], name)
    if posixpath.isabs(name) or name.split("/")[0] == "..":
        yield ("dockerfile",), f'"{name}" must be in the context, {image["context"]}'
    elif unusual := dockerfile.explain_unusual(root / path, str(path)):
        yield ("dockerfile",), unusual
    elif not (root / path).resolve().is_relative_to((root / image["context"]).resolve()):
        yield ("dockerfile",), f"{path} leads out of the context by a link; put the file there"


def _content_violations(root: Path, image: shapes.Image) -> Iterator[Violation]:
    """Find what no builder accepts in a Dockerfile, and names of files in the context that cannot be inputs."""
    name = posixpath.normpath(image.get("dockerfile", "Dockerfile"))
    try:
        files = included(root / image["context"], name)
    except FileNameUnusable as error:
        yield ("context",), str(error)
        return
    except ContextUnusable:  # told with the folder's resource
        return
    shown, is_other = posixpath.join(image["context"], name), "BUILDKIT_SYNTAX" in image.get("buildArgs", {})
    found = dockerfile.mistakes(root / image["context"], name, files, image.get("target"), image.get("buildArgs", {}))
    yield from ((("dockerfile",), f"{shown}{each}") for each in found if not is_other)


def _secret_violations(image: shapes.Image) -> Iterator[Violation]:
    secrets = image.get("secrets", {})
    for name in sorted(name for name in secrets if not _SECRET_ID.fullmatch(name)):
        # `docker buildx build --secret` takes a list of options with commas, in which `src` names any file.
        yield (
            ("secrets", name),
            f'"{name}" must be letters, digits, ".", "_" and "-"; give it another id',
        )
    for name in secrets.keys() - {str(path[0]) for path in interpolation.lone_paths(secrets)}:
        yield ("secrets", name), "must be ${secrets.NAME} and nothing else, so that no file contains its value"


def uses_cloud_build(stack_builder: Mapping[str, Any] | None, image: shapes.Image) -> bool:
    """Whether Cloud Build builds an image. `stack_builder` is the stack's key `builder`, if it has one."""
    return "cloudBuild" in image.get("builder", stack_builder or {})


def cloud_build_options(stack_options: Mapping[str, Any], image_options: shapes.CloudBuild) -> dict[str, Any]:
    """Return the options of an image's build: the image's own, and the stack's where it says nothing."""
    replaced = _MACHINE_KEYS if image_options.keys() & _MACHINE_KEYS else frozenset[str]()
    merged = {key: value for key, value in stack_options.items() if key not in replaced} | dict(image_options)
    secrets = {**stack_options.get("secrets", {}), **image_options.get("secrets", {})}
    return {**merged, **({"secrets": secrets} if secrets else {})}


def cloud_build_input(
    name: str, foundation_builder: Mapping[str, Any] | None, image: shapes.Image
) -> dict[str, Any] | None:
    """Return the input `builder` of an image; `None` if this machine builds it. Raises BuilderUnusable.

    `foundation_builder` is that of the foundation. Secrets of the stack become those of the image, by their ids.
    """
    if not uses_cloud_build(foundation_builder, image):
        return None
    if foundation_builder is None:
        raise BuilderUnusable(f"images.{name}: Cloud Build builds for a stack with vertex-training:builder.cloudBuild")
    options = cloud_build_options(foundation_builder["cloudBuild"], image.get("builder", {}).get("cloudBuild", {}))
    known, region, pool = options.pop("secrets", {}), options.pop("region"), options.get("pool")
    options["parent"] = location_name(options.pop("project"), pool_location(pool) if pool else region)
    versions = {}
    for id_, secret in build_secrets(image).items():
        if secret not in known:
            raise BuilderUnusable(f"images.{name}.secrets.{id_}: {missing_version(secret)}")
        versions[id_] = known[secret]
    return {"cloudBuild": {**options, **({"secrets": versions} if versions else {})}}


def pool_location(pool: str) -> str:
    """Return the location of a private pool, `projects/P/locations/L/workerPools/W`."""
    return pool.split("/")[3]


def build_secrets(image: shapes.Image) -> dict[str, str]:
    """Return the secrets of the stack by the ids of an image's build secrets: `token: ${secrets.hfToken}`."""
    secrets = {}
    for id_, text in sorted(image.get("secrets", {}).items()):
        references = [reference for _, reference in interpolation.references(text)]
        secrets[id_] = references[0].removeprefix("secrets.") if references else id_
    return secrets


def missing_version(secret: str) -> str:
    """Return why Cloud Build cannot read a secret of the stack, and what to write."""
    return (
        "Cloud Build reads secrets from Secret Manager alone; write "
        f"vertex-training:builder.cloudBuild.secrets.{secret}: projects/P/secrets/NAME/versions/N"
    )


def warn_unpinned(name: str, context: BuildContext, resource: pulumi.Resource) -> None:
    """Warn of base images that may change without a new tag of the image that is built from this context."""
    for line, base in unpinned_bases(context.dockerfile_text, context.build_args):
        pulumi.warn(
            f"{context.place(name, line)}: FROM {base} is not pinned: another build of the "
            f"same files may give another image; name its digest, {base}@sha256:…",
            resource,
        )


def warn_classic(name: str, context: BuildContext, resource: pulumi.Resource) -> None:
    """Warn of what this machine's Docker cannot build for want of BuildKit."""
    found = [*Dockerfile.parse(context.dockerfile_text).buildkit_only()]
    if not found or builders.has_plugin() or builders.cached_buildx():
        return
    line, text = found[0]
    if builders.can_get_buildx():
        outcome = "`pulumi up` installs or builds Docker's buildx first, which takes some minutes, once"
    else:
        outcome = f"Docker here has none, so this machine cannot build {name}: {builders.INSTALL_BUILDX}"
    pulumi.warn(f"{context.place(name, line)}: {text}. {outcome}", resource)


def unpinned_bases(dockerfile_text: str, build_args: Mapping[str, str]) -> list[tuple[int, str]]:
    """Return line number and name of each base image without a digest, except `scratch` and earlier stages."""
    return [
        (line, image)
        for line, image in Dockerfile.parse(dockerfile_text).bases(build_args)
        if image != "scratch" and "@sha256:" not in image
    ]
