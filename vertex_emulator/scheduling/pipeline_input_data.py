"""The data that a pipeline's inputDataConfig gives to its job.

The emulator has no dataset service. It looks for the exported files in the folder to which Vertex AI would export them.
Source of names and forms: the discovery document's InputDataConfig.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from vertex_emulator.errors import InvalidBucketUri
from vertex_emulator.gcs.files import BucketTree

_SPLITS = ("training", "validation", "test")
_FORMATS = ("jsonl", "csv")
_SPLIT_FIELDS = ("fractionSplit", "filterSplit", "predefinedSplit", "timestampSplit", "stratifiedSplit")
_FILTER_FIELDS = ("annotationSchemaUri", "annotationsFilter", "savedQueryId", "persistMlUseAssignment")


@dataclass(frozen=True)
class InputData:
    """The `AIP_*` variables of a job, and warnings about them for its log."""

    variables: dict[str, str]
    warnings: list[str]


def build_input_variables_and_warnings(config: Mapping[str, Any], buckets_folder: Path) -> InputData:
    """Resolve a canonical InputDataConfig.

    The files are in the folder of gcsDestination or in its last `dataset-*` folder by name, which a copied export has.
    """
    uri = config["gcsDestination"]["outputUriPrefix"].rstrip("/")
    tree = BucketTree(buckets_folder)
    exports = sorted(_list_matching_names(tree, uri, "dataset-*", is_folder=True), reverse=True)
    datasets = [
        (place, form)
        for place in (uri, *(f"{uri}/{export}" for export in exports))
        for form in _FORMATS
        if _list_matching_names(tree, place, f"training-*.{form}")
    ]
    place, form = datasets[0] if datasets else (uri, "jsonl" if "annotationSchemaUri" in config else "csv")
    variables = {f"AIP_{split.upper()}_DATA_URI": f"{place}/{split}-*.{form}" for split in _SPLITS}
    missing_splits = [
        split for split in _SPLITS[1:] if datasets and not _list_matching_names(tree, place, f"{split}-*.{form}")
    ]
    warnings = _iterate_warnings(config, uri, bool(datasets), missing_splits)
    return InputData({"AIP_DATA_FORMAT": form, **variables}, [f"inputDataConfig: {warning}" for warning in warnings])


def copy_with_input_variables(job_spec: Mapping[str, Any], input_data: InputData) -> dict[str, Any]:
    """Return a copy of a CustomJobSpec whose containers have the variables, before their own."""
    added = [{"name": name, "value": value} for name, value in input_data.variables.items()]
    pools = []
    for pool in job_spec["workerPoolSpecs"]:
        task = next((name for name in ("containerSpec", "pythonPackageSpec") if name in pool), None)
        pools.append({**pool, task: {**pool[task], "env": [*added, *pool[task].get("env", [])]}} if task else pool)
    return {**job_spec, "workerPoolSpecs": pools}


def _list_matching_names(tree: BucketTree, uri: str, pattern: str, is_folder: bool = False) -> list[str]:
    """Return the names of the files or folders in a folder that match; none if it cannot be read."""
    try:
        with tree.scan(uri) as entries:
            matching = [entry for entry in entries if fnmatchcase(entry.name, pattern)]
            kind = os.DirEntry.is_dir if is_folder else os.DirEntry.is_file
            return [entry.name for entry in matching if kind(entry, follow_symlinks=False)]
    except (FileNotFoundError, NotADirectoryError, PermissionError, InvalidBucketUri):
        return []


def _iterate_warnings(
    config: Mapping[str, Any], uri: str, has_training_files: bool, missing_splits: list[str]
) -> Iterator[str]:
    yield f"this machine has no dataset service; the files of dataset {config['datasetId']} are read from {uri}."
    if not has_training_files:
        yield f"{uri} has no files training-*.jsonl or training-*.csv; put them there before the job starts."
    if unused := [name for name in _SPLIT_FIELDS + _FILTER_FIELDS if name in config]:
        yield f"on this machine {', '.join(unused)} have no effect; split the files yourself."
    if missing_splits:
        yield f"there are no {' and no '.join(missing_splits)} files beside the training files."
