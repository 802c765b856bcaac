"""Validation of requests that create a job: the API's rules, and what the emulator does not support."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vertex_api.catalog.job_defaults import get_output_variables
from vertex_api.job_kinds import TRAINING_PIPELINE, Kind
from vertex_api.validation import pipeline_tasks, pipeline_validation
from vertex_api.validation.rules import KeyPath
from vertex_api.validation.shape_and_rule_validation import validate_and_canonicalize_job
from vertex_api.validation.shape_validation import FieldProblem
from vertex_emulator.errors import InvalidBucketUri, build_invalid_argument_error
from vertex_emulator.gcs.bucket_folders import resolve_folder
from vertex_emulator.scheduling import rejected_and_approximated_fields


def validate_request(kind: Kind, body: Mapping[str, Any], buckets: Path) -> dict[str, Any]:
    """Return a request in canonical form; `buckets` is the folder of all buckets.

    Raises ApiError with every violation of the API's rules or, if there is none, all that this emulator lacks.
    """
    if kind == TRAINING_PIPELINE:
        return _validate_pipeline(body, buckets)
    spec, problems = validate_and_canonicalize_job(kind, body, output_only="drop")
    problems = problems or _find_unsupported_fields(kind, spec, buckets)
    if problems:
        raise build_invalid_argument_error(problems)
    return spec


def _validate_pipeline(body: Mapping[str, Any], buckets: Path) -> dict[str, Any]:
    parsed = pipeline_validation.validate_and_canonicalize_pipeline(body, output_only="drop")
    problems = parsed.problems
    if not problems:
        kind = pipeline_tasks.get_backing_job_kind(parsed.spec)
        unsupported = _find_unsupported_fields(kind, pipeline_tasks.build_backing_job(parsed.spec), buckets)
        problems = [
            FieldProblem(pipeline_tasks.get_path_in_pipeline(kind, problem.path), problem.message)
            for problem in unsupported
        ]
        problems += _find_data_problems(parsed.spec.get("inputDataConfig"), buckets)
    if problems:
        raise build_invalid_argument_error(problems, parsed.headline)
    return parsed.spec


def _find_unsupported_fields(kind: Kind, spec: Mapping[str, Any], buckets: Path) -> list[FieldProblem]:
    field = kind.spec_field
    folder_problems = (
        _find_folder_problems(uri, (field, "baseOutputDirectory", "outputUriPrefix"), buckets)
        for uri in get_output_variables(spec[field]).values()
    )
    return [
        *rejected_and_approximated_fields.find_rejected_field_problems(kind, spec),
        *rejected_and_approximated_fields.find_pool_size_problems(kind, spec),
        *next(filter(None, folder_problems), []),
        *_find_package_problems(spec[field]["workerPoolSpecs"], (field, "workerPoolSpecs"), buckets),
    ]


def _find_data_problems(config: Mapping[str, Any] | None, buckets: Path) -> list[FieldProblem]:
    if config is None:
        return []
    if "bigqueryDestination" in config:
        message = "the emulator has no BigQuery: use gcsDestination"
        return [FieldProblem(("inputDataConfig", "bigqueryDestination"), message)]
    if "gcsDestination" not in config:
        message = "is required: the emulator has no datasets and uses the files in this folder instead"
        return [FieldProblem(("inputDataConfig", "gcsDestination"), message)]
    uri = config["gcsDestination"]["outputUriPrefix"]
    return _find_folder_problems(uri, ("inputDataConfig", "gcsDestination", "outputUriPrefix"), buckets)


def _find_package_problems(pools: Sequence[Mapping[str, Any]], path: KeyPath, buckets: Path) -> Iterator[FieldProblem]:
    for index, pool in enumerate(pools):
        for number, uri in enumerate(pool.get("pythonPackageSpec", {}).get("packageUris", [])):
            yield from _find_folder_problems(uri, (*path, index, "pythonPackageSpec", "packageUris", number), buckets)


def _find_folder_problems(uri: str, path: KeyPath, buckets: Path) -> list[FieldProblem]:
    try:
        resolve_folder(buckets, uri)
    except InvalidBucketUri as error:
        return [FieldProblem(path, str(error))]
    return []
