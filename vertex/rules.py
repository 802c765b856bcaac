"""Rules of the service that the types of its messages cannot say.

Each is a generator of `(path, message)`; the source is in its docstring. `docs/fidelity.md` lists what is not checked.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from vertex.kinds import CUSTOM_JOB, Kind

KeyPath = tuple[str | int, ...]
Finding = tuple[KeyPath, str]

_C_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VALUE_SPECS = ("doubleValueSpec", "integerValueSpec", "categoricalValueSpec", "discreteValueSpec")


def broken(kind: Kind, job: Mapping[str, Any]) -> Iterator[Finding]:
    """Every rule that a canonical job breaks."""
    if len(job["displayName"]) > 128:
        yield ("displayName",), "is longer than 128 characters"
    if kind == CUSTOM_JOB:
        yield from _worker_pools(job["jobSpec"], ("jobSpec",))
    else:
        yield from _worker_pools(job["trialJobSpec"], ("trialJobSpec",))
        yield from _study(job["studySpec"])
        yield from _trial_counts(job)


def _worker_pools(spec: Mapping[str, Any], path: KeyPath) -> Iterator[Finding]:
    """Discovery document, CustomJobSpec and WorkerPoolSpec; pool 0: Google's page on distributed training."""
    for index, pool in enumerate(spec["workerPoolSpecs"]):
        at: KeyPath = (*path, "workerPoolSpecs", index)
        if not pool:
            if index == 0:
                yield at, "is empty; the first pool runs the primary replica"
            continue
        if index == 0 and pool.get("replicaCount", 1) != 1:
            yield (*at, "replicaCount"), f"{pool['replicaCount']} must be 1: the first pool is the primary replica"
        elif pool.get("replicaCount", 1) < 1:
            yield (*at, "replicaCount"), f"{pool['replicaCount']} is less than 1; an empty pool is written {{}}"
        if ("containerSpec" in pool) == ("pythonPackageSpec" in pool):
            yield at, "needs exactly one of containerSpec and pythonPackageSpec"
        yield from _environment(pool, at)
        machine = pool.get("machineSpec", {})
        if ("acceleratorType" in machine) != ("acceleratorCount" in machine):
            yield (*at, "machineSpec"), "needs both of acceleratorType and acceleratorCount, or none"


def _environment(pool: Mapping[str, Any], path: KeyPath) -> Iterator[Finding]:
    """Discovery document, EnvVar: names are C identifiers; at most 100 of them."""
    for task in ("containerSpec", "pythonPackageSpec"):
        entries = pool.get(task, {}).get("env", [])
        if len(entries) > 100:
            yield (*path, task, "env"), f"has {len(entries)} entries; at most 100 are allowed"
        for index, entry in enumerate(entries):
            if not _C_IDENTIFIER.fullmatch(entry["name"]):
                message = f'"{entry["name"]}" must be letters, digits and underscores, and not start with a digit'
                yield (*path, task, "env", index, "name"), message


def _study(study: Mapping[str, Any]) -> Iterator[Finding]:
    """Discovery document, StudySpec and its ParameterSpec."""
    for field, key in (("metrics", "metricId"), ("parameters", "parameterId")):
        names = [entry[key] for entry in study[field]]
        for index, name in enumerate(names):
            at = ("studySpec", field, index, key)
            if re.search(r"\s", name):
                yield at, f'"{name}" must not contain white space'
            if name in names[:index]:
                yield at, f'"{name}" is there twice'
    for index, parameter in enumerate(study["parameters"]):
        yield from _parameter(parameter, ("studySpec", "parameters", index), study.get("algorithm"))


def _parameter(parameter: Mapping[str, Any], path: KeyPath, algorithm: str | None) -> Iterator[Finding]:
    given = [name for name in _VALUE_SPECS if name in parameter]
    if len(given) != 1:
        yield path, f"needs exactly one of {', '.join(_VALUE_SPECS)}"
        return
    name, values = given[0], parameter[given[0]]
    scale = parameter.get("scaleType", "SCALE_TYPE_UNSPECIFIED")
    if name in ("doubleValueSpec", "integerValueSpec"):
        low, high = values.get("minValue", 0), values.get("maxValue", 0)
        if low > high:
            yield (*path, name), f"minValue {low} is greater than maxValue {high}"
        if "LOG" in scale and low <= 0:
            yield (*path, "scaleType"), f"{scale} needs a range above zero, minValue is {low}"
    elif "values" not in values:
        yield (*path, name, "values"), "is required"
    elif name == "discreteValueSpec" and sorted(set(values["values"])) != values["values"]:
        yield (*path, name, "values"), "must increase"
    if name == "doubleValueSpec" and algorithm == "GRID_SEARCH":
        yield (*path, name), "GRID_SEARCH takes integer, categorical and discrete parameters only"
    for index, child in enumerate(parameter.get("conditionalParameterSpecs", [])):
        yield from _parameter(
            child["parameterSpec"], (*path, "conditionalParameterSpecs", index, "parameterSpec"), None
        )


def _trial_counts(job: Mapping[str, Any]) -> Iterator[Finding]:
    """Discovery document, HyperparameterTuningJob: both counts are required; zero is "unset" in proto JSON."""
    most = job.get("maxTrialCount", 0)
    for name in ("maxTrialCount", "parallelTrialCount"):
        if job.get(name, 0) < 1:
            yield (name,), "is required, and at least 1"
    for name in ("parallelTrialCount", "maxFailedTrialCount"):
        if job.get(name, 0) > most > 0:
            yield (name,), f"{job[name]} is more than maxTrialCount {most}"
