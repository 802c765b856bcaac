"""Validation of requests that create a job: the API's rules, what the emulator does not support, images and mounts."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from vertex_api import pipelines
from vertex_api.errors import Refusal
from vertex_api.job import Job
from vertex_api.jobspec import image_name, is_reduction_server, output_folders
from vertex_api.messages import KeyPath, without_defaults
from vertex_api.mistakes import region_mismatches
from vertex_api.names import TRAINING_PIPELINE, Kind
from vertex_api.pipelines import PipelineValidation, backing_kind, pipeline_path
from vertex_api.validation.check import lift, validate_job
from vertex_api.validation.shape import FieldProblem, read
from vertex_emulator.database import Transaction
from vertex_emulator.errors import ApiError, InvalidBucketUri
from vertex_emulator.gcs.files import BucketTree
from vertex_emulator.http.responses import invalid_argument, not_found
from vertex_emulator.names import with_number
from vertex_emulator.replicas import mounts
from vertex_emulator.replicas.executor import Executor
from vertex_emulator.scheduling import lifecycle


def canonicalize(
    kind: Kind, region: str, body: Mapping[str, Any], buckets: Path, allowed: Collection[str] = ()
) -> tuple[dict[str, Any], list[FieldProblem]]:
    """Return a request for a job in `region` in canonical form, and which of its problems are lifted.

    `buckets` is the folder of all buckets, `allowed` are the places of problems that the client lifts. Raises ApiError
    with every other violation of the API's rules or, if there is none, all that this emulator lacks.
    """
    tree = BucketTree(buckets)

    def validate(body: Any) -> PipelineValidation:
        if kind == TRAINING_PIPELINE:
            return pipelines.validate_pipeline(body, output_only="drop")
        return PipelineValidation(*validate_job(kind, body, output_only="drop"))

    parsed = validate(body)
    spec, problems, lifted = parsed.spec, parsed.problems, list[FieldProblem]()
    if problems and allowed:
        problems, lifted = lift(lambda rest: validate(rest).problems, body, problems, allowed)
        if not problems:
            spec, _ = read(kind.typed_dict, body, output_only="drop")
            spec = spec if kind == TRAINING_PIPELINE else without_defaults(kind.typed_dict, spec)
    if not problems:
        found = _problems_here(kind, region, spec, tree)
        lifted += [each for each in found if isinstance(each.message, Refusal) and each.place in allowed]
        problems = [each for each in found if each not in lifted]
    if problems:
        raise invalid_argument(problems, parsed.headline)
    return spec, lifted


def _problems_here(kind: Kind, region: str, spec: Mapping[str, Any], tree: BucketTree) -> list[FieldProblem]:
    if kind != TRAINING_PIPELINE:
        return _emulator_problems(kind, region, spec, tree)
    kind, job = backing_kind(spec), pipelines.job_of_pipeline(spec)
    found = _emulator_problems(kind, region, job, tree)
    problems = [replace(each, path=pipeline_path(kind, each.path)) for each in found]
    return problems + _input_problems(spec.get("inputDataConfig"), tree)


def _emulator_problems(kind: Kind, region: str, spec: Mapping[str, Any], tree: BucketTree) -> list[FieldProblem]:
    field = kind.spec_field
    output_problems = (
        _uri_problems(uri, (field, "baseOutputDirectory", "outputUriPrefix"), tree)
        for uri in output_folders(spec[field]).values()
    )
    return [
        *(FieldProblem(path, Refusal(message)) for path, message in region_mismatches(Job(kind, spec), region)),
        *lifecycle.violations(kind, spec),
        *mounts.violations(kind, spec),
        *next(filter(None, output_problems), []),
        *_package_problems(spec[field]["workerPoolSpecs"], (field, "workerPoolSpecs"), tree),
    ]


def _package_problems(pools: list[Any], path: KeyPath, tree: BucketTree) -> Iterator[FieldProblem]:
    for i, pool in enumerate(pools):
        for k, uri in enumerate(pool.get("pythonPackageSpec", {}).get("packageUris", [])):
            yield from _uri_problems(uri, (*path, i, "pythonPackageSpec", "packageUris", k), tree)


def _input_problems(config: Mapping[str, Any] | None, tree: BucketTree) -> list[FieldProblem]:
    if config is None:
        return []
    if "bigqueryDestination" in config:
        message = "the emulator has no BigQuery: use gcsDestination"
        return [FieldProblem(("inputDataConfig", "bigqueryDestination"), message)]
    if "gcsDestination" not in config:
        message = "is required: the emulator has no datasets and uses the files in this folder instead"
        return [FieldProblem(("inputDataConfig", "gcsDestination"), message)]
    path = ("inputDataConfig", "gcsDestination", "outputUriPrefix")
    return _uri_problems(config["gcsDestination"]["outputUriPrefix"], path, tree)


def _uri_problems(uri: str, path: KeyPath, tree: BucketTree) -> list[FieldProblem]:
    """Return the problem of a URI below which no object could be stored."""
    try:
        tree.check(uri)
    except InvalidBucketUri as error:
        return [FieldProblem(path, str(error))]
    return []


def check_images(executor: Executor, pipeline: Mapping[str, Any]) -> None:
    """Raise ApiError NOT_FOUND, with the service's text, if an image of a canonical pipeline does not exist.

    An image whose registry cannot be asked passes; without it, the job fails when it runs.
    """
    pools = Job(TRAINING_PIPELINE, pipeline).backing.job_spec["workerPoolSpecs"]
    for pool in pools:
        if pool and not is_reduction_server(pool):
            name = image_name(pool) or ""
            if executor.lacks_image(name):
                raise ApiError("NOT_FOUND", f"The image {name} does not exist.")


def check_tensorboard(transaction: Transaction, kind: Kind, spec: Mapping[str, Any]) -> None:
    """Raise ApiError NOT_FOUND if the tensorboard of a canonical job does not exist.

    Where this emulator has no tensorboard at all in the project and region, it is taken for one of Google's, so that
    the same declaration runs here and there.
    """
    if name := Job(kind, spec).backing.job_spec.get("tensorboard"):
        full = with_number(name)
        if transaction.tensorboards.of(full.rpartition("/")[0]) and transaction.tensorboards.get(full) is None:
            raise not_found("Tensorboard", full)


def check_shared_folders(transaction: Transaction, kind: Kind, spec: Mapping[str, Any]) -> None:
    """Raise ApiError if a canonical job mounts a folder in or around one that an unfinished job mounts.

    replicas/mounts.py says why.
    """
    own = list(_shared_folders(kind, spec))
    if not own:
        return
    for job_id in transaction.jobs.unfinished():
        job = transaction.jobs.get(job_id)
        if job is None:
            continue
        for other in _shared_folders(job.kind, job.spec):
            for share in own:
                if share.nests(other):
                    field = f"{share.kind}_mounts"
                    text = f"{mounts.describe_nesting(share, other)}; wait for the end of {job.name}"
                    raise ApiError("FAILED_PRECONDITION", f"{field}: {text}.", [(field, text)])


def _shared_folders(kind: Kind, spec: Mapping[str, Any]) -> Iterator[mounts.Share]:
    if kind == TRAINING_PIPELINE:
        kind, spec = backing_kind(spec), pipelines.job_of_pipeline(spec)
    for pool in spec[kind.spec_field]["workerPoolSpecs"]:
        yield from mounts.shares(pool)
