"""Training pipelines: the job that a pipeline's task asks for, and what is wrong with a pipeline.

A pipeline names a task definition and gives that task's inputs as free JSON. Google's SDK writes them in a mix of
snake_case and camelCase with every number as a float, because they travel as a google.protobuf.Value.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic.alias_generators import to_camel, to_snake

from vertex_api.fields import drop_unknown_fields
from vertex_api.kinds import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE, Kind
from vertex_api.validation import models, rules
from vertex_api.validation.rules import KeyPath, input_data
from vertex_api.validation.shape import (
    MUST_BE_OBJECT,
    FieldProblem,
    OutputOnly,
    ValuePredicate,
    check_partially,
    extract_valid_part,
    never_unresolved,
    validate_shape,
)

DEFINITIONS = "gs://google-cloud-aiplatform/schema/trainingjob/definition/"
CUSTOM_TASK = f"{DEFINITIONS}custom_task_1.0.0.yaml"
TUNING_TASK = f"{DEFINITIONS}hyperparameter_tuning_task_1.0.0.yaml"

_DEFINITION, _INPUTS = "trainingTaskDefinition", TRAINING_PIPELINE.spec_field
_KINDS = {CUSTOM_TASK: CUSTOM_JOB, TUNING_TASK: HYPERPARAMETER_TUNING_JOB}
_TASK_NAMES = {CUSTOM_TASK: "custom task", TUNING_TASK: "hyperparameter tuning task"}
_SUFFIXES = {CUSTOM_TASK: "custom-job", TUNING_TASK: "hyperparameter-tuning-job"}
_SHARED = ("displayName", "labels", "encryptionSpec")  # what the pipeline itself says of its job


@dataclass(frozen=True)
class ParsedPipeline:
    """A pipeline as read: `spec` in canonical form (the task's inputs as sent), and its `problems`.

    `job` is the canonical job of its task, empty where one of the two has not its shape. `headline` is the service's
    text for inputs that do not have their task's shape, else empty.
    """

    spec: dict[str, Any]
    problems: list[FieldProblem]
    headline: str = ""
    job: dict[str, Any] = field(default_factory=dict)


def parse_pipeline(
    body: object, *, output_only: OutputOnly = "refuse", has_unresolved_references: ValuePredicate = never_unresolved
) -> ParsedPipeline:
    """The canonical form of a TrainingPipeline and every problem it has: of its own, and of the job of its task."""
    spec, misshapen = validate_shape(TRAINING_PIPELINE.message, body, output_only=output_only)
    if not isinstance(body, Mapping):
        return ParsedPipeline(spec, misshapen)
    left = extract_valid_part(TRAINING_PIPELINE.message, spec, misshapen, output_only=output_only)
    problems = [*misshapen, *check_partially(_broken, left, has_unresolved_references)]
    # In the inputs of the canonical form, misspelt names that are unset are not to be seen any more.
    definition, inputs = _given(spec, _DEFINITION), _given(body if output_only == "refuse" else spec, _INPUTS)
    if definition not in list(_KINDS):
        if isinstance(definition, str):
            message = f'"{definition}" is no task that runs training code; known: {", ".join(_KINDS)}'
            problems = [*problems, FieldProblem((_DEFINITION,), message)]
        return ParsedPipeline(spec, problems)
    if not isinstance(inputs, Mapping):
        if (_INPUTS,) not in left.withheld:  # else it is there under a name that is misspelt
            message = "is required" if inputs is None else MUST_BE_OBJECT
            problems = [*problems, FieldProblem((_INPUTS,), message)]
        return ParsedPipeline(spec, problems, _headline(definition))
    kind = _KINDS[definition]
    job, malformed = validate_shape(kind.message, _job(kind, left.value or {}, inputs))
    of_the_job = extract_valid_part(kind.message, job, malformed)
    found = [
        *malformed,
        *check_partially(lambda job: rules.find_violations(kind, job), of_the_job, has_unresolved_references),
    ]
    of_the_task = [
        FieldProblem(path_in_pipeline(kind, problem.path), problem.message)
        for problem in found
        if problem.path[0] not in _SHARED
    ]
    if kind == HYPERPARAMETER_TUNING_JOB:
        misplaced = [name for name in inputs if to_camel(name) in _SHARED]
        of_the_task += [FieldProblem((_INPUTS, name), "is set on the pipeline itself") for name in misplaced]
    is_whole = not misshapen and not malformed
    return ParsedPipeline(
        spec, [*problems, *of_the_task], _headline(definition) if malformed else "", job if is_whole else {}
    )


def validate_declared_pipeline(
    body: Any, *, output_only: OutputOnly = "refuse", has_unresolved_references: ValuePredicate = never_unresolved
) -> tuple[dict[str, Any], list[FieldProblem]]:
    """The canonical form of a declared pipeline, with its task's inputs canonical too, and every problem it has.

    Two fields can be left out: the task's definition, as inputs with a studySpec are those of a tuning task and others
    of a custom task, and the model's display name, which is then the pipeline's.
    """
    reading = parse_pipeline(
        _completed(body), output_only=output_only, has_unresolved_references=has_unresolved_references
    )
    if not reading.job:
        return body, reading.problems
    return {**reading.spec, _INPUTS: _inputs(backing_kind(reading.spec), reading.job)}, reading.problems


def pipeline_from_service(pipeline: Mapping[str, Any]) -> dict[str, Any]:
    """The canonical form of a pipeline as the service shows it, without what these types do not know."""
    found = dict(pipeline)
    kind = _KINDS.get(pipeline.get(_DEFINITION, ""))
    if kind is not None and isinstance(inputs := pipeline.get(_INPUTS), Mapping):
        found[_INPUTS] = _inputs(kind, drop_unknown_fields(kind.message, _job(kind, {}, inputs)))
    return validate_declared_pipeline(found, output_only="drop")[0]


def backing_kind(spec: Mapping[str, Any]) -> Kind:
    """The kind of job that a canonical pipeline runs."""
    return _KINDS[spec[_DEFINITION]]


def build_backing_job(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The canonical job of a canonical pipeline without problems. Its name is as the service makes it up."""
    kind = backing_kind(spec)
    job, problems = validate_shape(kind.message, _job(kind, spec, spec[_INPUTS]))
    assert not problems, problems
    job["displayName"] = f"{spec['displayName']}-{_SUFFIXES[spec[_DEFINITION]]}"
    return dict(job)


def get_backing_job_name(pipeline: Mapping[str, Any]) -> str | None:
    """The resource name of the job that a pipeline runs, as the service shows it; None before there is one.

    Google's SDK reads the first of the two fields; the second is made after it.
    """
    metadata = pipeline.get("trainingTaskMetadata") or {}
    name = metadata.get("backingCustomJob") or metadata.get("backingHyperparameterTuningJob")
    return str(name) if name else None


def path_in_pipeline(kind: Kind, path: KeyPath) -> KeyPath:
    """Where a field of the backing job stands in its pipeline."""
    if path and path[0] in _SHARED:
        return path
    return (_INPUTS, *(path[1:] if kind == CUSTOM_JOB else path))


def _given(body: Mapping[str, Any], name: str) -> Any:
    """A field in either spelling."""
    return body.get(name, body.get(to_snake(name)))


def _completed(body: object) -> object:
    if not isinstance(body, Mapping):
        return body
    whole = dict(body)
    if _given(body, _DEFINITION) is None:
        inputs = _given(body, _INPUTS)
        tunes = isinstance(inputs, Mapping) and _given(inputs, "studySpec") is not None
        whole[_DEFINITION] = TUNING_TASK if tunes else CUSTOM_TASK
    for key in ("modelToUpload", to_snake("modelToUpload")):
        if isinstance(model := body.get(key), Mapping) and _given(model, "displayName") is None:
            whole[key] = {**model, "displayName": _given(body, "displayName")}
    return whole


def _job(kind: Kind, spec: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The job of a task, with what its pipeline says of it."""
    shared = {name: spec[name] for name in _SHARED if name in spec}
    if kind == CUSTOM_JOB:
        return {**shared, kind.spec_field: inputs}
    return {**{name: value for name, value in inputs.items() if to_camel(name) not in _SHARED}, **shared}


def _inputs(kind: Kind, job: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs of a task that gives a job."""
    if kind == CUSTOM_JOB:
        return dict(job[kind.spec_field])
    return {name: value for name, value in job.items() if name not in _SHARED}


def _headline(definition: str) -> str:
    """The service's text, seen in users' reports for the custom task."""
    return (
        f"Unable to parse `training_pipeline.training_task_inputs` into {_TASK_NAMES[definition]} `inputs` defined in "
        f"the file: {definition}"
    )


def _broken(spec: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    """Discovery document, TrainingPipeline."""
    yield from rules.find_violations(TRAINING_PIPELINE, spec)
    for name in ("modelId", "parentModel"):
        if spec.get(name) and "modelToUpload" not in spec:
            yield (name,), "says where a model goes, but there is no modelToUpload"
    if spec.get("modelId") and spec.get("parentModel"):
        yield ("modelId",), "names a new model, but parentModel names the one that gets a new version"
    if spec.get("modelId"):
        yield from models.find_model_id_violations(spec["modelId"], ("modelId",))
    if "modelToUpload" in spec:
        yield from models.find_model_violations(spec["modelToUpload"], ("modelToUpload",))
    if "inputDataConfig" in spec:
        yield from input_data.find_input_data_violations(spec["inputDataConfig"], ("inputDataConfig",))
