"""What a declared image must be, beside its shape: one origin, and files that are there."""

import posixpath
from collections.abc import Iterator
from pathlib import Path

from components import package_context, references, shapes
from vertex.rules import Finding

_ORIGINS = ("context", "package", "uri", "stack")
_BESIDE = {"context": {"dockerfile", "target", "buildArgs", "platform", "secrets"}, "package": {"platform"}}
"""What else an image that is built may say."""


def broken(image: shapes.Image, root: Path) -> Iterator[Finding]:
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
    if origin == "context":
        yield from _misplaced(root, ("context",), image["context"]) or _of_a_context(image, root)
    elif origin == "package":
        package = image["package"]
        found = _misplaced(root, ("path",), package["path"]) or package_context.problems(root, package)
        yield from ((("package", *path), message) for path, message in found)


def _misplaced(root: Path, key: tuple[str, ...], folder: str) -> list[Finding]:
    if Path(folder).is_absolute():
        return [(key, f'"{folder}" must be relative to the project\'s folder')]
    return [] if (root / folder).is_dir() else [(key, f'"{folder}" is not a folder in {root.name}/')]


def _of_a_context(image: shapes.Image, root: Path) -> Iterator[Finding]:
    named = posixpath.normpath(image.get("dockerfile", "Dockerfile"))
    dockerfile = Path(image["context"], named)
    if posixpath.isabs(named) or named.split("/")[0] == "..":
        yield ("dockerfile",), f'"{named}" must lie in the context, {image["context"]}'
    elif not (root / dockerfile).is_file():
        yield ("dockerfile",), f"there is no {dockerfile}; write one, or name another with dockerfile"
    secrets = image.get("secrets", {})
    for name in secrets.keys() - {str(path[0]) for path in references.alone(secrets)}:
        yield ("secrets", name), "must be ${secrets.NAME} and nothing else, so that its value stands in no file"
