"""Training pipelines: the job that a pipeline's task asks for, and what is wrong with a pipeline.

A pipeline names a task definition and gives that task's inputs as free JSON. Google's SDK writes them in a mix of
snake_case and camelCase with every number as a float, because they travel as a google.protobuf.Value.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic.alias_generators import to_camel

from vertex import models, rules
from vertex.kinds import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE, Kind
from vertex.rules import KeyPath
from vertex.validation import NO_OBJECT, OutputOnly, Problem, shape, validate

DEFINITIONS = "gs://google-cloud-aiplatform/schema/trainingjob/definition/"
CUSTOM_TASK = f"{DEFINITIONS}custom_task_1.0.0.yaml"
TUNING_TASK = f"{DEFINITIONS}hyperparameter_tuning_task_1.0.0.yaml"

_INPUTS = "trainingTaskInputs"
_KINDS = {CUSTOM_TASK: CUSTOM_JOB, TUNING_TASK: HYPERPARAMETER_TUNING_JOB}
_TASK_NAMES = {CUSTOM_TASK: "custom task", TUNING_TASK: "hyperparameter tuning task"}
_SUFFIXES = {CUSTOM_TASK: "custom-job", TUNING_TASK: "hyperparameter-tuning-job"}
_SHARED = ("displayName", "labels", "encryptionSpec")  # what the pipeline itself says of its job
_SPLITS = ("fractionSplit", "filterSplit", "predefinedSplit", "timestampSplit", "stratifiedSplit")


@dataclass(frozen=True)
class Reading:
    """A pipeline as read: `spec` in canonical form (the task's inputs as sent), and its `problems`.

    `headline` is the service's text for inputs that do not have their task's shape, else empty.
    """

    spec: dict[str, Any]
    problems: list[Problem]
    headline: str = ""


def read(body: Mapping[str, Any], *, output_only: OutputOnly = "refuse") -> Reading:
    """The canonical form of a TrainingPipeline and every problem it has."""
    spec, problems = shape(TRAINING_PIPELINE.message, body, output_only=output_only)
    if problems:
        return Reading(spec, problems)
    problems = [Problem(path, message) for path, message in _broken(spec)]
    definition = spec["trainingTaskDefinition"]
    if definition not in _KINDS:
        message = f'"{definition}" is no task that runs training code; known: {", ".join(_KINDS)}'
        return Reading(spec, [*problems, Problem(("trainingTaskDefinition",), message)])
    inputs = spec.get(_INPUTS)
    if not isinstance(inputs, Mapping):
        message = "is required" if inputs is None else NO_OBJECT
        return Reading(spec, [*problems, Problem((_INPUTS,), message)], _headline(definition))
    kind, job = _KINDS[definition], _job(spec)
    _, malformed = shape(kind.message, job)
    found = malformed or validate(kind, job)[1]
    problems += [
        Problem(in_pipeline(kind, problem.path), problem.message) for problem in found if problem.path[0] not in _SHARED
    ]
    if kind == HYPERPARAMETER_TUNING_JOB:
        misplaced = [name for name in inputs if to_camel(name) in _SHARED]
        problems += [Problem((_INPUTS, name), "is set on the pipeline itself") for name in misplaced]
    return Reading(spec, problems, _headline(definition) if malformed else "")


def backing_kind(spec: Mapping[str, Any]) -> Kind:
    """The kind of job that a canonical pipeline runs."""
    return _KINDS[spec["trainingTaskDefinition"]]


def backing_job(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The canonical job of a canonical pipeline without problems. Its name is as the service makes it up."""
    job, problems = shape(backing_kind(spec).message, _job(spec))
    assert not problems, problems
    job["displayName"] = f"{spec['displayName']}-{_SUFFIXES[spec['trainingTaskDefinition']]}"
    return dict(job)


def _job(spec: Mapping[str, Any]) -> dict[str, Any]:
    shared = {name: spec[name] for name in _SHARED if name in spec}
    inputs = spec[_INPUTS]
    if backing_kind(spec) == CUSTOM_JOB:
        return {**shared, "jobSpec": inputs}
    return {**{name: value for name, value in inputs.items() if to_camel(name) not in _SHARED}, **shared}


def in_pipeline(kind: Kind, path: KeyPath) -> KeyPath:
    """Where a field of the backing job stands in its pipeline."""
    if path and path[0] in _SHARED:
        return path
    return (_INPUTS, *(path[1:] if kind == CUSTOM_JOB else path))


def _headline(definition: str) -> str:
    """The service's text, seen in users' reports for the custom task."""
    return (
        f"Unable to parse `training_pipeline.training_task_inputs` into {_TASK_NAMES[definition]} `inputs` defined in "
        f"the file: {definition}"
    )


def _broken(spec: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    """Discovery document, TrainingPipeline and InputDataConfig; a split and a destination are oneofs in its proto."""
    yield from rules.broken(TRAINING_PIPELINE, spec)
    for field in ("modelId", "parentModel"):
        if spec.get(field) and "modelToUpload" not in spec:
            yield (field,), "says where a model goes, but there is no modelToUpload"
    if spec.get("modelId") and spec.get("parentModel"):
        yield ("modelId",), "names a new model, but parentModel names the one that gets a new version"
    if spec.get("modelId"):
        yield from models.id_broken(spec["modelId"], ("modelId",))
    if "modelToUpload" in spec:
        yield from models.broken(spec["modelToUpload"], ("modelToUpload",))
    data = spec.get("inputDataConfig", {})
    for choices in (_SPLITS, ("gcsDestination", "bigqueryDestination")):
        given = [name for name in choices if name in data]
        if len(given) > 1:
            yield ("inputDataConfig", given[1]), f"cannot be set beside {given[0]}"
