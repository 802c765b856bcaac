"""What a program writes: the three kinds of jobs as Pulumi resources, and Completion, which waits for jobs."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast

import pulumi
from pulumi import dynamic

from vertex_api.errors import VertexError
from vertex_api.job import Job, stored_job
from vertex_api.names import (
    CUSTOM_JOB,
    HYPERPARAMETER_TUNING_JOB,
    TRAINING_PIPELINE,
    Kind,
    did_you_mean,
    join_names,
)
from vertex_api.validation.shape import canonicalize

from .. import providers
from ..data.lock import LockedData, report_unlocked
from ..errors import DeclarationErrors
from ..plan.arguments import checked
from ..plan.job_rules import expand_name
from ..plan.programmed import Foundation, default_foundation
from ..plan.training import Defaults, Training, place
from ..runtime.resource import DynamicResource, has_output, when_known
from ..schema import formats, interpolation, shapes
from . import moves
from .identity import run_digest
from .inputs import REPLACING, REPLACING_ADOPTED

if TYPE_CHECKING:
    from ..args import CustomJobArgs, HyperparameterTuningJobArgs, TrainingPipelineArgs
else:  # the same keys, of messages that are loaded anyway: a preview does without a hundred more classes
    from vertex_api.pipelines import TrainingPipeline as TrainingPipelineArgs
    from vertex_api.types import CustomJob as CustomJobArgs
    from vertex_api.types import HyperparameterTuningJob as HyperparameterTuningJobArgs

Spec = TypeVar("Spec", CustomJobArgs, HyperparameterTuningJobArgs, TrainingPipelineArgs)


class _Job(DynamicResource, Generic[Spec]):
    """What all kinds share. `CustomJob` says what the arguments and the outputs are."""

    kind: ClassVar[Kind]
    provider: ClassVar[type[dynamic.ResourceProvider]]
    output_names = ("run", "spec")
    spec: pulumi.Output[Mapping[str, Any]]
    """The API's fields of the job: what it runs, but for labels and a display name that only its next run has."""
    run: pulumi.Output[Mapping[str, Any]]
    """The `name`, the `state` and the `page` of the job, and `logs`, the command that prints its log.

    After a refresh it has the `error` of a failed job, and of a search `trials` (`ended`, `of`) and `bestTrial`.
    """

    @checked
    def __init__(
        self,
        name: str,
        args: Spec,
        opts: pulumi.ResourceOptions | None = None,
        *,
        foundation: Foundation | None = None,
        lifecycle: shapes.Lifecycle | None = None,
        secrets: Mapping[str, pulumi.Input[str]] | None = None,
        jobs: "Mapping[str, CustomJob | HyperparameterTuningJob | TrainingPipeline] | None" = None,
        data: "Mapping[str, LockedData] | None" = None,
    ) -> None:
        resource = f'{type(self).__name__} "{name}"'
        _require_data(resource, data or {})
        foundation = foundation or default_foundation()
        self._foundation, self._place = foundation, (name, opts.parent if opts else None)
        self._completion: Completion | None = None
        given: Any = args
        used = jobs or {}
        _require_jobs(resource, used)
        # A declared job is made already. The signature does not say so: a union would make type checkers report a slip
        # in a dict as one mismatch of the whole, without the field.
        if is_declared := isinstance(given, Training):
            training: Training = given
        else:
            offered = _offered_results(foundation, args)
            if awaited := [job.completion for job_name, job in offered.items() if job_name not in used]:
                opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=awaited))
            used = {**offered, **used}
            results = {job_name: job.result_names for job_name, job in used.items()}
            training = foundation.program.make(self.kind, name, args, lifecycle or {}, secrets or {}, results)
            if refused := report_unlocked(
                data or {},
                lambda key, message: training.place(("data", key), message),
                is_cloud=foundation.program.plan.is_cloud,
            ):
                foundation.program.refuse(refused)
        self._rerun, self._adopted, self._declared = training.lifecycle.get("rerun", ""), "", training.spec
        self._upstream: list[pulumi.Input[str]] = [job.run_digest for _, job in sorted(used.items())]
        locked = {key: each for key, each in (data or {}).items() if each.summary and not training.is_adopted}
        summaries = {key: each.summary or {} for key, each in sorted(locked.items())}
        self._upstream += [f"{key} {summary['digest']}" for key, summary in summaries.items()]
        if training.is_adopted:
            # What it has beside what is declared stays as it is. A job that is adopted anew is another upstream job.
            self._spec: Any = training.spec
            self._adopted = expand_name(self.kind, foundation.full_location_name, training.lifecycle["adopt"])
            self._upstream.append(self._adopted)
        else:
            self._spec = when_known(
                lambda job, digests: job and as_submitted(job, foundation.defaults, name, self._rerun, digests),
                training.spec,
                self._upstream,
            )
        fields = (
            when_known(lambda valid: valid.fields, self._spec)
            if is_declared
            else foundation.program.fields(self._spec, foundation.job_dependencies)
        )
        props = self._inputs(name, fields, training.lifecycle, secrets, used)
        if not self._adopted:
            props[moves.DERIVED] = when_known(self._derive, self._declared, self._spec)
        if locked:
            props["data"] = summaries
            if modes := {key: each.verify for key, each in locked.items() if each.verify != "error"}:
                props["verify"] = modes
        super().__init__(self.provider(), name, props, self._options(opts))

    def _inputs(
        self,
        name: str,
        fields: pulumi.Input[Any],
        lifecycle: shapes.Lifecycle,
        secrets: Mapping[str, pulumi.Input[str]] | None,
        used: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Return what the provider gets. `used` are the jobs whose results the spec has."""
        props: dict[str, Any] = {
            "owner": f"{pulumi.get_project()}/{pulumi.get_stack()}/{name}",
            "parent": self._foundation.full_location_name,
            "spec": fields,
            "run": None,
        }
        # By itself, as a first `lifecycle` would not be seen as a change of what is in it.
        if self._rerun:
            props["rerun"] = self._rerun
        if self._adopted:
            props["adopt"] = self._adopted
        if others := {key: value for key, value in lifecycle.items() if key not in ("rerun", "adopt")}:
            props["lifecycle"] = others
        if secrets:
            props["secrets"] = pulumi.Output.secret(dict(secrets))
        if used:
            props["jobs"] = {job_name: job.id for job_name, job in used.items()}
        if (board := self._foundation.tensorboard_name) is not None:
            props["tensorboard"] = when_known(
                lambda spec: board if spec and _uses_tensorboard(spec) else None, self._spec
            )
        return props

    def _derive(self, declared: Job | None, whole: Job | None) -> dict[str, Any] | None:
        program = self._foundation.program
        if declared is None or whole is None:
            return None
        return moves.derived(declared, whole, program.images, program.packages, runs_relabelled=program.runs_relabelled)

    def _options(self, opts: pulumi.ResourceOptions | None) -> pulumi.ResourceOptions:
        """Return a user's options with those of all jobs.

        A job is deleted before it is replaced: a running job's machines are free before the new one asks for them, and
        a replacement that has the same token (`pulumi up --replace`) cannot adopt what is about to be deleted.
        """
        ours = pulumi.ResourceOptions(
            replace_on_changes=list(REPLACING_ADOPTED if self._adopted else REPLACING),
            delete_before_replace=True,
            depends_on=[*self._foundation.job_dependencies],
        )
        # A merge of nothing would be a thirtieth of a preview.
        return pulumi.ResourceOptions.merge(ours, opts) if opts else ours

    def result(self, name: str) -> str:
        """Return a reference to a result, such as `bestTrial.parameters.lr`, for a text in the spec of another job.

        The other job waits for this one, is submitted with the value in its place, and runs again when this one does.
        Raises RunError if another job of this name has been asked for results.
        """
        job_name = self._place[0]
        if self._foundation.program.offered.setdefault(job_name, self) is not self:
            raise pulumi.RunError(f'"{job_name}": two jobs have this name; pass them as `jobs`, by names of your own')
        return f"${{{interpolation.JOBS}.{job_name}.{name}}}"

    @property
    def completion(self) -> "Completion":
        """The `Completion` that waits for this job alone, to let other resources depend on it.

        It is made when it is first asked for, and named `wait-for-NAME`.
        """
        if self._completion is None:
            name, parent = self._place
            self._completion = Completion(
                f"wait-for-{name}",
                {name: cast(Any, self)},
                foundation=self._foundation,
                opts=pulumi.ResourceOptions(parent=parent),
            )
        return self._completion

    @property
    def best_trial(self) -> pulumi.Output[Mapping[str, Any] | None]:
        """The `id`, the `parameters` and the `metrics` of a search's best trial. `pulumi up` waits for the search."""
        return self.completion.results.apply(lambda results: results[self._place[0]].get("bestTrial"))

    @property
    def resource_name(self) -> pulumi.Output[str]:
        """The API's name of the job, `projects/P/locations/R/customJobs/ID`. It is the resource's `id` too."""
        return self.id

    @property
    def state(self) -> pulumi.Output[str]:
        """The state when the job was submitted or last refreshed, such as `JOB_STATE_RUNNING`."""
        return self.run.apply(lambda run: str(run["state"]))

    @property
    def page(self) -> pulumi.Output[str]:
        """The address of the job's page."""
        return self.run.apply(lambda run: str(run["page"]))

    @property
    def run_digest(self) -> pulumi.Input[str]:
        """Eight hex digits, known in a preview, that differ whenever the job would run anew."""
        return when_known(
            lambda fields, ids: run_digest(stored_job(self.kind, fields), self._rerun, ids) if fields else "",
            self.spec,
            self._upstream,
        )

    @property
    def result_names(self) -> Sequence[str] | None:
        """The names that `result` takes; None if they are not known yet."""
        if self._adopted or not isinstance(self._declared, Job):
            return None
        return self._declared.result_names

    @property
    def model_dir(self) -> pulumi.Output[str | None]:
        """The folder of the job's model, known in a preview; None for a search and for a spec with problems."""
        return self.spec.apply(lambda fields: stored_job(self.kind, fields).model_dir if fields else None)


def _require_jobs(resource: str, jobs: Any) -> None:
    """Raise RunError unless `jobs` are jobs by name."""
    if not isinstance(jobs, Mapping):
        raise pulumi.RunError(f'{resource}: jobs must be jobs by names of your own, {{"train": train}} ({jobs!r})')
    for name, job in jobs.items():
        if not isinstance(job, _Job):
            raise pulumi.RunError(f"{resource}: jobs.{name} must be a job, the resource itself ({job!r})")


def _require_data(resource: str, data: Mapping[str, Any]) -> None:
    """Raise DeclarationErrors unless each of `data` is locked data, as a TrainingStack has it."""
    if wrong := [name for name, each in data.items() if not hasattr(each, "summary")]:
        message = "must be one of the `data` of a TrainingStack, as in stack.data[{name!r}]"
        raise DeclarationErrors([place(resource)(("data", name), message.format(name=name)) for name in wrong])


def _require_deadlines(resource: str, deadlines: Mapping[str, str], jobs: Collection[str]) -> None:
    """Raise DeclarationErrors unless `deadlines` are durations of those jobs."""
    known = {name: value for name, value in deadlines.items() if not has_output(value)}
    _, misshapen = canonicalize(dict[str, formats.PositiveDuration], known)
    violations = [(each.path, each.message) for each in misshapen]
    violations += [
        ((name,), f"is not one of its jobs{did_you_mean(name, jobs) or f'; it waits for {join_names([*jobs])}'}")
        for name in deadlines
        if name not in jobs
    ]
    if violations:
        raise DeclarationErrors([place(resource)(("deadlines", *path), message) for path, message in violations])


def as_submitted(job: Job, defaults: Defaults, name: str, rerun: str = "", upstream: Sequence[str] = ()) -> Job:
    """Return a job with what it leaves out: the defaults of its stack, and a folder for the outputs of each run.

    `upstream` are the run digests of the jobs whose results it uses.
    """

    def folder(whole: Job, declared: str) -> str:
        return declared or f"{defaults.folder}/{name}/{run_digest(whole, rerun, upstream)}"

    return defaults.complete(job, folder)


def _offered_results(foundation: Foundation, spec: Any) -> dict[str, Any]:
    """Return the jobs whose `result` a spec has in its texts, by name."""
    offered = foundation.program.offered
    tables = (reference.partition(".") for _, reference in interpolation.references(spec)) if offered else ()
    names = {interpolation.split_result(rest, offered)[0] for table, _, rest in tables if table == interpolation.JOBS}
    return {name: job for name, job in offered.items() if name in names}


def _uses_tensorboard(spec: Job) -> bool:
    """Return whether a spec refers to the stack's TensorBoard."""
    return bool(spec.job_spec.get("tensorboard") == interpolation.TENSORBOARD_NAME)


class CustomJob(_Job[CustomJobArgs]):
    """A CustomJob of Vertex AI, which `pulumi up` submits once and does not wait for.

        train = CustomJob("train", {"displayName": "train", "jobSpec": {"workerPoolSpecs": [pool]}})

    The name has at most 63 lower-case letters, digits, `-`, `_` and `.`. The other arguments:

    - `args`: the API's fields (`CustomJobArgs`). A value in them may be an output of another resource, and a text
      may have `${secrets.NAME}` or a result of another job in it.
    - `opts`: Pulumi's options. Let the job depend on the images that it runs. Yours win over those that a job has by
      itself: it is deleted before it is replaced, and an edit of what it runs replaces it.
    - `foundation`: where it runs, and what it has where it says nothing; by default that of the program's
      `TrainingStack`, else one that is made of the stack file.
    - `lifecycle`: `rerun`, a text whose edit runs the job anew; `onDelete`, which is "delete", "cancel" or "keep";
      `adopt`, the id of an existing job that becomes this one; and `allow`, places that a rule of the service refuses,
      and that are submitted all the same.
    - `secrets`: the values of `${secrets.NAME}`, filled in when the job is submitted, and encrypted in the state.
    - `jobs`: the jobs behind `${jobs.NAME.RESULT}`, by names of your own; let this one depend on a `Completion` of
      them. With `other.result(RESULT)` in a text, both happen by themselves.
    - `data`: what it trains on, of the stack's `TrainingStack.data`, by names of your own: the job runs again when its
      lock changes, and is not submitted if the data is not as locked. `data["train"].uri` is for a text in the spec.

    Outputs: `resource_name`, `state`, `page` and `run` are known once the job is submitted, `spec`, `model_dir`,
    `run_digest` and `result_names` already in a preview. `pulumi up` waits for `best_trial` and `completion`.

    Errors: what breaks a rule of the API or of the stack is reported for all jobs of the program at once, as
    `errors.DeclarationErrors`, and none of them is submitted. If Vertex AI refuses the job, `pulumi up` fails with its
    reason. A job that fails when it runs fails the `Completion` that waits for it, and nothing else.
    """

    kind, provider = CUSTOM_JOB, providers.CustomJob


class HyperparameterTuningJob(_Job[HyperparameterTuningJobArgs]):
    """A HyperparameterTuningJob of Vertex AI, a search: many trials, each with other parameters.

    `args` have the API's fields (`HyperparameterTuningJobArgs`).
    All else is as for `CustomJob`: arguments, outputs and errors. `model_dir` is None, as each trial has its own.
    """

    kind, provider = HYPERPARAMETER_TUNING_JOB, providers.HyperparameterTuningJob


class TrainingPipeline(_Job[TrainingPipelineArgs]):
    """A TrainingPipeline of Vertex AI, which runs a custom job or a search, and may upload its model.

    `args` have the API's fields (`TrainingPipelineArgs`). All else is
    as for `CustomJob`: arguments, outputs and errors.
    """

    kind, provider = TRAINING_PIPELINE, providers.TrainingPipeline


class Completion(DynamicResource):
    """Waits until jobs have ended, says meanwhile what happens, and has their results.

        Completion("done", {"train": train}).results.apply(lambda results: results["train"]["modelDir"])

    - `jobs`: the jobs to wait for, by names of your own.
    - `opts`: Pulumi's options.
    - `foundation`: where the jobs are; by default as for `CustomJob`.
    - `deadlines`: durations such as "7200s", by the same names. If a job takes longer, the Completion fails, and the
      job stays active.
    - `omit_failed`: if a job cannot be submitted, `pulumi up --continue-on-error` skips the Completion. With this, it
      waits for the other jobs, and `results` lacks the failed one.

    Output: `results`.

    Errors: `pulumi up` fails (`errors.TrainingFailed`) soon after a job has failed (a tenth of the wait so far, 1 to 15
    seconds, as jobs often fail together), with the reason of each job that has, its last exception, the likely cause
    and the last log lines, or if one is deleted or misses its deadline. Jobs that are active are named and go on, and
    the next `pulumi up` waits again.
    """

    output_names = ("results",)
    results: pulumi.Output[Mapping[str, Any]]
    """By name of a job its `state`, `modelDir` and `metrics`, and of a search its `bestTrial` and `trials`.

    docs/configuration.md#results lists them all.
    """

    @checked
    def __init__(
        self,
        name: str,
        jobs: Mapping[str, CustomJob | HyperparameterTuningJob | TrainingPipeline],
        opts: pulumi.ResourceOptions | None = None,
        *,
        foundation: Foundation | None = None,
        deadlines: Mapping[str, str] | None = None,
        omit_failed: bool = False,
    ) -> None:
        resource = f'Completion "{name}"'
        foundation = foundation or default_foundation()
        _require_jobs(resource, jobs)
        _require_deadlines(resource, deadlines or {}, jobs)
        self._submitted = {name: job.recovered("id") for name, job in jobs.items()}
        self._parent, self._owner = foundation.full_location_name, f"{pulumi.get_project()}/{pulumi.get_stack()}"
        props: dict[str, Any] = {
            "jobs": self._submitted if omit_failed else {name: job.id for name, job in jobs.items()},
            "owner": self._owner,
            "parent": self._parent,
            "results": None,
        }
        if deadlines:
            props["deadlines"] = dict(deadlines)
        super().__init__(providers.Completion(), name, props, opts)

    def results_so_far(self) -> pulumi.Output[Mapping[str, Any]]:
        """Return the results; if the wait has failed, those that each submitted job has now."""

        def fetch(ids: Mapping[str, Any]) -> dict[str, Any]:
            from . import lookup

            with suppress(VertexError):  # `pulumi up` reports why the wait has failed
                return lookup.results(self._parent, self._owner, ids)
            return {}

        return self.recovered("results", lambda: pulumi.Output.all(**self._submitted).apply(fetch))
