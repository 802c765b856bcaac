"""The provider of training jobs: submits a job once, finds it again, and removes it in the right order."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pulumi import dynamic
from pulumi.runtime import rpc

from vertex_api.errors import NotFound
from vertex_api.kinds import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE, Kind
from vertex_api.names import ResourceName
from vertex_api.studies import trials
from vertex_api.validation.canonical import CanonicalSpec, restore_spec, validate_spec
from vertex_api.validation.pipeline_tasks import get_backing_job_name
from vertex_api.validation.shape import FieldProblem

from ..errors import SubmitFailed
from ..runtime import engine, target
from ..runtime.api_errors import api_errors_as
from ..runtime.engine import Provider
from ..runtime.target import Target
from ..schema import references
from ..schema.lifecycle import get_deletion_policy
from . import adoption, drift, progress, results
from .pipeline_results import searching
from .recovery import orphans as unrecorded
from .recovery import ownership, removal, submissions

INPUTS = ("owner", "parent", "spec", "secrets", "jobs", "rerun", "adopt", "lifecycle")


@dataclass(frozen=True)
class _Inputs:
    owner: str
    parent: str
    spec: CanonicalSpec
    secrets: dict[str, str]
    jobs: dict[str, str]
    on_delete: str
    rerun: int
    adopt: str | None

    @classmethod
    def of(cls, kind: Kind, props: Mapping[str, Any]) -> "_Inputs":
        adopt = props.get("adopt")
        return cls(
            owner=props["owner"],
            parent=props["parent"],
            spec=restore_spec(kind, props["spec"]),
            secrets=props.get("secrets") or {},
            jobs=props.get("jobs") or {},
            on_delete=get_deletion_policy(props.get("lifecycle") or {}, bool(adopt)),
            rerun=int(props.get("rerun") or 0),
            adopt=adopt,
        )

    @property
    def name(self) -> str:
        return self.owner.rpartition("/")[2]

    @property
    def stack(self) -> str:
        return self.owner.rpartition("/")[0]


class JobProvider(Provider):
    """Jobs are immutable: a new spec is a new job. Only `delete` may take a while, until a cancelled job has ended."""

    kind: ClassVar[Kind]

    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> dynamic.CheckResult:
        inputs = {name: news[name] for name in INPUTS if news.get(name) is not None}
        spec, problems = validate_spec(
            self.kind,
            inputs["spec"],
            is_name_required="adopt" not in inputs,
            has_unresolved_references=references.has_unresolved_references,
        )
        failures = [
            dynamic.CheckFailure(f"spec.{problem.field}", problem.message)
            for problem in problems
            if not _unknown(inputs["spec"], problem)
        ]
        if adopt := inputs.get("adopt"):
            project, _, region = inputs["parent"].split("/")[-3:]
            found = adoption.broken(self.kind, adopt, project, None, region)
            failures += [dynamic.CheckFailure("adopt", message) for message in found]
            if inputs.get("rerun"):
                failures.append(dynamic.CheckFailure("rerun", adoption.NOT_RUN))
        elif spec:
            found_in_labels = ownership.labels_broken(spec.fields.get("labels", {}))
            failures += [
                dynamic.CheckFailure(".".join(("spec.labels", *map(str, path))), message)
                for path, message in found_in_labels
            ]
        return dynamic.CheckResult({**inputs, **({"spec": spec.fields} if spec else {})}, failures)

    def diff(self, id_: str, _olds: dict[str, Any], news: dict[str, Any]) -> dynamic.DiffResult:
        """What differs is for Pulumi to say. A job is replaced by one to adopt, unless that is the job itself."""
        adopt = news.get("adopt")
        return dynamic.DiffResult(replaces=["adopt"] if adopt and not adoption.is_of(adopt, id_) else None)

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        outs = self._made(props)
        return dynamic.CreateResult(str(outs["run"]["name"]), outs)

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        if news.get("adopt"):
            return dynamic.UpdateResult(self._made(news))
        return dynamic.UpdateResult({**news, **_outputs(olds), "run": olds["run"]})

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        inputs = _Inputs.of(self.kind, props)
        with api_errors_as(f"{inputs.name}: not read"):
            at = target.connect(inputs.parent)
            try:
                job = at.client.get(ResourceName.parse(id_))
            except NotFound:
                return dynamic.ReadResult(None, {})
            run = _run(at, job)
        if line := progress.moved(inputs.name, props.get("run") or {}, run):
            # Pulumi shows of a refresh what moves in inputs only.
            print(line, flush=True)  # noqa: T201
        used = _outputs(props)
        tables = {"secrets": inputs.secrets, references.JOBS: used.get("results", {})}
        spec = drift.declared_part(inputs.spec.fields, restore_spec(self.kind, job).fields, tables)
        declared = {name: props[name] for name in INPUTS if name in props} | {"spec": spec}
        return dynamic.ReadResult(id_, {**declared, **used, "run": run}, declared)

    def delete(self, id_: str, props: dict[str, Any]) -> None:
        inputs, name = _Inputs.of(self.kind, props), ResourceName.parse(id_)
        submissions.let_go(id_)
        if inputs.on_delete == "keep":
            return
        client = target.connect(inputs.parent).client
        with api_errors_as(f"{inputs.name}: not deleted"):
            removal.remove(client, name, inputs.name, keep_record=inputs.on_delete == "cancel")

    def _made(self, props: dict[str, Any]) -> dict[str, Any]:
        """The outputs of a resource whose job is there: submitted, found, or adopted by its name."""
        inputs = _Inputs.of(self.kind, props)
        doing = f"{inputs.name}: {f'{inputs.adopt} is not adopted' if inputs.adopt else 'not submitted'}"
        with api_errors_as(doing):
            at = target.connect(inputs.parent)
            known = results.values(at, inputs.stack, inputs.jobs, results.referenced(inputs.spec.fields), doing)
            if inputs.adopt:
                job: Mapping[str, Any] = at.client.get(ResourceName.parse(inputs.adopt))
                tables = {"secrets": inputs.secrets, references.JOBS: known}
                if found := adoption.differences(inputs.spec, job, tables):
                    raise SubmitFailed("\n".join([f"{doing}, as it is not the job that is declared:", *found]))
            else:
                token = ownership.token(inputs.owner, inputs.spec, inputs.secrets, inputs.rerun, inputs.jobs)
                same = submissions.standing(at, inputs.parent, self.kind, inputs.owner, token)
                if ledger := submissions.ledger_of(inputs.owner):
                    left = submissions.left(at, inputs.parent, self.kind, inputs.owner, same)
                    unrecorded.remove(at.client, ledger.stack, dict.fromkeys(left, inputs.name))
                job = same or self._submit(at, inputs, known, token)
        used = {"results": known} if known else {}
        return {**props, **used, "run": _run(at, job)}

    def _submit(self, at: Target, inputs: _Inputs, known: Mapping[str, str], token: str) -> Mapping[str, Any]:
        job = drift.submitted(inputs.spec.fields, {"secrets": inputs.secrets, references.JOBS: known})
        job["labels"] = {**job.get("labels", {}), **ownership.labels(inputs.owner, token)}
        if ledger := submissions.ledger_of(inputs.owner):
            job["labels"][ownership.MARK_LABEL] = ledger.mark(inputs.name)
        engine.ensure_alive(f"{inputs.name}: not submitted")
        return at.client.create(self.kind, at.parent, job)


class CustomJobProvider(JobProvider):
    """CustomJob: one run of a container or a Python package, on one machine or several."""

    kind = CUSTOM_JOB


class HyperparameterTuningJobProvider(JobProvider):
    """HyperparameterTuningJob: many runs, each with other parameters."""

    kind = HYPERPARAMETER_TUNING_JOB


class TrainingPipelineProvider(JobProvider):
    """TrainingPipeline: runs one of the two others, and may upload the model that comes of it."""

    kind = TRAINING_PIPELINE


def _outputs(props: Mapping[str, Any]) -> dict[str, Any]:
    """What was filled in for references to results of other jobs, as it was when the job was submitted."""
    return {"results": props["results"]} if props.get("results") else {}


def _run(at: Target, job: Mapping[str, Any]) -> dict[str, Any]:
    """What a refresh shows of a job: it only ever has what moves with the job, or the next refresh would show more."""
    name, log_of = (ResourceName.parse(text) for text in (job["name"], get_backing_job_name(job) or job["name"]))
    run = {"name": job["name"], "state": job["state"], "page": at.links.page(name), "logs": at.links.logs(log_of)}
    if "error" in job:
        run["error"] = job["error"].get("message", "")
    study = searching(at, job)
    if ended := trials.count_ended_trials(study):
        run["trials"] = {"ended": ended, "of": int(study["maxTrialCount"])}
        if best := trials.find_best_trial(study):
            run["bestTrial"] = best
    return run


def _unknown(spec: Any, problem: FieldProblem) -> bool:
    """Whether a problem is only that a value is not known before the update."""
    for part in problem.path:
        try:
            spec = spec[part]
        except (KeyError, IndexError, TypeError):
            return False
    return bool(spec == rpc.UNKNOWN)
