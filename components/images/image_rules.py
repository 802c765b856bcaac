"""The rules that declarations of images, and of the packages that images are built from, must follow."""

import posixpath
from collections.abc import Container, Iterator, Mapping
from pathlib import Path

from vertex_api.validation.canonical_spec import CanonicalSpec
from vertex_api.validation.rules import KeyPath, Violation
from vertex_api.validation.rules.text_formats import IMAGE
from vertex_api.validation.shape_validation import get_value_at_path_or_none

from ..schema import declaration_types, interpolation
from .package_context import find_copyable_files, select_files_at_or_below_and_link_targets
from .package_dockerfile import INSTALL_FILES, get_main_file

_OPTIONS: Mapping[str, frozenset[str]] = {
    "context": frozenset({"dockerfile", "target", "buildArgs", "platform", "secrets", "builder"}),
    "package": frozenset({"platform", "builder"}),
    "uri": frozenset(),
    "stack": frozenset(),
}
"""The keys that say where an image comes from, each with the keys that may stand beside it."""


def find_image_violations(root: Path, image: declaration_types.Image) -> Iterator[Violation]:
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
    if origin == "uri" and not interpolation.is_unresolved_text(image["uri"]) and not IMAGE.matches(image["uri"]):
        yield ("uri",), IMAGE.build_mismatch_message(image["uri"])
    elif origin == "context":
        folder_violations = _find_folder_violations(root, ("context",), image["context"])
        yield from folder_violations or _find_dockerfile_and_secret_violations(root, image)
    elif origin == "package":
        package = image["package"]
        folder_violations = _find_folder_violations(root, ("path",), package["path"])
        for key, message in folder_violations or _find_package_violations(root / package["path"], package):
            yield ("package", *key), message


def _find_package_violations(package_folder: Path, declared_package: declaration_types.Package) -> Iterator[Violation]:
    """Find what prevents a package from being built; `package_folder` is its path, an existing folder."""
    if ("script" in declared_package) == ("module" in declared_package):
        yield (), "needs either a script (.py, or anything else for Bash) or a module to run"
        return
    named_paths = [
        (("script",) if "script" in declared_package else ("module",), get_main_file(declared_package), False),
        *(
            (("extraPackages", index), path, False)
            for index, path in enumerate(declared_package.get("extraPackages", []))
        ),
        *((("extraDirs", index), path, True) for index, path in enumerate(declared_package.get("extraDirs", []))),
        *((("path",), name, False) for name in INSTALL_FILES if (package_folder / name).is_file()),
    ]
    misplaced = [
        (key, message)
        for key, path, is_folder in named_paths
        if (message := _explain_misplacement_or_none(package_folder, path, is_folder=is_folder))
    ]
    yield from misplaced
    if misplaced:
        return
    copyable_files = find_copyable_files(package_folder, declared_package)
    for key, path, _ in named_paths:
        if not select_files_at_or_below_and_link_targets(package_folder, [posixpath.normpath(path)], copyable_files):
            yield key, f'"{path}" is empty, or excluded by .dockerignore; include it by a line "!{path}"'


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
    return [] if (root / folder).is_dir() else [(key, f'"{folder}" is not a folder in {root.name}/')]


def _find_dockerfile_and_secret_violations(root: Path, image: declaration_types.Image) -> Iterator[Violation]:
    dockerfile = posixpath.normpath(image.get("dockerfile", "Dockerfile"))
    path = Path(image["context"], dockerfile)
    if posixpath.isabs(dockerfile) or dockerfile.split("/")[0] == "..":
        yield ("dockerfile",), f'"{dockerfile}" must be in the context, {image["context"]}'
    elif not (root / path).is_file():
        yield ("dockerfile",), f"there is no {path}; write one, or name another with dockerfile"
    secrets = image.get("secrets", {})
    for name in secrets.keys() - {str(path[0]) for path in interpolation.find_lone_reference_paths(secrets)}:
        yield ("secrets", name), "must be ${secrets.NAME} and nothing else, so that no file contains its value"


def _explain_misplacement_or_none(folder: Path, path: str, *, is_folder: bool) -> str | None:
    """Return why a path cannot be copied from a folder; `None` if it can."""
    target = (folder / path).resolve()
    if posixpath.isabs(path) or not target.is_relative_to(folder.resolve()):
        return f'"{path}" is outside the package\'s path; move it there, or set path to a folder that contains both'
    if target.is_dir() if is_folder else target.is_file():
        return None
    return f'there is no {"folder" if is_folder else "file"} "{path}" in the package\'s path; write it relative to that'
