"""Training pipelines: the job that each one runs, their shape as declared, and their validation with that job."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Required

from pydantic.alias_generators import to_camel, to_snake
from typing_extensions import TypedDict

from vertex_api.messages import scalars_as_text, without_defaults
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE, Kind
from vertex_api.scalars import Int32, String
from vertex_api.types import CustomJobSpec, EncryptionSpec, InputDataConfig, Model, StudySpec
from vertex_api.validation.check import ValidPart, ValuePredicate, beside_another_task, job_violations, never_unresolved
from vertex_api.validation.model import check_pipeline_fields
from vertex_api.validation.shape import MUST_BE_OBJECT, FieldProblem, OutputOnlyPolicy, canonicalize, of_service, read


class TuningTaskInputs(TypedDict, total=False):
    """What a tuning task takes: a study, and the job of each of its trials."""

    studySpec: Required[StudySpec]
    """The metrics, the parameters and the algorithm of the search."""
    trialJobSpec: Required[CustomJobSpec]
    """What each trial runs."""
    maxTrialCount: Required[Int32]
    """How many trials there are."""
    parallelTrialCount: Required[Int32]
    """How many of them run at the same time."""
    maxFailedTrialCount: Int32
    """After how many failed trials the search fails."""


class TrainingPipeline(TypedDict, total=False):
    """A pipeline that runs a custom or a tuning job, and may upload its model.

    A `modelToUpload` without a display name has the pipeline's.
    """

    displayName: Required[String]
    """The name that the console shows."""
    labels: dict[str, String]
    """Labels of the pipeline."""
    encryptionSpec: EncryptionSpec
    """The key that encrypts the pipeline, its job and its model."""
    inputDataConfig: InputDataConfig
    """The managed dataset that the job trains on."""
    trainingTaskDefinition: String
    """Which kind of job runs; without it, the inputs say so."""
    trainingTaskInputs: Required[CustomJobSpec | TuningTaskInputs]
    """The job that runs: the fields of a CustomJobSpec, or of a search."""
    modelToUpload: Model
    """The model that is uploaded after the training, with its serving container."""
    modelId: String
    """The ID that the model gets."""
    parentModel: String
    """The model of which the upload is a new version."""


_DEFINITIONS = "gs://google-cloud-aiplatform/schema/trainingjob/definition/"
CUSTOM_TASK = f"{_DEFINITIONS}custom_task_1.0.0.yaml"
TUNING_TASK = f"{_DEFINITIONS}hyperparameter_tuning_task_1.0.0.yaml"
TASK_KINDS = {CUSTOM_TASK: CUSTOM_JOB, TUNING_TASK: HYPERPARAMETER_TUNING_JOB}
"""The kind of job that each task definition runs."""

DEFINITION_FIELD, INPUTS_FIELD = "trainingTaskDefinition", TRAINING_PIPELINE.spec_field
SHARED_FIELDS = ("displayName", "labels", "encryptionSpec")
"""The fields of the job that are set on the pipeline itself."""

NAME_ENDINGS = {CUSTOM_TASK: "custom-job", TUNING_TASK: "hyperparameter-tuning-job"}
"""What the service appends to the display name of a pipeline for that of its job."""


def backing_kind(pipeline: Mapping[str, Any]) -> Kind:
    """Return the kind of job that a canonical pipeline runs."""
    return TASK_KINDS[pipeline[DEFINITION_FIELD]]


BACKING_CUSTOM_JOB, BACKING_TUNING_JOB = "backingCustomJob", "backingHyperparameterTuningJob"
"""Fields of `trainingTaskMetadata`. Google's SDK reads the first; the name of the other one follows its pattern."""


def backing_job_name(pipeline: Mapping[str, Any]) -> str | None:
    """Return the resource name of the job that a pipeline of the service runs, None before there is one."""
    metadata = pipeline.get("trainingTaskMetadata") or {}
    name = metadata.get(BACKING_CUSTOM_JOB) or metadata.get(BACKING_TUNING_JOB)
    return str(name) if name else None


def pipeline_path(backing_job_kind: Kind, path: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Return where the field at `path` of a backing job is in its pipeline."""
    if path and path[0] in SHARED_FIELDS:
        return path
    return (INPUTS_FIELD, *(path[1:] if backing_job_kind == CUSTOM_JOB else path))


def inputs_to_job(kind: Kind, pipeline: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the job of a kind with a task's inputs, and the shared fields of its pipeline."""
    shared = {name: pipeline[name] for name in SHARED_FIELDS if name in pipeline}
    if kind == CUSTOM_JOB:
        return {**shared, kind.spec_field: inputs}
    return {**{name: value for name, value in inputs.items() if to_camel(name) not in SHARED_FIELDS}, **shared}


def job_to_inputs(kind: Kind, job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs of the task that runs a job."""
    if kind == CUSTOM_JOB:
        return dict(job[kind.spec_field])
    return {name: value for name, value in job.items() if name not in SHARED_FIELDS}


_TASK_TITLES = {CUSTOM_TASK: "custom task", TUNING_TASK: "hyperparameter tuning task"}


@dataclass(frozen=True)
class PipelineValidation:
    """The canonical form `spec` of a pipeline, with the task's inputs as sent, and its `problems`.

    `job` is the canonical job that it runs, empty if the shape of the pipeline or of its inputs has problems.
    `headline` is the service's text for inputs that do not have their task's shape, else empty.
    """

    spec: dict[str, Any]
    problems: list[FieldProblem]
    headline: str = ""
    job: dict[str, Any] = field(default_factory=dict)


def validate_pipeline(
    body: object,
    *,
    output_only: OutputOnlyPolicy = "reject",
    is_unresolved_value: ValuePredicate = never_unresolved,
) -> PipelineValidation:
    """Return the canonical form of a TrainingPipeline, and every problem of it and of the job that it runs.

    In the inputs of a request, of which `output_only` fields are dropped, numbers and booleans stand for texts too:
    Google's SDK documents and sends them. A declaration is to say which text it means.
    """
    # The pipeline's own fields.
    message_type = TRAINING_PIPELINE.typed_dict
    spec, misshapen = canonicalize(message_type, body, output_only=output_only)
    if not isinstance(body, Mapping):
        return PipelineValidation(spec, misshapen)
    valid_part = ValidPart.of(message_type, spec, misshapen, output_only=output_only)
    violations = valid_part.problems(check_pipeline_fields, is_unresolved_value)
    problems = [*map(of_service, misshapen), *violations]

    # Which job its task runs, and with which inputs.
    definition = _get(spec, DEFINITION_FIELD)
    # The canonical form no longer has misspelt input fields that are unset.
    inputs = _get(body, INPUTS_FIELD)
    if definition not in list(TASK_KINDS):
        if isinstance(definition, str):
            message = f'"{definition}" is no task that runs training code; known: {", ".join(TASK_KINDS)}'
            problems = [*problems, FieldProblem((DEFINITION_FIELD,), message)]
        return PipelineValidation(spec, problems)

    headline = (
        "Unable to parse `training_pipeline.training_task_inputs` into "
        f"{_TASK_TITLES[definition]} `inputs` defined in the file: {definition}"
    )  # users' reports quote it for the custom task
    if not isinstance(inputs, Mapping):
        if (INPUTS_FIELD,) not in valid_part.removed_paths:  # else a misspelt field was meant as the inputs
            message = "is required" if inputs is None else MUST_BE_OBJECT
            problems = [*problems, FieldProblem((INPUTS_FIELD,), message)]
        return PipelineValidation(spec, problems, headline)

    # That job, whose problems are named by their places in the inputs.
    kind = TASK_KINDS[definition]
    job = inputs_to_job(kind, valid_part.value or {}, inputs)
    if output_only == "drop":  # a request
        job = scalars_as_text(kind.typed_dict, job)
    source = job
    job, malformed = canonicalize(kind.typed_dict, job)
    malformed = [of_service(beside_another_task(source, each)) for each in malformed]
    valid_job = ValidPart.of(kind.typed_dict, job, malformed)
    violations = valid_job.problems(lambda job: job_violations(kind, job), is_unresolved_value)
    problems += [
        replace(problem, path=pipeline_path(kind, problem.path))
        for problem in (*malformed, *violations)
        if problem.path[0] not in SHARED_FIELDS
    ]
    if kind == HYPERPARAMETER_TUNING_JOB:
        misplaced = [name for name in inputs if to_camel(name) in SHARED_FIELDS]
        problems += [FieldProblem((INPUTS_FIELD, name), "is set on the pipeline itself") for name in misplaced]

    headline = headline if malformed else ""
    return PipelineValidation(spec, problems, headline, job={} if misshapen or malformed else job)


def validate_declared(
    body: Any,
    *,
    output_only: OutputOnlyPolicy = "reject",
    is_unresolved_value: ValuePredicate = never_unresolved,
) -> tuple[dict[str, Any], list[FieldProblem]]:
    """Return the canonical form of a declared pipeline, its task's inputs included, and every problem it has.

    A declaration may leave out two fields. Without a task definition, inputs with a studySpec are those of a tuning
    task, and all others those of a custom task. Without a display name, the model gets that of the pipeline.
    """
    validated = validate_pipeline(_completed(body), output_only=output_only, is_unresolved_value=is_unresolved_value)
    if not validated.job:
        return body, validated.problems
    kind = backing_kind(validated.spec)
    inputs = job_to_inputs(kind, without_defaults(kind.typed_dict, validated.job))
    spec = without_defaults(TRAINING_PIPELINE.typed_dict, validated.spec)
    return {**spec, INPUTS_FIELD: inputs}, validated.problems


def job_of_pipeline(pipeline: Mapping[str, Any]) -> dict[str, Any]:
    """Return the canonical job that a valid canonical pipeline runs, under the name that the service gives it."""
    kind = backing_kind(pipeline)
    job = inputs_to_job(kind, pipeline, pipeline[INPUTS_FIELD])
    job, problems = read(kind.typed_dict, scalars_as_text(kind.typed_dict, job))
    assert not problems, problems
    return {**job, "displayName": f"{pipeline['displayName']}-{NAME_ENDINGS[pipeline[DEFINITION_FIELD]]}"}


def stored_pipeline(pipeline: Mapping[str, Any]) -> dict[str, Any]:
    """Return the canonical form of a pipeline of the service or of a state, its task's inputs included.

    Fields that the service alone sets are left out, and what these types lack is as it is. One of another shape is
    returned as it is.
    """
    spec, misshapen = read(TRAINING_PIPELINE.typed_dict, _completed(pipeline), output_only="drop")
    kind = TASK_KINDS.get(spec.get(DEFINITION_FIELD, ""))
    if misshapen or kind is None or not isinstance(inputs := spec.get(INPUTS_FIELD), Mapping):
        return dict(pipeline)
    job, malformed = read(kind.typed_dict, scalars_as_text(kind.typed_dict, inputs_to_job(kind, spec, inputs)))
    if malformed:
        return dict(pipeline)
    own = without_defaults(TRAINING_PIPELINE.typed_dict, spec)
    return {**own, INPUTS_FIELD: job_to_inputs(kind, without_defaults(kind.typed_dict, job))}


def _get(body: Mapping[str, Any], name: str) -> Any:
    return body.get(name, body.get(to_snake(name)))


def _completed(body: object) -> object:
    if not isinstance(body, Mapping):
        return body
    whole = dict(body)
    if _get(body, DEFINITION_FIELD) is None:
        inputs = _get(body, INPUTS_FIELD)
        has_study = isinstance(inputs, Mapping) and _get(inputs, "studySpec") is not None
        whole[DEFINITION_FIELD] = TUNING_TASK if has_study else CUSTOM_TASK
    for key in ("modelToUpload", to_snake("modelToUpload")):
        if isinstance(model := body.get(key), Mapping) and _get(model, "displayName") is None:
            whole[key] = {**model, "displayName": _get(body, "displayName")}
    return whole
