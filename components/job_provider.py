"""The provider of training jobs: submits a job once, finds it again, and removes it in the right order."""

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pulumi import dynamic
from pulumi.runtime import rpc

from components import drift, engine, ownership, references, results, shapes, target
from components.engine import Provider
from components.errors import SubmitFailed
from components.target import Target
from vertex.client import JobClient
from vertex.errors import InvalidRequest, NotFound, VertexError
from vertex.jobs import held, validated
from vertex.kinds import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE, Kind
from vertex.names import ResourceName
from vertex.pipelines import backing_name
from vertex.states import TERMINAL
from vertex.validation import Problem

INPUTS = ("owner", "parent", "spec", "secrets", "jobs", "rerun", "lifecycle")
CANCEL_SECONDS = 180.0
"""How long a cancelled job may take to end before its deletion is given up until the next run."""


@dataclass(frozen=True)
class _Inputs:
    owner: str
    parent: str
    spec: dict[str, Any]
    secrets: dict[str, str]
    jobs: dict[str, str]
    on_delete: str
    rerun: int

    @classmethod
    def of(cls, props: Mapping[str, Any]) -> "_Inputs":
        lifecycle: Any = {**shapes.LIFECYCLE, **(props.get("lifecycle") or {})}
        return cls(
            owner=props["owner"],
            parent=props["parent"],
            spec=props["spec"],
            secrets=props.get("secrets") or {},
            jobs=props.get("jobs") or {},
            on_delete=lifecycle["onDelete"],
            rerun=int(props.get("rerun") or 0),
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
        spec, problems = validated(self.kind, inputs["spec"], open_text=references.is_open)
        failures = [
            dynamic.CheckFailure(f"spec.{problem.field}", problem.message)
            for problem in problems
            if not _unknown(inputs["spec"], problem)
        ]
        return dynamic.CheckResult({**inputs, "spec": spec}, failures)

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        inputs = _Inputs.of(props)
        spec = self._spec(inputs)
        token = ownership.token(self.kind, inputs.owner, spec, inputs.secrets, inputs.rerun, inputs.jobs)
        with _named(f"{inputs.name}: not submitted"):
            at = target.connect(inputs.parent)
            doing = f"{inputs.name}: not submitted"
            known = results.values(at, inputs.stack, inputs.jobs, results.referenced(spec), doing)
            same = at.client.list(self.kind, at.parent, f'labels.{ownership.TOKEN_LABEL}="{token}"')
            job = ownership.adoptable(same) or self._submit(at, inputs, spec, known, token)
        used = {"results": known} if known else {}
        return dynamic.CreateResult(str(job["name"]), {**props, **used, "run": _run(at, job)})

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        return dynamic.UpdateResult({**news, **_outputs(olds), "run": olds["run"]})

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        inputs = _Inputs.of(props)
        with _named(f"{inputs.name}: not read"):
            at = target.connect(inputs.parent)
            try:
                job = at.client.get(ResourceName.parse(id_))
            except NotFound:
                return dynamic.ReadResult(None, {})
        used = _outputs(props)
        tables = {"secrets": inputs.secrets, results.TABLE: used.get("results", {})}
        spec = drift.declared_part(self._spec(inputs), held(self.kind, job), tables)
        declared = {name: props[name] for name in INPUTS if name in props} | {"spec": spec}
        return dynamic.ReadResult(id_, {**declared, **used, "run": _run(at, job)}, declared)

    def delete(self, id_: str, props: dict[str, Any]) -> None:
        inputs, name = _Inputs.of(props), ResourceName.parse(id_)
        if inputs.on_delete == "keep":
            return
        client = target.connect(inputs.parent).client
        with _named(f"{inputs.name}: not deleted"), contextlib.suppress(NotFound):
            if client.get(name)["state"] not in TERMINAL:
                _cancel(client, name)
                _await_end(client, name, inputs.name)
            if inputs.on_delete == "delete":
                self._forget(client, name)

    def _forget(self, client: JobClient, name: ResourceName) -> None:
        """Deletes what has ended."""
        client.delete(name)

    def _submit(
        self, at: Target, inputs: _Inputs, spec: dict[str, Any], known: Mapping[str, str], token: str
    ) -> Mapping[str, Any]:
        job = drift.submitted(spec, {"secrets": inputs.secrets, results.TABLE: known})
        job["labels"] = {**job.get("labels", {}), **ownership.labels(inputs.owner, token)}
        engine.ensure_alive(f"{inputs.name}: not submitted")
        return at.client.create(self.kind, at.parent, job)

    def _spec(self, inputs: _Inputs) -> dict[str, Any]:
        """The canonical spec: the engine hands whole numbers over as floats."""
        return validated(self.kind, inputs.spec)[0]


class CustomJobProvider(JobProvider):
    """CustomJob: one run of a container or a Python package, on one machine or several."""

    kind = CUSTOM_JOB


class HyperparameterTuningJobProvider(JobProvider):
    """HyperparameterTuningJob: many runs, each with other parameters."""

    kind = HYPERPARAMETER_TUNING_JOB


class TrainingPipelineProvider(JobProvider):
    """TrainingPipeline: runs one of the two others, and may upload the model that comes of it.

    What Vertex AI does with that job when its pipeline is deleted is not documented. It goes too, and first, as
    afterwards nothing would know its name; the model stays, as what jobs write does.
    """

    kind = TRAINING_PIPELINE

    def _forget(self, client: JobClient, name: ResourceName) -> None:
        if job := backing_name(client.get(name)):
            # Its record costs nothing, so it may stay where the service does not let it go.
            with contextlib.suppress(NotFound, InvalidRequest):
                client.delete(ResourceName.parse(job))
        super()._forget(client, name)


def _outputs(props: Mapping[str, Any]) -> dict[str, Any]:
    """What was filled in for references to results of other jobs, as it was when the job was submitted."""
    return {"results": props["results"]} if props.get("results") else {}


def _run(at: Target, job: Mapping[str, Any]) -> dict[str, Any]:
    name, log_of = (ResourceName.parse(text) for text in (job["name"], backing_name(job) or job["name"]))
    return {"name": job["name"], "state": job["state"], "page": at.links.page(name), "logs": at.links.logs(log_of)}


@contextlib.contextmanager
def _named(what: str) -> Iterator[None]:
    try:
        yield
    except VertexError as error:
        raise SubmitFailed(f"{what}: {error}") from error


def _cancel(client: JobClient, name: ResourceName) -> None:
    try:
        client.cancel(name)
    except InvalidRequest:
        if client.get(name)["state"] not in TERMINAL:
            raise


def _await_end(client: JobClient, name: ResourceName, shown: str) -> None:
    deadline, pause = time.monotonic() + CANCEL_SECONDS, 0.1
    while (state := client.get(name)["state"]) not in TERMINAL:
        if time.monotonic() > deadline:
            raise SubmitFailed(f"{shown}: still {state} {CANCEL_SECONDS:.0f} s after it was cancelled; run this again")
        time.sleep(pause)
        pause = min(pause * 1.5, 5)


def _unknown(spec: Any, problem: Problem) -> bool:
    """Whether a problem is only that a value is not known before the update."""
    for part in problem.path:
        try:
            spec = spec[part]
        except (KeyError, IndexError, TypeError):
            return False
    return bool(spec == rpc.UNKNOWN)
