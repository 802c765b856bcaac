"""Results of jobs that other jobs refer to, such as `${jobs.tune.bestTrial.parameters.lr}`.

A reference to a result is written here without its table: `tune.bestTrial.parameters.lr`.
"""

from collections.abc import Collection, Container, Mapping
from typing import Any

from vertex_api.kinds import TRAINING_PIPELINE
from vertex_api.names import ResourceName
from vertex_api.states import SUCCEEDED_STATES
from vertex_api.validation.canonical import CanonicalSpec
from vertex_api.validation.rules import parameters

from ..errors import SubmitFailed
from ..runtime.target import Target
from ..schema import references
from . import waiting
from .pipeline_results import with_studies

MODEL_DIR = "modelDir"


def split(reference: str, names: Container[str]) -> tuple[str, str]:
    """A reference as the name of a job and what of it: `("tune", "bestTrial.parameters.lr")`.

    Names may have dots in them: the longest one of `names` counts, or else what stands before the first dot.
    """
    parts = reference.split(".")
    for end in range(len(parts), 0, -1):
        if (name := ".".join(parts[:end])) in names:
            return name, ".".join(parts[end:])
    return parts[0], ".".join(parts[1:])


def list_available_results(spec: CanonicalSpec) -> list[str]:
    """Return the results that references of other jobs may name of a job with this spec."""
    names = ["name", MODEL_DIR]
    if spec.kind == TRAINING_PIPELINE:
        names += ["backingJob", *(["model"] if "modelToUpload" in spec.fields else [])]
    if study := spec.study:
        ids = dict.fromkeys(
            parameter["parameterId"] for parameter, _, _ in parameters.walk_parameters(study["parameters"], ())
        )
        names += ["bestTrial.id", *(f"bestTrial.parameters.{id_}" for id_ in ids)]
        names += [f"bestTrial.metrics.{metric['metricId']}" for metric in study["metrics"]]
    return names


def referenced(spec: Any) -> set[str]:
    """The references to results in a spec."""
    tables = (reference.partition(".") for _, reference in references.find_references(spec))
    return {reference for table, _, reference in tables if table == references.JOBS}


def values(at: Target, stack: str, jobs: Mapping[str, str], wanted: Collection[str], doing: str) -> dict[str, str]:
    """What stands for each of the references `wanted`, as text; `jobs` maps names of jobs to their resource names.

    One call for each job, and one more where a pipeline tunes; `stack` is `<pulumi project>/<stack>`. Raises
    SubmitFailed, whose message begins with what is being done, and VertexError.
    """
    named = {reference: split(reference, jobs) for reference in sorted(wanted)}
    for reference, (name, _) in named.items():
        if name not in jobs:
            known = ", ".join(jobs) or "none"
            raise SubmitFailed(
                f"{doing}: ${{{references.JOBS}.{reference}}} leads to none of the jobs that it is given: {known}"
            )
    found = {name: at.client.get(ResourceName.parse(jobs[name])) for name, _ in named.values()}
    for name, job in found.items():
        if job["state"] not in SUCCEEDED_STATES:
            raise SubmitFailed(f"{doing}: {name}, whose results it uses, is {job['state']}")
    ended = {name: {"name": job["name"], **waiting.result(job)} for name, job in with_studies(at, stack, found).items()}
    texts = {}
    for reference, (name, path) in named.items():
        value = _value(ended[name], path)
        if value is None:
            raise SubmitFailed(
                f"{doing}: ${{{references.JOBS}.{reference}}} is not there: {_missing(name, path, ended[name])}"
            )
        texts[reference] = references.to_text(value)
    return texts


def _value(result: Any, path: str) -> Any:
    """What stands at a path; the names at its end may have dots in them."""
    while isinstance(result, Mapping) and path not in result:
        head, _, path = path.partition(".")
        result = result.get(head)
    return result.get(path) if isinstance(result, Mapping) else None


def _missing(name: str, path: str, result: Mapping[str, Any]) -> str:
    if path.startswith("bestTrial."):
        best = result.get("bestTrial")
        if not best:
            return f"no trial of {name} has succeeded with its metric"
        return f"the best trial of {name}, {best['id']}, has no {path.removeprefix('bestTrial.')}"
    return f"{name} has no {path}"
