"""Advice on a job: what is likely to be a mistake, and what no page of Google's says that the service refuses.

A preview and a review show it as warnings, on both targets; a job that has some is submitted. What the service refuses
is in `vertex_api.validation`, and what its documents ask of a declaration in `vertex_api.mistakes`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.job import Job
from vertex_api.jobspec import REDUCTION_SERVER_POOL, is_reduction_server
from vertex_api.machines import accelerator_of
from vertex_api.messages import KeyPath
from vertex_api.scalars import quote
from vertex_api.validation.formats import Violation
from vertex_api.validation.study import walk_parameters

_NO_PROGRESS = ("maxNumTrialsNoProgress", "maxDurationNoProgress")


def advice(job: Job) -> Iterator[Violation]:
    """Find what to look at again in a valid job."""
    spec, at = job.job_spec, job.job_spec_path
    for index, pool in enumerate(spec["workerPoolSpecs"]):
        for task in ("containerSpec", "pythonPackageSpec"):
            yield from _repeated_variables(pool.get(task, {}), (*at, "workerPoolSpecs", index, task))
    yield from _useless_reduction_server(spec, at)
    if spec.get("experimentRun") and not spec.get("experiment"):
        yield (*at, "experiment"), "is not set, and experimentRun is: name the experiment that it is a run of"
    if study := job.study_spec:
        yield from _counts(job)
        at = job.own_path(("studySpec",))
        yield from _parameter_mistakes(study["parameters"], (*at, "parameters"))
        yield from _useless_stopping(study, at)


def _counts(job: Job) -> Iterator[Violation]:
    """No page says that a study refuses them; a public course runs one trial with two at once."""
    fields = job.backing.fields
    for name in ("parallelTrialCount", "maxFailedTrialCount"):
        if fields.get(name, 0) > job.trials:
            yield job.own_path((name,)), f"{fields[name]} is more than maxTrialCount {job.trials}, and never reached"


def _repeated_variables(task: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """A variable has one value; the API does not say which of two."""
    seen: set[str] = set()
    for index, entry in enumerate(task.get("env", ())):
        if entry["name"] in seen:
            yield (*at, "env", index, "name"), f"{quote(entry['name'])} is there twice"
        seen.add(entry["name"])


def _useless_reduction_server(spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Google's page on distributed training: Reduction Server serves the GPUs of the first and the second pool."""
    pools, last = spec["workerPoolSpecs"], REDUCTION_SERVER_POOL
    if len(pools) <= last or not is_reduction_server(pools[last]):
        return
    for index, pool in enumerate(pools[:last]):
        path: KeyPath = (*at, "workerPoolSpecs", index)
        if not pool:
            yield path, "is empty; Reduction Server is for the GPUs of this pool and the first"
        elif "machineSpec" in pool and accelerator_of(pool["machineSpec"]) == (None, 0):
            yield (*path, "machineSpec", "acceleratorType"), "Reduction Server is for pools with GPUs"


def _parameter_mistakes(specs: list[Mapping[str, Any]], at: KeyPath) -> Iterator[Violation]:
    """A parameter reaches the trainer as the flag --id=value; a category that is there twice is tried twice."""
    for spec, path, _ in walk_parameters(specs, at):
        if "=" in spec["parameterId"]:
            message = f"{quote(spec['parameterId'])} has a =: trials get it as the flag --id=value"
            yield (*path, "parameterId"), message
        seen: set[str] = set()
        for index, value in enumerate(spec.get("categoricalValueSpec", {}).get("values", ())):
            if value in seen:
                yield (*path, "categoricalValueSpec", "values", index), f"{quote(value)} is there twice"
            seen.add(value)


def _useless_stopping(study: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, StudyStoppingConfig: "effective only for single-objective studies"."""
    objectives = [metric for metric in study["metrics"] if "safetyConfig" not in metric]
    for field in _NO_PROGRESS:
        if len(objectives) > 1 and field in study.get("studyStoppingConfig", {}):
            message = f"has no effect with {len(objectives)} objectives, only with one; use maxNumTrials or none"
            yield (*at, "studyStoppingConfig", field), message
