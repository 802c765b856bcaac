"""The data that a pipeline's inputDataConfig gives to its job.

The emulator has no dataset service. It looks for the exported files in the folder to which Vertex AI would export them.
Source of names and forms: the discovery document's InputDataConfig.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vertex_emulator.gcs import buckets

_SPLITS = ("training", "validation", "test")
_FORMATS = ("jsonl", "csv")
_IGNORED_FIELDS = (
    "fractionSplit",
    "filterSplit",
    "predefinedSplit",
    "timestampSplit",
    "stratifiedSplit",
    "annotationSchemaUri",
    "annotationsFilter",
    "savedQueryId",
    "persistMlUseAssignment",
)


@dataclass(frozen=True)
class InputData:
    """The `AIP_*` variables of a job, and warnings about them for its log."""

    variables: dict[str, str]
    warnings: list[str]


def resolve_input_data(config: Mapping[str, Any], root: Path) -> InputData:
    """Resolve a canonical InputDataConfig; `root` is the folder of the buckets. Raises InvalidBucketUri.

    The files are in the folder of gcsDestination or in its last `dataset-*` folder by name, which a copied export has.
    """
    uri = config["gcsDestination"]["outputUriPrefix"].rstrip("/")
    folder = buckets.resolve_folder(root, uri)
    folders = [folder, *sorted((found for found in folder.glob("dataset-*") if found.is_dir()), reverse=True)]
    datasets = [(place, form) for place in folders for form in _FORMATS if any(place.glob(f"training-*.{form}"))]
    place, form = datasets[0] if datasets else (folder, "jsonl" if "annotationSchemaUri" in config else "csv")
    prefix = "/".join([uri, *place.relative_to(folder).parts])
    variables = {"AIP_DATA_FORMAT": form}
    for name in _SPLITS:
        variables[f"AIP_{name.upper()}_DATA_URI"] = f"{prefix}/{name}-*.{form}"
    return InputData(
        variables, [*_input_data_warnings(config, uri, bool(datasets)), *_missing_split_warnings(place, form, datasets)]
    )


def add_input_variables(job_spec: Mapping[str, Any], data: InputData) -> dict[str, Any]:
    """Return a copy of a CustomJobSpec whose containers have the variables, before their own."""
    added = [{"name": name, "value": value} for name, value in data.variables.items()]
    pools = []
    for pool in job_spec["workerPoolSpecs"]:
        task = next((name for name in ("containerSpec", "pythonPackageSpec") if name in pool), None)
        pools.append({**pool, task: {**pool[task], "env": [*added, *pool[task].get("env", [])]}} if task else pool)
    return {**job_spec, "workerPoolSpecs": pools}


def _input_data_warnings(config: Mapping[str, Any], uri: str, found: bool) -> list[str]:
    lines = [
        f"inputDataConfig: this machine has no dataset service; the files of dataset {config['datasetId']} are read "
        f"from {uri}."
    ]
    if not found:
        lines.append(
            f"inputDataConfig: {uri} has no files training-*.jsonl or training-*.csv; put them there before the job "
            "starts."
        )
    unused = [name for name in _IGNORED_FIELDS if name in config]
    if unused:
        lines.append(f"inputDataConfig: on this machine {', '.join(unused)} have no effect; split the files yourself.")
    return lines


def _missing_split_warnings(place: Path, form: str, found: list[tuple[Path, str]]) -> list[str]:
    missing = [name for name in _SPLITS[1:] if found and not any(place.glob(f"{name}-*.{form}"))]
    return [f"inputDataConfig: there are no {' and no '.join(missing)} files beside the training files."] * bool(
        missing
    )
