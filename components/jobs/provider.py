"""The providers of training jobs: a job is submitted once, found again, and removed in the right order."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pulumi import dynamic
from pulumi.output import Unknown

from vertex_api.errors import NotFound, shown_problems
from vertex_api.job import stored_job
from vertex_api.messages import value_at
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE, Kind, ResourceName
from vertex_api.pipelines import backing_job_name
from vertex_api.studies import count_ended, find_best

from ..runtime import target
from ..runtime.pacing import current
from ..runtime.provider import Provider
from ..runtime.target import Target, one_line_errors
from ..schema.declared_job import canonicalize_declared_spec_and_find_problems, get_deletion_policy
from .drifted_spec import copy_declared_with_differing_actual_values
from .named_job_adoption import (
    RERUN_MESSAGE,
    fetch_and_verify_adopted_job,
    find_adoption_violation_messages,
    is_same_job,
)
from .pipeline_tuning_job_fetching import fetch_tuning_job_of_pipeline_or_same_job
from .progress_lines import describe_run_summary_change_or_none
from .provider_inputs import REPLACING_INPUTS, REPLACING_INPUTS_OF_ADOPTED, JobInputs
from .recovery.job_labels import find_reserved_or_excess_label_violations
from .recovery.job_removal import remove_job
from .recovery.submitted_jobs_cache import get_submitted_jobs_cache
from .recovery_and_submission import remove_orphans_find_or_submit_job
from .result_references import fetch_result_values_by_reference


class JobProvider(Provider):
    """Jobs are immutable: a new spec is a new job. Only `delete` may take a while, until a cancelled job has ended."""

    kind: ClassVar[Kind]
    input_names = ("owner", "parent", "spec", "secrets", "jobs", "tensorboard", "rerun", "adopt", "lifecycle")

    def check(self, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.CheckResult:
        inputs = {name: news[name] for name in self.input_names if news.get(name) is not None}
        if "spec" not in inputs:
            # With --continue-on-error, it has outputs of a resource that has failed: the engine skips this job.
            return dynamic.CheckResult(inputs, [])
        adopt, declared = inputs.get("adopt"), inputs["spec"]
        spec, problems = canonicalize_declared_spec_and_find_problems(self.kind, declared, is_name_required=not adopt)
        failures = [
            dynamic.CheckFailure(f"spec.{problem.place}", problem.message)
            for problem in problems
            if not isinstance(value_at(declared, problem.path), Unknown)
        ]
        if adopt:
            project, _, region = inputs["parent"].split("/")[-3:]
            messages = find_adoption_violation_messages(self.kind, adopt, project, None, region)
            failures += [dynamic.CheckFailure("adopt", message) for message in messages]
            if inputs.get("rerun"):
                failures.append(dynamic.CheckFailure("rerun", RERUN_MESSAGE))
        elif spec:
            for path, message in find_reserved_or_excess_label_violations(spec.fields.get("labels", {})):
                failures.append(dynamic.CheckFailure(".".join(("spec.labels", *map(str, path))), message))
        if not olds:
            _record_submissions_and_print_total_if_last_and_slow(inputs, None, is_replaced=False)
        shown, more = shown_problems(failures)
        excess = [dynamic.CheckFailure("spec", more)] if more else []
        return dynamic.CheckResult({**inputs, **({"spec": spec.fields} if spec else {})}, [*shown, *excess])

    def diff(self, id_: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.DiffResult:
        """Leave differences to Pulumi. A job is replaced by one to adopt, unless that is the job itself."""
        is_other_job = bool(news.get("adopt")) and not is_same_job(news["adopt"], id_)
        replacing = REPLACING_INPUTS_OF_ADOPTED if news.get("adopt") else REPLACING_INPUTS
        is_edited = any(olds.get(name) != news.get(name) for name in replacing)
        _record_submissions_and_print_total_if_last_and_slow(news, olds, is_replaced=is_other_job or is_edited)
        return dynamic.DiffResult(replaces=["adopt"] if is_other_job else None)

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        outputs = self._adopt_find_or_submit_and_build_outputs(props)
        return dynamic.CreateResult(str(outputs["run"]["name"]), outputs)

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        if news.get("adopt"):
            return dynamic.UpdateResult(self._adopt_find_or_submit_and_build_outputs(news))
        return dynamic.UpdateResult({**news, **_copy_results_property_if_any(olds), "run": olds["run"]})

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        inputs = JobInputs.parse(self.kind, props)
        with one_line_errors(f"{inputs.pulumi_name}: not read"):
            api = target.resolve(inputs.parent)
            try:
                job = api.client.require(ResourceName.parse(id_))
            except NotFound:
                return dynamic.ReadResult(None, {})
            run = _fetch_and_build_run_summary(api, job)
        if change := describe_run_summary_change_or_none(inputs.pulumi_name, props.get("run") or {}, run):
            # A refresh shows changes of inputs only.
            print(change, flush=True)  # noqa: T201
        tables = inputs.build_reference_tables(props.get("results") or {})
        spec = copy_declared_with_differing_actual_values(inputs.spec.fields, stored_job(self.kind, job).fields, tables)
        return self.read_result(id_, {**props, "spec": spec}, **_copy_results_property_if_any(props), run=run)

    def delete(self, id_: str, props: dict[str, Any]) -> None:
        """Delete the job, cancel it, or leave it as it is, as `lifecycle.onDelete` says."""
        inputs, name = JobInputs.parse(self.kind, props), ResourceName.parse(id_)
        get_submitted_jobs_cache().record_deleted_or_kept(id_)
        if inputs.on_delete == "keep":
            return
        with one_line_errors(f"{inputs.pulumi_name}: not deleted"):
            client = target.resolve(inputs.parent).client
            remove_job(client, name, inputs.pulumi_name, keep_record=inputs.on_delete == "cancel")

    def _adopt_find_or_submit_and_build_outputs(self, props: dict[str, Any]) -> dict[str, Any]:
        """Return the outputs of a resource once its job exists: adopted by name, found again, or submitted."""
        inputs = JobInputs.parse(self.kind, props)
        with one_line_errors(inputs.error_prefix):
            api = target.resolve(inputs.parent)
            result_values = fetch_result_values_by_reference(api, inputs)
            tables = inputs.build_reference_tables(result_values)
            if inputs.adopted_job:
                job = fetch_and_verify_adopted_job(api, inputs, inputs.adopted_job, tables)
            else:
                job = remove_orphans_find_or_submit_job(api, inputs, tables, get_submitted_jobs_cache())
            run = _fetch_and_build_run_summary(api, job)
            return {**props, **_copy_results_property_if_any({"results": result_values}), "run": run}


class CustomJobProvider(JobProvider):
    """CustomJob: one run of a container or a Python package, on one machine or several."""

    kind = CUSTOM_JOB


class HyperparameterTuningJobProvider(JobProvider):
    """HyperparameterTuningJob: many runs, each with other parameters."""

    kind = HYPERPARAMETER_TUNING_JOB


class TrainingPipelineProvider(JobProvider):
    """TrainingPipeline: runs one of the two others, and may upload the model that it trains."""

    kind = TRAINING_PIPELINE


def _record_submissions_and_print_total_if_last_and_slow(
    new_inputs: Mapping[str, Any], old_inputs: Mapping[str, Any] | None, *, is_replaced: bool
) -> None:
    """Count the submissions for a job with these inputs; `old_inputs` is `None` for a new one.

    The last job of a run also prints their total, if it exceeds the pace.
    """
    submissions = 0
    if old_inputs is None or is_replaced:
        submissions += not new_inputs.get("adopt")
    if old_inputs is not None and is_replaced:
        submissions += (
            get_deletion_policy(old_inputs.get("lifecycle") or {}, is_adopted=bool(old_inputs.get("adopt"))) == "delete"
        )
    job_name = new_inputs["owner"].rpartition("/")[2]
    current().decide(job_name, submissions, target.pace(new_inputs["parent"]))


def _copy_results_property_if_any(props: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of references to results of other jobs, as they were when the job was submitted."""
    return {"results": props["results"]} if props.get("results") else {}


def _fetch_and_build_run_summary(api: Target, job: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a refresh shows of a job. It changes only with the job, or the next refresh would show a change."""
    name = ResourceName.parse(job["name"])
    logged_job = ResourceName.parse(backing_job_name(job) or job["name"])
    run = {
        "name": job["name"],
        "state": job["state"],
        "page": api.links.page(name),
        "logs": api.links.logs(logged_job),
    }
    if "error" in job:
        run["error"] = job["error"].get("message", "")
    tuning_job = fetch_tuning_job_of_pipeline_or_same_job(api, job)
    if ended := count_ended(tuning_job):
        run["trials"] = {"ended": ended, "of": int(tuning_job["maxTrialCount"])}
        if best_trial := find_best(tuning_job):
            run["bestTrial"] = best_trial
    return run
