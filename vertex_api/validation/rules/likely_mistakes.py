"""Rules for declarations beyond those of the service: settings that are very likely mistakes.

They do not apply to requests of clients, because Google does not say that the service rejects them.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.catalog import reduction_server
from vertex_api.catalog.machines import get_accelerator_and_count
from vertex_api.job_kinds import HYPERPARAMETER_TUNING_JOB, Kind
from vertex_api.scalar_types import quote_value
from vertex_api.validation.rules import study_parameters
from vertex_api.validation.rules.violation_type import KeyPath, Violation

_NO_PROGRESS = ("maxNumTrialsNoProgress", "maxDurationNoProgress")
_GOOGLE_REGISTRY = re.compile(r"[a-z0-9-]+-docker\.pkg\.dev/.+|([a-z]+\.)?gcr\.io/.+")


def find_likely_mistakes(kind: Kind, job: Mapping[str, Any]) -> Iterator[Violation]:
    """Find the likely mistakes in a canonical job."""
    spec, at = job[kind.spec_field], (kind.spec_field,)
    for index, pool in enumerate(spec["workerPoolSpecs"]):
        for task in ("containerSpec", "pythonPackageSpec"):
            yield from _find_repeated_variables(pool.get(task, {}), (*at, "workerPoolSpecs", index, task))
    yield from _find_useless_reduction_server(spec, at)
    if spec.get("experimentRun") and not spec.get("experiment"):
        yield (*at, "experiment"), "is required beside experimentRun: the experiment that it is a run of"
    if kind == HYPERPARAMETER_TUNING_JOB:
        yield from _find_parameter_mistakes(job["studySpec"]["parameters"], ("studySpec", "parameters"))
        yield from _find_useless_stopping_rules(job["studySpec"], ("studySpec",))


def find_executor_images_outside_artifact_registry(kind: Kind, job: Mapping[str, Any]) -> Iterator[Violation]:
    """Find executor images outside Artifact Registry, which only the emulator takes (discovery document,
    PythonPackageSpec)."""
    for index, pool in enumerate(job[kind.spec_field]["workerPoolSpecs"]):
        image = pool.get("pythonPackageSpec", {}).get("executorImageUri")
        if image and not _GOOGLE_REGISTRY.fullmatch(image):
            message = f'"{image}" is not in Artifact Registry; use a prebuilt image for training of Google\'s'
            yield (kind.spec_field, "workerPoolSpecs", index, "pythonPackageSpec", "executorImageUri"), message


def find_missing_serving_container(pipeline: Mapping[str, Any]) -> Iterator[Violation]:
    """Find a model without a serving container, which only AutoML models may lack (discovery document, Model)."""
    if "containerSpec" not in pipeline.get("modelToUpload", {"containerSpec": {}}):
        yield ("modelToUpload", "containerSpec"), "is required: the container that serves the model"


def _find_repeated_variables(task: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """A variable has one value; the API does not say which of two."""
    seen: set[str] = set()
    for index, entry in enumerate(task.get("env", ())):
        if entry["name"] in seen:
            yield (*at, "env", index, "name"), f"{quote_value(entry['name'])} is there twice"
        seen.add(entry["name"])


def _find_useless_reduction_server(spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Google's page on distributed training: Reduction Server serves the GPUs of the first and the second pool."""
    pools, last = spec["workerPoolSpecs"], reduction_server.POOL_INDEX
    if len(pools) <= last or not reduction_server.is_reduction_server(pools[last]):
        return
    for index, pool in enumerate(pools[:last]):
        path: KeyPath = (*at, "workerPoolSpecs", index)
        if not pool:
            yield path, "is empty; Reduction Server is for the GPUs of this pool and the first"
        elif "machineSpec" in pool and get_accelerator_and_count(pool["machineSpec"]) == (None, 0):
            yield (*path, "machineSpec", "acceleratorType"), "Reduction Server is for pools with GPUs"


def _find_parameter_mistakes(specs: list[Mapping[str, Any]], at: KeyPath) -> Iterator[Violation]:
    """A parameter reaches the trainer as the flag --id=value; a category that is there twice is tried twice. Discovery
    document: both ends of a range are required, but clients leave out zeros."""
    for spec, path, _ in study_parameters.walk_parameters_with_conditions(specs, at):
        if "=" in spec["parameterId"]:
            message = f"{quote_value(spec['parameterId'])} must not contain =: trials get it as the flag --id=value"
            yield (*path, "parameterId"), message
        for name in ("doubleValueSpec", "integerValueSpec"):
            if not spec.get(name, {"minValue": 0}).keys() & {"minValue", "maxValue"}:
                yield (*path, name), "needs minValue and maxValue; one that is left out is zero"
        seen: set[str] = set()
        for index, value in enumerate(spec.get("categoricalValueSpec", {}).get("values", ())):
            if value in seen:
                yield (*path, "categoricalValueSpec", "values", index), f"{quote_value(value)} is there twice"
            seen.add(value)


def _find_useless_stopping_rules(study: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, StudyStoppingConfig: "effective only for single-objective studies"."""
    objectives = [metric for metric in study["metrics"] if "safetyConfig" not in metric]
    for field in _NO_PROGRESS:
        if len(objectives) > 1 and field in study.get("studyStoppingConfig", {}):
            message = f"has no effect with {len(objectives)} objectives, only with one; use maxNumTrials or none"
            yield (*at, "studyStoppingConfig", field), message
