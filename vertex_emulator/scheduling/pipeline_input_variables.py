"""The data that a pipeline's inputDataConfig gives to its job.

The emulator has no dataset service. It looks for the exported files in the folder to which Vertex AI would export them.
Source of names and forms: the discovery document's InputDataConfig.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vertex_emulator.gcs import bucket_folders

_SPLITS = ("training", "validation", "test")
_FORMATS = ("jsonl", "csv")
_SPLIT_FIELDS = ("fractionSplit", "filterSplit", "predefinedSplit", "timestampSplit", "stratifiedSplit")
_FILTER_FIELDS = ("annotationSchemaUri", "annotationsFilter", "savedQueryId", "persistMlUseAssignment")


@dataclass(frozen=True)
class InputData:
    """The `AIP_*` variables of a job, and warnings about them for its log."""

    variables: dict[str, str]
    warnings: list[str]


def resolve_input_data(config: Mapping[str, Any], buckets_folder: Path) -> InputData:
    """Resolve a canonical InputDataConfig. Raises InvalidBucketUri.

    The files are in the folder of gcsDestination or in its last `dataset-*` folder by name, which a copied export has.
    """
    uri = config["gcsDestination"]["outputUriPrefix"].rstrip("/")
    folder = bucket_folders.resolve_gs_uri(buckets_folder, uri)
    exports = sorted((path for path in folder.glob("dataset-*") if path.is_dir()), reverse=True)
    datasets = [
        (place, form) for place in (folder, *exports) for form in _FORMATS if any(place.glob(f"training-*.{form}"))
    ]
    place, form = datasets[0] if datasets else (folder, "jsonl" if "annotationSchemaUri" in config else "csv")
    prefix = "/".join([uri, *place.relative_to(folder).parts])
    variables = {f"AIP_{split.upper()}_DATA_URI": f"{prefix}/{split}-*.{form}" for split in _SPLITS}
    missing_splits = [split for split in _SPLITS[1:] if datasets and not any(place.glob(f"{split}-*.{form}"))]
    warnings = _render_warnings(config, uri, bool(datasets), missing_splits)
    return InputData({"AIP_DATA_FORMAT": form, **variables}, [f"inputDataConfig: {warning}" for warning in warnings])


def copy_with_input_variables(job_spec: Mapping[str, Any], input_data: InputData) -> dict[str, Any]:
    """Return a copy of a CustomJobSpec whose containers have the variables, before their own."""
    added = [{"name": name, "value": value} for name, value in input_data.variables.items()]
    pools = []
    for pool in job_spec["workerPoolSpecs"]:
        task = next((name for name in ("containerSpec", "pythonPackageSpec") if name in pool), None)
        pools.append({**pool, task: {**pool[task], "env": [*added, *pool[task].get("env", [])]}} if task else pool)
    return {**job_spec, "workerPoolSpecs": pools}


def _render_warnings(
    config: Mapping[str, Any], uri: str, has_training_files: bool, missing_splits: list[str]
) -> Iterator[str]:
    yield f"this machine has no dataset service; the files of dataset {config['datasetId']} are read from {uri}."
    if not has_training_files:
        yield f"{uri} has no files training-*.jsonl or training-*.csv; put them there before the job starts."
    if unused := [name for name in _SPLIT_FIELDS + _FILTER_FIELDS if name in config]:
        yield f"on this machine {', '.join(unused)} have no effect; split the files yourself."
    if missing_splits:
        yield f"there are no {' and no '.join(missing_splits)} files beside the training files."
