"""What a preview changes of images, packages, jobs and schedules, and why.

First the inputs of one resource that change, and then, one after the other, what that means for images and packages,
for jobs, and for schedules.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from vertex_api.messages import parse_path, value_at
from vertex_api.names import KINDS, Kind

from ..data import lock
from ..jobs.identity import NAME_FIELDS, renamed
from ..jobs.inputs import REPLACING
from ..jobs.moves import NEXT_RUN
from ..plan.training import ALLOW, deletion_policy, is_upcoming
from ..runtime import DYNAMIC_TYPE
from ..runtime.holders import tail
from .document import Diagnostic, Step

KNOWN_LATER = "(known after the update)"
MAX_VALUE_LENGTH = 80
_UNKNOWNS = (
    "04da6b54-80e4-46f7-96ec-b56ff0331ba9",
    "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
    "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
    "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
    "030794c1-77ac-496b-92df-f27374a8bd58",
    "e48ece36-62e2-4504-bad9-02848725956a",
    "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
)
"""What the engine writes for unknown values, by their type (`sdk/go/common/resource/plugin/rpc.go`)."""


@dataclass(frozen=True)
class InputChange:
    """One input that changes. `path` is a tuple of keys and indexes; a value is None where there is none."""

    path: tuple[str | int, ...]
    old_value: Any
    new_value: Any

    @property
    def old_text(self) -> str | None:
        """The old value as one short line, None for no value."""
        return show(self.old_value)

    @property
    def new_text(self) -> str | None:
        """The new value as one short line, None for no value."""
        return show(self.new_value)

    @property
    def path_text(self) -> str:
        """The path as declarations write it, without what all paths of a job begin with."""
        text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in self.path)
        return text.removeprefix(".").removeprefix("spec.")


def input_changes(step: Step) -> list[InputChange]:
    """Find the inputs that differ between both sides of a step, and those that the provider alone knows to differ."""
    if step.old_inputs is None or step.new_inputs is None:
        return []
    changes = list(_differences(step.old_inputs, step.new_inputs))
    inputs = step.old_inputs.keys() | step.new_inputs.keys()
    hidden = (step.reasons & inputs) - {str(change.path[0]) for change in changes}
    return changes + [InputChange((key,), step.old_inputs.get(key), step.new_inputs.get(key)) for key in sorted(hidden)]


def _differences(old: Any, new: Any, path: tuple[str | int, ...] = ()) -> Iterator[InputChange]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            yield from _differences(old.get(key), new.get(key), (*path, key))
    elif isinstance(old, list) and isinstance(new, list):
        for index, items in enumerate(zip_longest(old, new)):
            yield from _differences(*items, (*path, index))
    elif old != new:
        yield InputChange(path, old, new)


def show(value: Any) -> str | None:
    """Return a value of a preview as one short line, or None for no value."""
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    for unknown in _UNKNOWNS:
        text = text.replace(unknown, KNOWN_LATER)
    return shorten(text)


def is_unknown(value: Any) -> bool:
    """Return whether a preview does not know a value."""
    return isinstance(value, str) and value in _UNKNOWNS


def shorten(text: str, max_length: int = MAX_VALUE_LENGTH) -> str:
    """Return a text of at most `max_length` characters, cut in the middle: both ends of URIs tell what they are."""
    if len(text) <= max_length:
        return text
    half = (max_length - 1) // 2
    return f"{text[:half]}…{text[-half:]}"


IMAGE_TYPE, PACKAGE_TYPE = f"{DYNAMIC_TYPE}TrainingImage", f"{DYNAMIC_TYPE}PythonPackage"
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


def images(steps: Iterable[Step]) -> list[ImageFinding]:
    """Find the images and packages that a preview builds or uploads, and which files are the reason."""
    return [_image(step) for step in steps if step.type in _NOUNS and step.op != "same"]


def _image(step: Step) -> ImageFinding:
    noun = _NOUNS[step.type]
    if step.old_inputs is None:
        return ImageFinding(noun, step.name, "new")
    if step.new_inputs is None:
        return ImageFinding(noun, step.name, "removed")
    old: Any = step.old_inputs.get("files")
    new: Any = step.new_inputs.get("files")
    is_listed = isinstance(old, Mapping) and isinstance(new, Mapping)
    if not is_listed:
        old = new = {}
    others = [change for change in input_changes(step) if change.path[0] not in _CONTENT_FIELDS]
    return ImageFinding(
        noun,
        step.name,
        "changed",
        changed_files=tuple(sorted(file for file in old.keys() & new.keys() if old[file] != new[file])),
        added_files=tuple(sorted(new.keys() - old.keys())),
        removed_files=tuple(sorted(old.keys() - new.keys())),
        has_unlisted_files=not is_listed,
        other_changes=tuple(others),
    )


KINDS_BY_TYPE: Mapping[str, Kind] = {f"{DYNAMIC_TYPE}{kind.type}": kind for kind in KINDS.values()}
"""The kinds of job by the types of their resources."""
LEDGER_TYPE = f"{DYNAMIC_TYPE}Ledger"
_IMAGE_FIELDS = ("imageUri", "executorImageUri")
_OUTPUT_FOLDER = ("baseOutputDirectory", "outputUriPrefix")
"""It follows from every other field of a job, so it is a reason only where it stands alone."""
_VERSION = re.compile(r"(@sha256:[0-9a-f]{12}|:[^:/@]+$)")


@dataclass(frozen=True)
class Cause:
    """Why a job changes. `kind`: `image`, `package`, `data`, `job` (upstream), `field`, or `request` (`--replace`).

    `next run` is a field that its run does not have yet, and `name` another name for what a deleted job has run.
    `name` is that of the image, package, data, upstream or former job, or the path of the field. Of data, `new_text`
    says what changes.
    """

    kind: str
    name: str = ""
    old_text: str | None = None
    new_text: str | None = None


RUNNING = ("submit", "run again")
"""The actions that run a job."""


@dataclass(frozen=True)
class JobFinding:
    """What happens to a job.

    `action`: `submit`, `run again` (a new job, and the old one is deleted, cancelled or kept as `on_delete` says),
    `adopt`, `update` (nothing is submitted), `go on` (as it is, under the URN that `goes_on_as` shows), or `delete`,
    `cancel`, `keep` for a job that leaves the stack.
    """

    name: str
    type: str
    action: str
    causes: tuple[Cause, ...] = ()
    on_delete: str = "delete"
    goes_on_as: str = ""

    @property
    def submissions(self) -> int:
        """How many of Vertex AI's submissions per minute it takes: creating and deleting count, cancelling does not."""
        creations = self.action in RUNNING
        deletions = self.action == "delete" or (self.action == "run again" and self.on_delete == "delete")
        return creations + deletions


def jobs(reviewed: Iterable[Step], steps: Sequence[Step]) -> list[JobFinding]:
    """Find the jobs among the `reviewed` steps that a preview submits, runs again or deletes, and why.

    `steps` are those of the whole preview.
    """
    causes, urns, former = _Causes(steps), _moves(steps), _former(steps)
    changed = [step for step in reviewed if step.type in KINDS_BY_TYPE and step.op != "same"]
    findings = []
    for step in changed:
        if step.urn not in urns:
            finding = _job(step, causes)
            old_name = former.get((step.type, step.name)) if finding.action == "submit" else None
            findings.append(replace(finding, causes=(Cause("name", old_name),)) if old_name else finding)
        elif new_urn := urns[step.urn]:
            findings.append(JobFinding(step.name, KINDS_BY_TYPE[step.type].type, "go on", goes_on_as=tail(new_urn)))
    return findings


@dataclass(frozen=True)
class Lift:
    """What the rules of the service refuse in a job, and the job has all the same: its place, and its value as text."""

    job: str
    place: str
    text: str


def lifts(steps: Iterable[Step]) -> list[Lift]:
    """Find what jobs lift after an update, and did not lift before it."""
    found = []
    for step in steps:
        if step.type in KINDS_BY_TYPE and step.new_inputs is not None:
            before, after = (
                ((each or {}).get("lifecycle") or {}).get(ALLOW) or () for each in (step.old_inputs, step.new_inputs)
            )
            spec = step.new_inputs.get("spec")
            found += [
                Lift(step.name, place, show(value_at(spec, parse_path(place))) or "")
                for place in after
                if place not in before
            ]
    return found


_RUN_INPUTS = ("owner", *REPLACING)


def _moves(steps: Iterable[Step]) -> dict[str, str]:
    """Return the URNs of jobs that go on under another one: each with its new URN, and each of these with ""."""
    old: dict[str, list[Step]] = {}
    urns: dict[str, str] = {}
    steps = [step for step in steps if step.type in KINDS_BY_TYPE]
    for step in steps:
        if step.op == "delete" and step.old_inputs and not step.is_retained:
            for key in (_run_of(step.type, step.old_inputs), step.id):
                old.setdefault(key, []).append(step)
    for step in steps:
        if step.op == "create" and step.new_inputs:
            adopted = step.new_inputs.get("adopt")
            for gone in old.get(adopted or _run_of(step.type, step.new_inputs), ()):
                if gone.urn not in urns:
                    # What adopts is shown as such.
                    urns |= {gone.urn: step.urn} | ({} if adopted else {step.urn: ""})
                    break
    return urns


def _run_of(type_: str, inputs: Mapping[str, Any]) -> str:
    """Return a text that is equal for the inputs of one job: the provider finds it by the same."""
    return json.dumps([type_, *(inputs.get(name) for name in _RUN_INPUTS)], sort_keys=True)


def _former(steps: Sequence[Step]) -> dict[tuple[str, str], str]:
    """Return by type and name the jobs that run what a deleted one has run, with the name that this is declared by."""
    deleted = {(step.type, step.name) for step in steps if step.op == "delete"}
    found: dict[tuple[str, str], str] = {}
    for step in steps:
        if step.type != LEDGER_TYPE or not step.old_inputs or not step.new_inputs:
            continue
        prefix = (step.new_inputs.get("settings") or {}).get("prefix", "")
        for name, old in renamed(step.old_inputs, step.new_inputs, step.new_inputs.get("gone") or {}).items():
            type_ = f"{DYNAMIC_TYPE}{KINDS[step.new_inputs['jobs'][name]].type}"
            if (type_, f"{prefix}{old}") in deleted:
                found[type_, f"{prefix}{name}"] = old
    return found


def _job(step: Step, causes: "_Causes") -> JobFinding:
    kind, before = KINDS_BY_TYPE[step.type].type, step.old_inputs or {}
    policy = deletion_policy(before.get("lifecycle") or {}, is_adopted=bool(before.get("adopt")))
    policy = "keep" if step.is_retained else policy
    if step.new_inputs is None:
        return JobFinding(step.name, kind, policy, on_delete=policy)
    is_adopted = bool(step.new_inputs.get("adopt"))
    if step.op == "create":
        return JobFinding(step.name, kind, "adopt" if is_adopted else "submit")
    action = "update" if step.op == "update" else "adopt" if is_adopted else "run again"
    return JobFinding(step.name, kind, action, causes.of_job(step), policy)


class _Causes:
    """The causes that changes of inputs amount to, by what all `steps` of a preview say of images and jobs."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self._sources: dict[str, tuple[str, str]] = {}
        """The noun and the name of each image and package after the update, by its URI."""
        self._folders: dict[str, tuple[str, str]] = {}
        """The old and the new output folder of each job that has both, by its name."""
        for step in steps:
            if step.new_inputs is None:
                continue
            if step.type in _NOUNS:
                self._sources[str(step.new_inputs.get("uri"))] = (_NOUNS[step.type], step.name)
            elif step.type in KINDS_BY_TYPE and step.old_inputs:
                old, new = _output_folder(step.old_inputs.get("spec")), _output_folder(step.new_inputs.get("spec"))
                if old and new:
                    self._folders[step.name] = (old, new)

    def of_job(self, step: Step) -> tuple[Cause, ...]:
        """Return the causes of a job's changes, without those that follow from new output folders of upstream jobs."""
        upstream = (step.new_inputs or {}).get("jobs") or {}
        moved = [self._folders[name] for name in upstream if name in self._folders]
        apart = ("data", NEXT_RUN)
        own = [each for each in input_changes(step) if each.path[0] not in apart and not _follows(each, moved)]
        old, new = (_mapping(side, "data") for side in (step.old_inputs, step.new_inputs))
        names = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
        data = [Cause("data", name, new_text=_data_text(old.get(name), new.get(name))) for name in names]
        return self.of(own, [*data, *_later(step)])

    def of(self, changes: Iterable[InputChange], others: Sequence[Cause] = ()) -> tuple[Cause, ...]:
        """Return the causes of these changes, each once, behind `others`; without any, a replacement was requested."""
        own: list[Cause] = [*others]
        folders: list[Cause] = []
        for change in changes:
            causes = folders if change.path[-2:] == _OUTPUT_FOLDER else own
            causes.append(self._of_one(change))
        return tuple(dict.fromkeys(own or folders or [Cause("request")]))

    def _of_one(self, change: InputChange) -> Cause:
        if source := self._sources.get(str(change.new_value)):
            return Cause(*source)
        if change.path[0] == "jobs":
            return Cause("job", str(change.path[-1]))
        if change.path[-1] in _IMAGE_FIELDS and change.new_text:
            return _image_cause(str(change.old_value or ""), str(change.new_value))
        return Cause("field", change.path_text, change.old_text, change.new_text)


def _later(step: Step) -> Iterator[Cause]:
    """Yield what an update changes of the labels and the display name that a job has from its next run on."""
    if step.op != "update":
        return  # a new run has them
    before, after = (
        {key: _mapping(side, NEXT_RUN).get(key, _mapping(side, "spec").get(key)) or None for key in NAME_FIELDS}
        for side in (step.old_inputs, step.new_inputs)
    )
    for change in _differences(before, after):
        yield Cause("next run", change.path_text, change.old_text, change.new_text)


def _mapping(inputs: Mapping[str, Any] | None, key: str) -> Mapping[str, Any]:
    """Return a map among the inputs of a resource; an empty one where there is none, or a text in its place."""
    found = (inputs or {}).get(key)
    return found if isinstance(found, Mapping) else {}


def _data_text(old: Any, new: Any) -> str:
    """Return what changes of locked data, from the inputs that a job has of it."""
    try:
        return lock.describe(old, new)
    except (AttributeError, KeyError, StopIteration, TypeError, ValueError):
        return "changed"


def _image_cause(old_uri: str, new_uri: str) -> Cause:
    """Name an image by the last part of its path, and its values by their versions if only these differ."""
    old_path, *old_version = _VERSION.split(old_uri, 1)[:2]
    new_path, *new_version = _VERSION.split(new_uri, 1)[:2]
    name = new_path.rpartition("/")[2]
    if old_path == new_path and old_version and new_version:
        return Cause("image", name, old_version[0], new_version[0])
    return Cause("image", name, show(old_uri), show(new_uri))


def _output_folder(value: Any) -> str | None:
    """Return the output folder anywhere in a spec: its place depends on the kind of job."""
    if not isinstance(value, Mapping):
        return None
    folder = value.get(_OUTPUT_FOLDER[0])
    if isinstance(folder, Mapping):
        return str(folder.get(_OUTPUT_FOLDER[1]))
    return next((found for each in value.values() if (found := _output_folder(each))), None)


def _follows(change: InputChange, folders: Iterable[tuple[str, str]]) -> bool:
    """Return whether a text only names the new output folder of an upstream job in place of its old one."""
    old, new = change.old_value, change.new_value
    if not isinstance(old, str) or not isinstance(new, str):
        return False
    return any(before in old and old.replace(before, after) == new for before, after in folders)


_EMULATOR_SCHEDULE, _STATUS = f"{DYNAMIC_TYPE}EmulatorSchedule", f"{DYNAMIC_TYPE}ScheduleStatus"
SCHEDULER_JOB, WORKFLOW = "gcp:cloudscheduler/job:Job", "gcp:workflows/workflow:Workflow"
_SUFFIXES = {_EMULATOR_SCHEDULE: "", SCHEDULER_JOB: "-scheduler", WORKFLOW: "-workflow", _STATUS: ""}
"""The types of a schedule's resources, and what their names have after the schedule's."""
_COMPONENT = "vertex-training:index:Schedule$"
_FIELDS = {"schedule": "cron", "jobs": "requests"}
"""What declarations, and this review, call inputs of these resources."""
_BODY, _SOURCE = "body", "sourceContents"


@dataclass(frozen=True)
class ScheduleFinding:
    """A schedule that is `new`, `changed` or `removed`. `cron`, `time_zone` and `is_paused` are those after the update.

    Of a schedule that is removed they are those before it. `next_times` is the line of the preview with them, and
    `cost` what the plan after the update says.
    """

    name: str
    change: str
    cron: str
    time_zone: str
    is_paused: bool
    causes: tuple[Cause, ...] = ()
    next_times: str = ""
    cost: str = ""


def is_part_of_schedule(step: Step) -> bool:
    """Return whether a step is of one of the resources that a schedule consists of."""
    return step.type in _SUFFIXES and _COMPONENT in step.urn


def schedules(
    reviewed: Iterable[Step], steps: Sequence[Step], diagnostics: Sequence[Diagnostic]
) -> list[ScheduleFinding]:
    """Find the schedules among the `reviewed` steps that a preview changes, by the resources of either target.

    `steps` and `diagnostics` are those of the whole preview.
    """
    changed: dict[str, list[Step]] = {}
    for step in reviewed:
        if is_part_of_schedule(step) and step.type != _STATUS and step.op != "same":
            changed.setdefault(schedule_name(step), []).append(step)
    times: dict[str, Mapping[str, Any]] = {}
    for step in steps:
        if is_part_of_schedule(step) and step.type in (_EMULATOR_SCHEDULE, SCHEDULER_JOB):
            times[schedule_name(step)] = step.inputs
    upcoming = {each.name: each.message.strip() for each in diagnostics if is_upcoming(each.message)}
    causes = _Causes(steps)
    findings = []
    for name, parts in sorted(changed.items()):
        own, change = times.get(name, {}), _change(parts)
        findings.append(
            ScheduleFinding(
                name,
                change,
                cron=show(own.get("cron") or own.get("schedule")) or "",
                time_zone=show(own.get("timeZone")) or "",
                is_paused=own.get("paused") is True,
                causes=causes.of(_declared_changes(parts)) if change == "changed" else (),
                next_times=upcoming.get(name, ""),
            )
        )
    return findings


def schedule_name(step: Step) -> str:
    """Return the name of the schedule that a resource is part of."""
    return step.name.removesuffix(_SUFFIXES[step.type])


def _change(parts: Sequence[Step]) -> str:
    if all(step.old_inputs is None for step in parts):
        return "new"
    return "removed" if all(step.new_inputs is None for step in parts) else "changed"


def _declared_changes(parts: Iterable[Step]) -> Iterator[InputChange]:
    """Yield the changes of a schedule's resources with paths as declarations have them.

    The source of a workflow is JSON with the requests of the jobs.
    """
    for step in parts:
        for change in input_changes(step):
            for each in _in_source(change) if change.path == (_SOURCE,) else [change]:
                yield replace(each, path=_declared_path(each.path))


def _in_source(change: InputChange) -> list[InputChange]:
    try:
        return list(_differences(json.loads(change.old_value), json.loads(change.new_value)))
    except (TypeError, ValueError):
        return [change]  # not known in this preview


def _declared_path(path: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Return the path of a job's field from behind the `body` of its request, and others by their declared names."""
    if _BODY in path[:-1]:
        return path[len(path) - path[::-1].index(_BODY) :]
    return (_FIELDS.get(str(path[0]), path[0]), *path[1:])
