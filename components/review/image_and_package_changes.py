"""The images and packages that a preview builds or uploads, and which files are the reason."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..runtime import DYNAMIC_TYPE
from .input_changes import InputChange, find_input_changes
from .preview_document import Step

IMAGE_TYPE = f"{DYNAMIC_TYPE}TrainingImage"
PACKAGE_TYPE = f"{DYNAMIC_TYPE}PythonPackage"
_NOUNS = {IMAGE_TYPE: "image", PACKAGE_TYPE: "package"}
_CONTENT_FIELDS = ("uri", "files")


@dataclass(frozen=True)
class ImageFinding:
    """An image or package (`noun`) that is `new`, `changed` or `removed` from the stack.

    The files are those of its build context or source distribution. None are known if it has more than 200: then
    `has_unlisted_files`. `other_changes` are build arguments, the platform and the like.
    """

    noun: str
    name: str
    change: str
    changed_files: tuple[str, ...] = ()
    added_files: tuple[str, ...] = ()
    removed_files: tuple[str, ...] = ()
    has_unlisted_files: bool = False
    other_changes: tuple[InputChange, ...] = ()


def find_changed_images_and_packages(steps: Iterable[Step]) -> list[ImageFinding]:
    """Find the images and packages that a preview changes."""
    return [_build_image_or_package_finding(step) for step in steps if step.type in _NOUNS and step.op != "same"]


def get_nouns_and_names_by_uri(steps: Iterable[Step]) -> dict[str, tuple[str, str]]:
    """Return the noun and the name of each image and package after the update, by its URI."""
    return {
        str(step.new_inputs.get("uri")): (_NOUNS[step.type], step.name)
        for step in steps
        if step.type in _NOUNS and step.new_inputs is not None
    }


def _build_image_or_package_finding(step: Step) -> ImageFinding:
    noun = _NOUNS[step.type]
    if step.old_inputs is None or step.new_inputs is None:
        return ImageFinding(noun, step.name, "new" if step.old_inputs is None else "removed")
    changes = find_input_changes(step)
    is_listed = all(isinstance(side.get("files"), Mapping) for side in (step.old_inputs, step.new_inputs))
    old, new = ((side["files"] if is_listed else {}) for side in (step.old_inputs, step.new_inputs))
    return ImageFinding(
        noun,
        step.name,
        "changed",
        changed_files=tuple(sorted(file for file in old.keys() & new.keys() if old[file] != new[file])),
        added_files=tuple(sorted(new.keys() - old.keys())),
        removed_files=tuple(sorted(old.keys() - new.keys())),
        has_unlisted_files=not is_listed,
        other_changes=tuple(change for change in changes if change.path[0] not in _CONTENT_FIELDS),
    )
