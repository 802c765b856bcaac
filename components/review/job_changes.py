"""The jobs that a preview submits, runs again or deletes, and why."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from vertex_api.names import KINDS, Kind

from ..plan.training import deletion_policy
from ..runtime import DYNAMIC_TYPE
from .image_and_package_changes import get_nouns_and_names_by_uri
from .input_changes import InputChange, find_input_changes, format_short_value_or_none
from .preview_document import Step

KINDS_BY_TYPE: Mapping[str, Kind] = {f"{DYNAMIC_TYPE}{kind.type}": kind for kind in KINDS.values()}
"""The kinds of job by the types of their resources."""
_IMAGE_FIELDS = ("imageUri", "executorImageUri")
_OUTPUT_FOLDER = ("baseOutputDirectory", "outputUriPrefix")
"""It follows from every other field of a job, so it is a reason only where it stands alone."""


@dataclass(frozen=True)
class Cause:
    """Why a job runs again. `kind`: `image`, `package`, `job` (upstream), `field`, or `request`, as by `--replace`.

    `name` is that of the image, package or upstream job, or the path of the field.
    """

    kind: str
    name: str = ""
    old_text: str | None = None
    new_text: str | None = None


@dataclass(frozen=True)
class JobFinding:
    """What happens to a job.

    `action`: `submit`, `run again` (a new job, and the old one is deleted, cancelled or kept as `on_delete` says),
    `adopt`, `update` (nothing is submitted), or `delete`, `cancel`, `keep` for a job that leaves the stack.
    """

    name: str
    type: str
    action: str
    causes: tuple[Cause, ...] = ()
    on_delete: str = "delete"

    @property
    def creation_and_deletion_count(self) -> int:
        """How many of Vertex AI's submissions per minute it takes: creating and deleting count, cancelling does not."""
        creations = self.action in ("submit", "run again")
        deletions = self.action == "delete" or (self.action == "run again" and self.on_delete == "delete")
        return creations + deletions


def find_changed_jobs(reviewed_steps: Iterable[Step], all_steps: Iterable[Step]) -> list[JobFinding]:
    """Find the jobs among `reviewed_steps` that a preview changes. `all_steps` are those of the whole preview."""
    all_steps = list(all_steps)
    nouns_and_names_by_uri = get_nouns_and_names_by_uri(all_steps)
    folders = _get_old_and_new_output_folders_by_job(all_steps)
    return [
        _build_job_finding(step, nouns_and_names_by_uri, folders)
        for step in reviewed_steps
        if step.type in KINDS_BY_TYPE and step.op != "same"
    ]


def _build_job_finding(
    step: Step,
    nouns_and_names_by_uri: Mapping[str, tuple[str, str]],
    output_folders_by_job: Mapping[str, tuple[str, str]],
) -> JobFinding:
    type_name = KINDS_BY_TYPE[step.type].type
    before = step.old_inputs or {}
    policy = deletion_policy(before.get("lifecycle") or {}, is_adopted=bool(before.get("adopt")))
    policy = "keep" if step.is_retained else policy
    if step.new_inputs is None:
        return JobFinding(step.name, type_name, policy, on_delete=policy)
    is_adopted = bool(step.new_inputs.get("adopt"))
    if step.op == "create":
        return JobFinding(step.name, type_name, "adopt" if is_adopted else "submit")
    action = "update" if step.op == "update" else "adopt" if is_adopted else "run again"
    upstream_jobs = step.new_inputs.get("jobs") or {}
    upstream_folders = [output_folders_by_job[name] for name in upstream_jobs if name in output_folders_by_job]
    changes = [each for each in find_input_changes(step) if not _is_consequence_of_upstream(each, upstream_folders)]
    causes = find_causes(changes, nouns_and_names_by_uri)
    return JobFinding(step.name, type_name, action, causes or (Cause("request"),), policy)


def find_causes(
    changes: Iterable[InputChange], nouns_and_names_by_uri: Mapping[str, tuple[str, str]]
) -> tuple[Cause, ...]:
    """Return the causes that changes of inputs amount to, each once. Images and packages are named by their URIs."""
    causes = [(_build_cause(change, nouns_and_names_by_uri), change.path[-2:] == _OUTPUT_FOLDER) for change in changes]
    own = [cause for cause, is_output_folder in causes if not is_output_folder]
    return tuple(dict.fromkeys(own or [cause for cause, _ in causes]))


def _get_old_and_new_output_folders_by_job(steps: Iterable[Step]) -> dict[str, tuple[str, str]]:
    """Return the old and the new output folder of each job that has both, by its name."""
    folders = {}
    for step in steps:
        if step.type in KINDS_BY_TYPE and step.old_inputs and step.new_inputs:
            sides = [_find_output_folder_or_none(inputs.get("spec")) for inputs in (step.old_inputs, step.new_inputs)]
            if sides[0] and sides[1]:
                folders[step.name] = (sides[0], sides[1])
    return folders


def _find_output_folder_or_none(spec_or_part: Any) -> str | None:
    """Return the output folder anywhere in a spec: its place depends on the kind of job."""
    if not isinstance(spec_or_part, Mapping):
        return None
    folder = spec_or_part.get(_OUTPUT_FOLDER[0])
    if isinstance(folder, Mapping):
        return str(folder.get(_OUTPUT_FOLDER[1]))
    return next((found for each in spec_or_part.values() if (found := _find_output_folder_or_none(each))), None)


def _is_consequence_of_upstream(change: InputChange, upstream_folders: Iterable[tuple[str, str]]) -> bool:
    """Return whether a text only names the new output folder of an upstream job in place of its old one."""
    old, new = change.old_value, change.new_value
    if not isinstance(old, str) or not isinstance(new, str):
        return False
    return any(
        old_folder in old and old.replace(old_folder, new_folder) == new for old_folder, new_folder in upstream_folders
    )


def _build_cause(change: InputChange, nouns_and_names_by_uri: Mapping[str, tuple[str, str]]) -> Cause:
    noun, name = nouns_and_names_by_uri.get(str(change.new_value), ("", ""))
    if noun:
        return Cause(noun, name)
    if change.path[0] == "jobs":
        return Cause("job", str(change.path[-1]))
    if change.path[-1] in _IMAGE_FIELDS and change.new_text:
        return _build_image_cause(str(change.old_value or ""), str(change.new_value))
    return Cause("field", change.path_text, change.old_text, change.new_text)


def _build_image_cause(old_uri: str, new_uri: str) -> Cause:
    """Name an image by the last part of its path; the values are whole URIs only if more than the version changes."""
    versions = re.compile(r"(@sha256:[0-9a-f]{12}|:[^:/@]+$)")
    (old_path, *old_version), (new_path, *new_version) = (versions.split(uri, 1)[:2] for uri in (old_uri, new_uri))
    name = new_path.rpartition("/")[2]
    if old_path == new_path and old_version and new_version:
        return Cause("image", name, old_version[0], new_version[0])
    return Cause("image", name, format_short_value_or_none(old_uri), format_short_value_or_none(new_uri))
