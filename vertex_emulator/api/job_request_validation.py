"""Validation of requests that create a job: the API's rules, and what the emulator does not support."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vertex_api.catalog.output_directories import get_output_directories_by_variable
from vertex_api.job_kinds import TRAINING_PIPELINE, Kind
from vertex_api.training_pipelines.backing_job import (
    convert_backing_job_path_to_pipeline_path,
    get_backing_job_kind,
)
from vertex_api.validation import pipeline_validation
from vertex_api.validation.job_validation import canonicalize_job_and_find_problems
from vertex_api.validation.rules import KeyPath
from vertex_api.validation.rules.region_mismatches import find_region_mismatches
from vertex_api.validation.shape_validation import FieldProblem
from vertex_emulator.errors import InvalidBucketUri, build_invalid_argument_error
from vertex_emulator.gcs.symlink_safe_bucket_files import BucketFileTree
from vertex_emulator.replicas.nfs_and_lustre_mounts import iterate_shared_folder_field_problems
from vertex_emulator.scheduling import unsupported_fields


def validate_and_canonicalize_request(
    kind: Kind, region: str, body: Mapping[str, Any], buckets_folder: Path
) -> dict[str, Any]:
    """Return a request for a job in `region` in canonical form; `buckets_folder` is the folder of all buckets.

    Raises ApiError with every violation of the API's rules or, if there is none, all that this emulator lacks.
    """
    if kind == TRAINING_PIPELINE:
        return _validate_and_canonicalize_pipeline(region, body, buckets_folder)
    spec, problems = canonicalize_job_and_find_problems(kind, body, output_only="drop")
    problems = problems or _find_region_uri_and_unsupported_field_problems(kind, region, spec, buckets_folder)
    if problems:
        raise build_invalid_argument_error(problems)
    return spec


def _validate_and_canonicalize_pipeline(region: str, body: Mapping[str, Any], buckets_folder: Path) -> dict[str, Any]:
    parsed = pipeline_validation.build_pipeline_validation_result(body, output_only="drop")
    problems = parsed.problems
    if not problems:
        kind = get_backing_job_kind(parsed.spec)
        job = pipeline_validation.convert_pipeline_to_backing_job(parsed.spec)
        unsupported = _find_region_uri_and_unsupported_field_problems(kind, region, job, buckets_folder)
        problems = [
            FieldProblem(convert_backing_job_path_to_pipeline_path(kind, each.path), each.message)
            for each in unsupported
        ]
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
        for uri in get_output_directories_by_variable(spec[field]).values()
    )
    return [
        *(FieldProblem(path, message) for path, message in find_region_mismatches(spec, (field,), region)),
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
        BucketFileTree(buckets_folder).raise_unless_uri_is_storable(uri)
    except InvalidBucketUri as error:
        return [FieldProblem(key_path, str(error))]
    return []
