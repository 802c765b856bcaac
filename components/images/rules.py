"""What a declared image must be, beside its shape: one origin, and files that are there."""

import posixpath
from collections.abc import Container, Iterator
from pathlib import Path

from vertex_api.validation.canonical import CanonicalSpec
from vertex_api.validation.rules import KeyPath, Violation
from vertex_api.validation.rules.text_formats import IMAGE
from vertex_api.validation.shape import get_value_at

from ..schema import references, shapes
from . import package_context

_ORIGINS = ("context", "package", "uri", "stack")
_BESIDE = {"context": {"dockerfile", "target", "buildArgs", "platform", "secrets"}, "package": {"platform"}}
"""What else an image that is built may say."""


def broken(image: shapes.Image, root: Path) -> Iterator[Violation]:
    """Every rule that a declared image breaks; `root` is the project's folder."""
    origins = [name for name in _ORIGINS if name in image]
    if len(origins) != 1:
        yield (
            (),
            "needs either a context folder to build, a package, the uri of an image built elsewhere, or the stack that "
            "builds it",
        )
        return
    (origin,) = origins
    for name in sorted(image.keys() - {origin} - _BESIDE.get(origin, set())):
        if origin == "package":
            yield (name,), "is for a Dockerfile of your own; a package's is written for it, so leave this out"
        else:
            yield (name,), f"says how to build an image, but {origin} names one that is built elsewhere"
    if origin == "uri" and not references.is_open(image["uri"]) and not IMAGE.matches(image["uri"]):
        yield ("uri",), IMAGE.mismatch_text(image["uri"])
    elif origin == "context":
        yield from _misplaced(root, ("context",), image["context"]) or _of_a_context(image, root)
    elif origin == "package":
        package = image["package"]
        found = _misplaced(root, ("path",), package["path"]) or package_context.problems(root, package)
        yield from ((("package", *path), message) for path, message in found)


def unmarked(spec: CanonicalSpec, images: Container[str]) -> Iterator[Violation]:
    """Where a canonical job has the name of a declared image, and not a reference to it."""
    at = spec.job_spec_path
    pools = range(len(spec.job_spec["workerPoolSpecs"]))
    tasks = (("containerSpec", "imageUri"), ("pythonPackageSpec", "executorImageUri"))
    places: list[KeyPath] = [(*at, "workerPoolSpecs", index, *task) for index in pools for task in tasks]
    for path in (*places, ("modelToUpload", "containerSpec", "imageUri")):
        uri = get_value_at(spec.fields, path) or ""
        name = uri.removeprefix("images.")
        if name in images:
            yield (
                path,
                f'"{uri}" is a declared image: write ${{images.{name}}}; one of a registry has a tag, {name}:latest',
            )


def _misplaced(root: Path, key: tuple[str, ...], folder: str) -> list[Violation]:
    if Path(folder).is_absolute():
        return [(key, f'"{folder}" must be relative to the project\'s folder')]
    return [] if (root / folder).is_dir() else [(key, f'"{folder}" is not a folder in {root.name}/')]


def _of_a_context(image: shapes.Image, root: Path) -> Iterator[Violation]:
    named = posixpath.normpath(image.get("dockerfile", "Dockerfile"))
    dockerfile = Path(image["context"], named)
    if posixpath.isabs(named) or named.split("/")[0] == "..":
        yield ("dockerfile",), f'"{named}" must lie in the context, {image["context"]}'
    elif not (root / dockerfile).is_file():
        yield ("dockerfile",), f"there is no {dockerfile}; write one, or name another with dockerfile"
    secrets = image.get("secrets", {})
    for name in secrets.keys() - {str(path[0]) for path in references.alone(secrets)}:
        yield ("secrets", name), "must be ${secrets.NAME} and nothing else, so that its value stands in no file"
