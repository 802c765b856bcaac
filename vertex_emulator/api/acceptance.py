"""What of a request for a job is taken, and everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vertex_api.catalog.job_defaults import get_output_directories
from vertex_api.kinds import TRAINING_PIPELINE, Kind
from vertex_api.validation import pipeline_tasks, pipelines
from vertex_api.validation.messages import validate_job
from vertex_api.validation.rules import KeyPath
from vertex_api.validation.shape import FieldProblem
from vertex_emulator.errors import InvalidBucketUri, invalid_argument_error
from vertex_emulator.gcs import buckets
from vertex_emulator.scheduling import unsupported_fields


def accepted(kind: Kind, body: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """The canonical form of a request; `root` is the folder of the buckets.

    Raises ApiError with every problem: those of its shape and of the service's rules, or else of this machine.
    """
    if kind == TRAINING_PIPELINE:
        return _accepted_pipeline(body, root)
    spec, problems = validate_job(kind, body, output_only="drop")
    problems = problems or _refused_here(kind, spec, root)
    if problems:
        raise invalid_argument_error(problems)
    return spec


def _accepted_pipeline(body: Mapping[str, Any], root: Path) -> dict[str, Any]:
    reading = pipelines.parse_pipeline(body, output_only="drop")
    problems = reading.problems
    if not problems:
        kind = pipeline_tasks.backing_kind(reading.spec)
        refused = _refused_here(kind, pipeline_tasks.build_backing_job(reading.spec), root)
        problems = [
            FieldProblem(pipeline_tasks.path_in_pipeline(kind, problem.path), problem.message) for problem in refused
        ]
        problems += _bad_data(reading.spec.get("inputDataConfig"), root)
    if problems:
        raise invalid_argument_error(problems, reading.headline)
    return reading.spec


def _refused_here(kind: Kind, spec: Mapping[str, Any], root: Path) -> list[FieldProblem]:
    field = kind.spec_field
    bad_folders = (
        _bad_folder(uri, (field, "baseOutputDirectory", "outputUriPrefix"), root)
        for uri in get_output_directories(spec[field]).values()
    )
    return [
        *unsupported_fields.find_rejected_fields(kind, spec),
        *unsupported_fields.find_oversized_pools(kind, spec),
        *next(filter(None, bad_folders), []),
        *_bad_packages(spec[field]["workerPoolSpecs"], (field, "workerPoolSpecs"), root),
    ]


def _bad_data(config: Mapping[str, Any] | None, root: Path) -> list[FieldProblem]:
    if config is None:
        return []
    if "bigqueryDestination" in config:
        message = "the emulator has no BigQuery: use gcsDestination"
        return [FieldProblem(("inputDataConfig", "bigqueryDestination"), message)]
    if "gcsDestination" not in config:
        message = "is required: the emulator has no dataset service, and takes the files that lie there"
        return [FieldProblem(("inputDataConfig", "gcsDestination"), message)]
    uri = config["gcsDestination"]["outputUriPrefix"]
    return _bad_folder(uri, ("inputDataConfig", "gcsDestination", "outputUriPrefix"), root)


def _bad_packages(pools: Sequence[Mapping[str, Any]], path: KeyPath, root: Path) -> Iterator[FieldProblem]:
    for index, pool in enumerate(pools):
        for number, uri in enumerate(pool.get("pythonPackageSpec", {}).get("packageUris", [])):
            yield from _bad_folder(uri, (*path, index, "pythonPackageSpec", "packageUris", number), root)


def _bad_folder(uri: str, path: KeyPath, root: Path) -> list[FieldProblem]:
    try:
        buckets.folder(root, uri)
    except InvalidBucketUri as error:
        return [FieldProblem(path, str(error))]
    return []
