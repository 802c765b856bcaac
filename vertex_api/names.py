"""What jobs are called: their kinds, resource names and states, and the names that a misspelt one may mean."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

JobJson = Mapping[str, Any]
"""A job as the API's JSON has it: as it is sent, or as the service shows it."""
SERVICE_TASK = "service"
"""The task of those lines of a job's log that the service writes itself."""

ALLOW_HEADER = "x-vertex-training-allow"
"""The header with which a request that creates a job tells the emulator which of its problems are lifted: a JSON list
of their places."""


@dataclass(frozen=True)
class Kind:
    """A kind of job: `collection` as in its URL and in a declaration, and `type`, the name of its message.

    `spec_field` is the field with what to run: a CustomJobSpec, or the inputs of a pipeline's task.
    """

    collection: str
    type: str
    spec_field: str

    @property
    def typed_dict(self) -> Any:
        """The TypedDict of `vertex_api.types` that describes the kind."""
        from vertex_api import types  # loads pydantic, which most commands do without

        return getattr(types, self.type)


CUSTOM_JOB = Kind("customJobs", "CustomJob", "jobSpec")
HYPERPARAMETER_TUNING_JOB = Kind("hyperparameterTuningJobs", "HyperparameterTuningJob", "trialJobSpec")
TRAINING_PIPELINE = Kind("trainingPipelines", "TrainingPipeline", "trainingTaskInputs")

KINDS = {kind.collection: kind for kind in (CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE)}
"""All resources that run: jobs, and pipelines that run one."""


def location_name(project: str, region: str) -> str:
    """Return the resource name of the parent of a project's jobs in a region: `projects/P/locations/R`."""
    return f"projects/{project}/locations/{region}"


class ResourceName(NamedTuple):
    """The resource name of a job or pipeline, in parts."""

    project: str
    region: str
    kind: Kind
    id: str

    @classmethod
    def parse(cls, name: str) -> "ResourceName":
        """Return the parts of a name. Raises ValueError if it is not the name of a job or pipeline."""
        match name.split("/"):
            case ["projects", project, "locations", region, collection, id] if collection in KINDS and id:
                return cls(project, region, KINDS[collection], id)
        raise ValueError(f'"{name}" is not projects/P/locations/R/{{{",".join(KINDS)}}}/ID')

    def __str__(self) -> str:
        return f"{location_name(self.project, self.region)}/{self.kind.collection}/{self.id}"


_JOB_STATE, _PIPELINE_STATE = "JOB_STATE_", "PIPELINE_STATE_"
_JOBS_SUCCEEDED = ("SUCCEEDED", "PARTIALLY_SUCCEEDED")
_JOBS_ENDED = (*_JOBS_SUCCEEDED, "FAILED", "CANCELLED", "EXPIRED")

TERMINAL_STATES = frozenset(
    [_JOB_STATE + state for state in _JOBS_ENDED]
    + [_PIPELINE_STATE + state for state in ("SUCCEEDED", "FAILED", "CANCELLED")]
)
"""The states that never change again. PAUSED is not one: such a job can be resumed."""

SUCCEEDED_STATES = frozenset([*(_JOB_STATE + state for state in _JOBS_SUCCEEDED), f"{_PIPELINE_STATE}SUCCEEDED"])


def short_state(state: str) -> str:
    """Return a state of a job or a pipeline without its prefix: `RUNNING`."""
    return state.removeprefix(_JOB_STATE).removeprefix(_PIPELINE_STATE)


_MAX_LENGTH = 200
_SIZE = re.compile(r"(.+[-_])([0-9]{1,9})([a-z]*)")
_MAX_COMPARED, _MAX_LISTED, _MAX_JOINED = 1000, 50, 5


def closest_name(name: str, known_names: Iterable[str]) -> str | None:
    """Return the known name most similar to `name`, None if none is similar. Case and underscores are ignored.

    Of names that differ in a number only it is the next size up: `n1-standard-4` for `n1-standard-2`. A name that is
    the beginning of a known one means that: `TPU_V4_POD` for `TPU_V4`. A word of letters and digits tells more than
    others: `NVIDIA_L4` for `NVIDIA_TESLA_L4`.
    Returns None too for a name that is no name by its length, and among so many known names that it would take long.
    """
    known_names = list(known_names)
    if len(name) > _MAX_LENGTH or len(known_names) > _MAX_COMPARED:
        return None
    if sized := _next_size(name, known_names):
        return sized
    begun = [each for each in known_names if name and each.startswith((f"{name}_", f"{name}-"))]
    if len(begun) == 1:
        return begun[0]
    family = re.split("[-_]", name.upper())[0]  # else a region is any other of its number
    same = [each for each in known_names if _model(name) & _model(each) and family in re.split("[-_]", each.upper())]
    if len(same) == 1:
        return same[0]
    folded = {candidate.lower(): candidate for candidate in sorted(same or known_names)}
    matches = difflib.get_close_matches(name.replace("_", "").lower(), folded, n=1)
    return folded[matches[0]] if matches else None


def _model(name: str) -> set[str]:
    """Return the words of a name that have digits and a few letters, such as `T4` in `NVIDIA_TESLA_T4`.

    The last word of a region has more letters.
    """
    words = re.split("[-_]", name.upper())
    return {word for word in words if 0 < len(re.findall("[A-Z]", word)) < 4 and re.search("[0-9]", word)}


def _next_size(name: str, known_names: Iterable[str]) -> str | None:
    """Return the known name that has the next larger number than `name`, else the largest; None without such names."""
    if not (match := _SIZE.fullmatch(name)):
        return None
    sizes = {}
    for each in known_names:
        known = _SIZE.fullmatch(each)
        if known and known.group(1, 3) == match.group(1, 3):
            sizes[int(known[2])] = each
    larger = [size for size in sizes if size >= int(match[2])]
    return sizes[min(larger, default=max(sizes))] if sizes else None


def did_you_mean(name: str, known_names: Iterable[str]) -> str:
    """Return `; did you mean X?` with the most similar known name, else the list of known names or its beginning."""
    known_names = sorted(known_names)
    if closest := closest_name(name, known_names):
        return f"; did you mean {closest}?"
    more = f" and {len(known_names) - _MAX_LISTED} more" if len(known_names) > _MAX_LISTED else ""
    return f"; known: {', '.join(known_names[:_MAX_LISTED])}{more}" if known_names else ""


def join_names(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - _MAX_JOINED
    return ", ".join(names[:_MAX_JOINED]) + (f" and {more} more" if more > 0 else "")


def either(names: Iterable[object]) -> str:
    """Return names as a text: `a`, `a or b`, `a, b or c`."""
    *others, last = (str(name) for name in names)
    return f"{', '.join(others)} or {last}" if others else last
