"""Job: the one value for a job, wherever it comes from: declared, made by a program, scheduled, or read back.

    job, problems = parse_job(CUSTOM_JOB, body)   # what a user wrote: None and every problem, or a valid job
    job = stored_job(CUSTOM_JOB, answer)          # what the service or a state holds: rules do not apply again
    job.job_spec, job.pools, job.max_seconds, job.trials, job.metrics, job.model_dir, job.result_names

A job is validated once at each border: where declarations are read, where a program creates a resource, where Pulumi's
engine calls a provider. Everything behind a border takes a `Job`, which is immutable: `job.replace(fields)` is another.
A training pipeline is a job too, and answers for the job that it runs: `job.backing` is that one.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal, cast

from vertex_api import pipelines, studies
from vertex_api.jobspec import DEFAULT_TIMEOUT, explicit_timeout, model_folder, replica_count
from vertex_api.messages import KeyPath, value_at, without_defaults
from vertex_api.names import CUSTOM_JOB, TRAINING_PIPELINE, JobJson, Kind
from vertex_api.scalars import to_seconds
from vertex_api.validation.check import ValuePredicate, lift, never_unresolved, validate_job
from vertex_api.validation.shape import FieldProblem, read
from vertex_api.validation.study import walk_parameters

MODEL_DIR = "modelDir"
TUNING_JOB = "tuningJob"
"""The key under which a reader of pipelines attaches the tuning job that one runs, beside the pipeline's own fields."""
_NAME = "displayName"


@dataclass(frozen=True)
class Job:
    """A valid job or training pipeline: camelCase names, enum names, whole numbers as int, unset fields absent.

    `fields` are those of the API's message. Texts in them may hold references that are filled in later. A job that is
    adopted may lack a `displayName`. `lifted` are the problems that it has all the same; a field or value of the API
    that these types lack is in the fields as it is.
    """

    kind: Kind
    fields: Mapping[str, Any]
    lifted: tuple[FieldProblem, ...] = field(default=(), compare=False)

    @classmethod
    def of_pools(cls, pools: Sequence[Mapping[str, Any]], bound: Literal["min", "max"]) -> "Job":
        """Return the job that takes the same machines as ResourcePools with as many as autoscaling's bound allows."""

        def replicas(pool: Mapping[str, Any]) -> int:
            return int(pool.get("autoscalingSpec", {}).get(f"{bound}ReplicaCount", replica_count(pool)))

        worker_pools = [{**pool, "replicaCount": replicas(pool)} for pool in pools]
        return cls(CUSTOM_JOB, {"jobSpec": {"workerPoolSpecs": worker_pools}})

    def replace(self, fields: Mapping[str, Any]) -> "Job":
        """Return the job with other fields, which must be canonical."""
        return replace(self, fields=fields)

    @cached_property
    def backing(self) -> "Job":
        """The job that trains: the one that a pipeline runs, or this job itself."""
        if self.kind != TRAINING_PIPELINE:
            return self
        named = {_NAME: "", **self.fields}
        return Job(pipelines.backing_kind(named), pipelines.job_of_pipeline(named))

    @property
    def study_spec(self) -> Mapping[str, Any] | None:
        """The StudySpec of a tuning job or a pipeline that runs one, else None."""
        return self.backing.fields.get("studySpec")

    @property
    def metrics(self) -> list[studies.Metric]:
        """The metrics of the study; none without one."""
        return studies.study_metrics(self.study_spec) if self.study_spec else []

    @property
    def trials(self) -> int:
        """How many runs it has at most: trials of a study, or one."""
        return int(self.backing.fields.get("maxTrialCount", 1))

    @property
    def parallel_trials(self) -> int:
        """How many of its runs take machines at the same time."""
        return min(int(self.backing.fields.get("parallelTrialCount", 1)), self.trials)

    @property
    def job_spec(self) -> Mapping[str, Any]:
        """The CustomJobSpec: of a tuning job that of each trial."""
        return cast(Mapping[str, Any], value_at(self.fields, self.job_spec_path))

    @property
    def job_spec_path(self) -> KeyPath:
        """Where the CustomJobSpec stands in `fields`."""
        return self.own_path((self._backing_kind.spec_field,))

    @property
    def pools(self) -> list[Mapping[str, Any]]:
        """The worker pools that have machines of their own: none on a persistent resource, and no empty ones."""
        return [] if self.persistent_resource else [pool for pool in self.job_spec["workerPoolSpecs"] if pool]

    @property
    def persistent_resource(self) -> str | None:
        """The id of the persistent resource that it runs on, if it does."""
        return self.job_spec.get("persistentResourceId") or None

    @property
    def timeout(self) -> str | None:
        """The Duration that a run may take, None if the default applies."""
        return explicit_timeout(self.job_spec)

    @property
    def max_seconds(self) -> float:
        """How long a run may take: its timeout, or the default."""
        return to_seconds(self.timeout or DEFAULT_TIMEOUT)

    @property
    def model_dir(self) -> str | None:
        """The folder of the model, which is known before the job runs; None for trials, whose best one has it."""
        return None if self.study_spec else model_folder(self.job_spec)

    @property
    def result_names(self) -> list[str]:
        """The names of its results that other jobs may refer to."""
        names = ["name", MODEL_DIR]
        if self.kind == TRAINING_PIPELINE:
            names += ["backingJob", *(["model"] if "modelToUpload" in self.fields else [])]
        if study := self.study_spec:
            ids = (parameter["parameterId"] for parameter, _, _ in walk_parameters(study["parameters"], ()))
            names += ["bestTrial.id", *(f"bestTrial.parameters.{id_}" for id_ in dict.fromkeys(ids))]
            names += [f"bestTrial.metrics.{metric['metricId']}" for metric in study["metrics"]]
        return names

    def own_path(self, path: KeyPath) -> KeyPath:
        """Return where a field of `backing` stands in `fields`."""
        return pipelines.pipeline_path(self._backing_kind, path) if self.kind == TRAINING_PIPELINE else path

    @property
    def _backing_kind(self) -> Kind:
        return pipelines.backing_kind(self.fields) if self.kind == TRAINING_PIPELINE else self.kind


def parse_job(
    kind: Kind,
    body: Any,
    *,
    is_name_required: bool = True,
    is_unresolved_value: ValuePredicate = never_unresolved,
    allowed: Collection[str] = (),
) -> tuple[Job | None, list[FieldProblem]]:
    """Return the job that a body describes, None if it has problems, and every problem that it has.

    `is_name_required` is false for a job that is adopted: it has a `displayName` already. Rules do not apply to texts
    that have unresolved references, and the service's own do not at the places that are `allowed`: paths as problems
    show them.
    """
    is_unnamed = not is_name_required and isinstance(body, Mapping) and not body.keys() & {_NAME, "display_name"}
    named = {**body, _NAME: kind.type} if is_unnamed else body
    validate = partial(
        pipelines.validate_declared if kind == TRAINING_PIPELINE else partial(validate_job, kind),
        is_unresolved_value=is_unresolved_value,
    )
    fields, problems = validate(named)
    lifted: list[FieldProblem] = []
    if problems and allowed:
        problems, lifted = lift(lambda rest: validate(rest)[1], named, problems, allowed)
    if problems:
        return None, problems
    if lifted:
        fields = {**stored_job(kind, named).fields}
    kept = {key: fields[key] for key in fields if not (is_unnamed and key == _NAME)}
    return Job(kind, kept, tuple(lifted)), []


def stored_job(kind: Kind, job: JobJson) -> Job:
    """Return a valid job as the service or Pulumi's state holds it, without applying rules.

    Fields that only the service sets are left out. Pulumi's engine turns whole numbers into floats.
    """
    named = {_NAME: kind.type, **job}
    if kind == TRAINING_PIPELINE:
        fields = pipelines.stored_pipeline(named)
    else:
        fields, misshapen = read(kind.typed_dict, named, output_only="drop")
        fields = fields if misshapen else without_defaults(kind.typed_dict, fields)
    return Job(kind, {key: fields[key] for key in fields if key != _NAME or _NAME in job})


def is_pipeline(job: JobJson) -> bool:
    """Return whether a job of the service is a training pipeline."""
    return TRAINING_PIPELINE.spec_field in job


def job_results(job: JobJson) -> dict[str, Any]:
    """Return the results of a job: the API's `state`, `modelDir`, and of a tuning job `bestTrial` and `trials`.

    A failed job has an `error`. `modelDir` of a tuning job is that of its best trial. With several objectives,
    `paretoTrials` are those that no other trial beats in all of them. `unreported` has, by metric, the ids of trials
    that ended without it. Trials are rows as `studies.trial_summary` makes them. A pipeline has the results of the job
    that it runs (of the tuning job attached as `TUNING_JOB`), and the names of its `backingJob` and `model`.
    """
    results: dict[str, Any] = {"state": job["state"]}
    if "error" in job:
        results["error"] = job["error"].get("message", "")
    if is_pipeline(job):
        names = {
            "backingJob": pipelines.backing_job_name(job),
            "model": job.get("modelToUpload", {}).get("name"),
        }
        results |= {key: name for key, name in names.items() if name}
    job = training_of(job)
    if "studySpec" not in job:
        return results | _model_dir(job["jobSpec"])
    if best_trial := studies.find_best(job):
        results |= _model_dir(job["trialJobSpec"], best_trial["id"])
    if len(studies.objectives_of(job["studySpec"])) > 1:
        results["paretoTrials"] = studies.pareto_front(job)
    if unreported := studies.unreported_metrics(job):
        results["unreported"] = unreported
    return results | {"bestTrial": best_trial, "trials": studies.trial_summaries(job)}


def training_of(job: JobJson) -> Mapping[str, Any]:
    """Return the fields of the job that trains: of the one that a pipeline runs, or of this job itself."""
    if not is_pipeline(job):
        return job
    return cast(JobJson, job[TUNING_JOB]) if TUNING_JOB in job else stored_job(TRAINING_PIPELINE, job).backing.fields


def _model_dir(job_spec: Mapping[str, Any], trial_id: str = "") -> dict[str, str]:
    folder = model_folder(job_spec, trial_id)
    return {MODEL_DIR: folder} if folder else {}
