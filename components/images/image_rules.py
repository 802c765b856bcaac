"""The rules that declarations of images must follow, whatever an image is made from."""

import posixpath
import re
from collections.abc import Container, Iterator, Mapping
from pathlib import Path

from vertex_api.validation.canonical_spec import CanonicalSpec
from vertex_api.validation.rules import KeyPath, Violation
from vertex_api.validation.rules.text_formats import IMAGE
from vertex_api.validation.shape_validation import get_value_at_path_or_none

from ..schema import interpolation, shapes
from ..schema.source import explain_outside
from .image_package_rules import find_package_violations

_SECRET_ID = re.compile(r"[A-Za-z0-9_.-]+")
_OPTIONS: Mapping[str, frozenset[str]] = {
    "context": frozenset({"dockerfile", "target", "buildArgs", "platform", "secrets", "builder"}),
    "package": frozenset({"platform", "builder"}),
    "uri": frozenset(),
    "stack": frozenset(),
}
"""The keys that say where an image comes from, each with the keys that may stand beside it."""


def find_image_violations(root: Path, image: shapes.Image) -> Iterator[Violation]:
    """Find every rule that a declared image breaks; `root` is the project's folder."""
    origins = [key for key in _OPTIONS if key in image]
    if len(origins) != 1:
        sources = (
            "a context folder to build, a package, the uri of an image built elsewhere, or the stack that builds it"
        )
        yield (), f"needs exactly one of: {sources}"
        return
    (origin,) = origins
    for option in sorted(image.keys() - {origin} - _OPTIONS[origin]):
        if origin == "package":
            yield (option,), "is for a Dockerfile of your own; a package's is generated, so leave this out"
        else:
            yield (option,), f"says how to build an image, but {origin} names one that is built elsewhere"
    if origin == "uri" and not interpolation.is_unresolved(image["uri"]) and not IMAGE.matches(image["uri"]):
        yield ("uri",), IMAGE.build_mismatch_message(image["uri"])
    elif origin == "context":
        folder_violations = _find_folder_violations(root, ("context",), image["context"])
        yield from folder_violations or _find_dockerfile_and_secret_violations(root, image)
    elif origin == "package":
        package = image["package"]
        folder_violations = _find_folder_violations(root, ("path",), package["path"])
        for key, message in folder_violations or find_package_violations(root / package["path"], package):
            yield ("package", *key), message


def find_bare_image_name_violations(spec: CanonicalSpec, image_names: Container[str]) -> Iterator[Violation]:
    """Find where a canonical job has the name of a declared image instead of a reference to it."""
    paths: list[KeyPath] = [("modelToUpload", "containerSpec", "imageUri")]
    for index in range(len(spec.job_spec["workerPoolSpecs"])):
        pool = (*spec.job_spec_path, "workerPoolSpecs", index)
        paths += [(*pool, "containerSpec", "imageUri"), (*pool, "pythonPackageSpec", "executorImageUri")]
    for path in paths:
        uri = get_value_at_path_or_none(spec.fields, path) or ""
        name = uri.removeprefix("images.")
        if name in image_names:
            remedy = f"write ${{images.{name}}}; for an image in a registry, write its tag, {name}:latest"
            yield path, f'"{uri}" is a declared image: {remedy}'


def _find_folder_violations(root: Path, key: tuple[str, ...], folder: str) -> list[Violation]:
    if Path(folder).is_absolute():
        return [(key, f'"{folder}" must be relative to the project\'s folder')]
    if message := explain_outside(root, folder):
        return [(key, message)]
    return [] if (root / folder).is_dir() else [(key, f'"{folder}" is not a folder in {root.name}/')]


def _find_dockerfile_and_secret_violations(root: Path, image: shapes.Image) -> Iterator[Violation]:
    dockerfile = posixpath.normpath(image.get("dockerfile", "Dockerfile"))
    path = Path(image["context"], dockerfile)
    if posixpath.isabs(dockerfile) or dockerfile.split("/")[0] == "..":
        yield ("dockerfile",), f'"{dockerfile}" must be in the context, {image["context"]}'
    elif not (root / path).is_file():
        yield ("dockerfile",), f"there is no {path}; write one, or name another with dockerfile"
    elif not (root / path).resolve().is_relative_to((root / image["context"]).resolve()):
        yield ("dockerfile",), f"{path} leads out of the context by a link; put the file there"
    secrets = image.get("secrets", {})
    for name in sorted(name for name in secrets if not _SECRET_ID.fullmatch(name)):
        # `docker buildx build --secret` takes a list of options with commas, in which `src` names any file.
        yield (
            ("secrets", name),
            f'"{name}" must be letters, digits, ".", "_" and "-"; give it another id',
        )
    for name in secrets.keys() - {str(path[0]) for path in interpolation.lone_paths(secrets)}:
        yield ("secrets", name), "must be ${secrets.NAME} and nothing else, so that no file contains its value"
