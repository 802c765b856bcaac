"""The build context of a package: the files that its image contains, in one folder, and a generated Dockerfile."""

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ..schema import shapes
from .build_context import BuildContext
from .dockerignore import list_included_files
from .package_dockerfile import PACKAGE_FOLDER, get_main_file, list_copied_paths, render_dockerfile


@dataclass(frozen=True)
class PackageContext(BuildContext):
    """The files of a folder that a generated Dockerfile copies, and that Dockerfile.

    The digest covers everything that decides what the image holds, and none of the folder's other files.
    """

    package: shapes.Package = field(kw_only=True)

    @cached_property
    def files_by_context_path(self) -> Mapping[str, str]:
        selected = list_copied_paths(self.package, self._copyable_files)
        paths = sorted(select_files_at_or_below_and_link_targets(self.folder, selected, self._copyable_files))
        return {f"{PACKAGE_FOLDER}/{path}": path for path in paths}

    @cached_property
    def generated_texts_by_context_path(self) -> Mapping[str, str]:
        return {self.dockerfile: render_dockerfile(self.package, self._copyable_files)}

    def render_base_image_location(self, declared_name: str, line: int) -> str:  # noqa: ARG002
        return f"images.{declared_name}.package.baseImage"

    @cached_property
    def _copyable_files(self) -> set[str]:
        return find_copyable_files(self.folder, self.package)


def find_copyable_files(folder: Path, package: shapes.Package) -> set[str]:
    """Return the files of a package's path that may be copied.

    Excludes what Python writes when the code runs, which gcloud deletes, and `.dockerignore`, to which the classic
    builder adds a line that differs in each of gcloud's builds.
    """
    main_folder = posixpath.dirname(get_main_file(package))
    return {
        path
        for path in list_included_files(folder, None)
        if not (path == ".dockerignore" or "__pycache__" in path.split("/"))
        and not (path.endswith((".pyc", ".pyo")) and posixpath.dirname(path) == main_folder)
    }


def select_files_at_or_below_and_link_targets(
    folder: Path, selected_paths: Iterable[str], copyable_files: Iterable[str]
) -> set[str]:
    """Return the files that are one of `selected_paths` or are below one; for a link, the link and its target."""
    root = folder.resolve()
    paths = {*selected_paths}
    targets = {(folder / path).resolve() for path in paths}
    paths |= {target.relative_to(root).as_posix() for target in targets if target.is_relative_to(root)}
    if "." in paths:
        return {*copyable_files}
    parents = {"/".join(parts[:end]) for path in paths for parts in [path.split("/")] for end in range(len(parts))}
    folders = tuple(f"{path}/" for path in paths)
    return {file for file in copyable_files if file in paths or file in parents or file.startswith(folders)}
