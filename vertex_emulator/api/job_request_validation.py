"""Validation of requests that create a job: the API's rules, what the emulator does not support, images and mounts."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vertex_api import pipelines
from vertex_api.job import Job
from vertex_api.jobspec import is_reduction_server, output_folders
from vertex_api.messages import KeyPath
from vertex_api.names import TRAINING_PIPELINE, Kind
from vertex_api.pipelines import backing_kind, pipeline_path
from vertex_api.validation.check import validate_job
from vertex_api.validation.mistakes import region_mismatches
from vertex_api.validation.shape import FieldProblem
from vertex_emulator.database import Transaction
from vertex_emulator.errors import ApiError, InvalidBucketUri
from vertex_emulator.gcs.files import BucketTree
from vertex_emulator.http.invalid_request_errors import build_invalid_argument_error
from vertex_emulator.replicas.executor_protocol import Executor
from vertex_emulator.replicas.nfs_and_lustre_mounts import (
    SharedFolder,
    describe_nesting_problem,
    iterate_shared_folder_field_problems,
    list_shared_folders,
)
from vertex_emulator.scheduling import unsupported_fields


def validate_and_canonicalize_request(
    kind: Kind, region: str, body: Mapping[str, Any], buckets_folder: Path
) -> dict[str, Any]:
    """Return a request for a job in `region` in canonical form; `buckets_folder` is the folder of all buckets.

    Raises ApiError with every violation of the API's rules or, if there is none, all that this emulator lacks.
    """
    if kind == TRAINING_PIPELINE:
        return _validate_and_canonicalize_pipeline(region, body, buckets_folder)
    spec, problems = validate_job(kind, body, output_only="drop")
    problems = problems or _find_region_uri_and_unsupported_field_problems(kind, region, spec, buckets_folder)
    if problems:
        raise build_invalid_argument_error(problems)
    return spec


def raise_if_pipeline_image_is_missing(executor: Executor, pipeline: Mapping[str, Any]) -> None:
    """Raise ApiError NOT_FOUND, with the service's text, if an image of a canonical pipeline does not exist.

    An image whose registry cannot be asked passes; without it, the job fails when it runs.
    """
    pools = Job(TRAINING_PIPELINE, pipeline).backing.job_spec["workerPoolSpecs"]
    for pool in pools:
        if pool and not is_reduction_server(pool):
            container, package = pool.get("containerSpec", {}), pool.get("pythonPackageSpec", {})
            image = container.get("imageUri") or package["executorImageUri"]
            if executor.is_image_missing_here_and_in_registry(image):
                raise ApiError("NOT_FOUND", f"The image {image} does not exist.")


def raise_if_folders_nest_with_unfinished_jobs(transaction: Transaction, kind: Kind, spec: Mapping[str, Any]) -> None:
    """Raise ApiError if a canonical job mounts a folder in or around one that an unfinished job mounts.

    replicas/nfs_and_lustre_mounts.py says why.
    """
    own = list(_iterate_shared_folders(kind, spec))
    if not own:
        return
    for job_id in transaction.jobs.unfinished():
        job = transaction.jobs.get(job_id)
        if job is None:
            continue
        for other in _iterate_shared_folders(job.kind, job.spec):
            for share in own:
                if share.is_ancestor_or_descendant_of(other):
                    text = f"{describe_nesting_problem(share, other)}; wait for the end of {job.name}"
                    raise ApiError(
                        "FAILED_PRECONDITION", f"{share.kind}_mounts: {text}.", [(f"{share.kind}_mounts", text)]
                    )


def _validate_and_canonicalize_pipeline(region: str, body: Mapping[str, Any], buckets_folder: Path) -> dict[str, Any]:
    parsed = pipelines.validate_pipeline(body, output_only="drop")
    problems = parsed.problems
    if not problems:
        kind = backing_kind(parsed.spec)
        job = pipelines.job_of_pipeline(parsed.spec)
        unsupported = _find_region_uri_and_unsupported_field_problems(kind, region, job, buckets_folder)
        problems = [FieldProblem(pipeline_path(kind, each.path), each.message) for each in unsupported]
        problems += _find_input_data_problems(parsed.spec.get("inputDataConfig"), buckets_folder)
    if problems:
        raise build_invalid_argument_error(problems, parsed.headline)
    return parsed.spec


def _find_region_uri_and_unsupported_field_problems(
    kind: Kind, region: str, spec: Mapping[str, Any], buckets_folder: Path
) -> list[FieldProblem]:
    field = kind.spec_field
    folder_problems = (
        _find_unstorable_uri_problems(uri, (field, "baseOutputDirectory", "outputUriPrefix"), buckets_folder)
        for uri in output_folders(spec[field]).values()
    )
    return [
        *(FieldProblem(path, message) for path, message in region_mismatches(spec, (field,), region)),
        *unsupported_fields.find_rejected_field_problems(kind, spec),
        *unsupported_fields.find_pool_size_problems(kind, spec),
        *iterate_shared_folder_field_problems(kind, spec),
        *next(filter(None, folder_problems), []),
        *_find_unstorable_package_uri_problems(
            spec[field]["workerPoolSpecs"], (field, "workerPoolSpecs"), buckets_folder
        ),
    ]


def _find_input_data_problems(input_data_config: Mapping[str, Any] | None, buckets_folder: Path) -> list[FieldProblem]:
    if input_data_config is None:
        return []
    if "bigqueryDestination" in input_data_config:
        message = "the emulator has no BigQuery: use gcsDestination"
        return [FieldProblem(("inputDataConfig", "bigqueryDestination"), message)]
    if "gcsDestination" not in input_data_config:
        message = "is required: the emulator has no datasets and uses the files in this folder instead"
        return [FieldProblem(("inputDataConfig", "gcsDestination"), message)]
    uri = input_data_config["gcsDestination"]["outputUriPrefix"]
    return _find_unstorable_uri_problems(uri, ("inputDataConfig", "gcsDestination", "outputUriPrefix"), buckets_folder)


def _find_unstorable_package_uri_problems(
    pools: list[Any], pools_path: KeyPath, buckets_folder: Path
) -> Iterator[FieldProblem]:
    for i, pool in enumerate(pools):
        for k, uri in enumerate(pool.get("pythonPackageSpec", {}).get("packageUris", [])):
            uri_path = (*pools_path, i, "pythonPackageSpec", "packageUris", k)
            yield from _find_unstorable_uri_problems(uri, uri_path, buckets_folder)


def _find_unstorable_uri_problems(uri: str, key_path: KeyPath, buckets_folder: Path) -> list[FieldProblem]:
    try:
        BucketTree(buckets_folder).check(uri)
    except InvalidBucketUri as error:
        return [FieldProblem(key_path, str(error))]
    return []


def _iterate_shared_folders(kind: Kind, spec: Mapping[str, Any]) -> Iterator[SharedFolder]:
    if kind == TRAINING_PIPELINE:
        kind, spec = backing_kind(spec), pipelines.job_of_pipeline(spec)
    for pool in spec[kind.spec_field]["workerPoolSpecs"]:
        yield from list_shared_folders(pool)
