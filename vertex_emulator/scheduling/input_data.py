"""What a pipeline's inputDataConfig gives to its job.

There is no dataset service here: the files that Vertex AI would export are looked for where it would export them to.
Source of names and forms: the discovery document's InputDataConfig.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vertex_emulator.gcs import buckets

_SETS = ("training", "validation", "test")
_FORMATS = ("jsonl", "csv")
_UNUSED = (
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
    """The `AIP_*` variables of a job, and what its owner should know about them."""

    variables: dict[str, str]
    warnings: list[str]


def input_data(config: Mapping[str, Any], root: Path) -> InputData:
    """The data of a canonical InputDataConfig; `root` is the folder of the buckets. Raises BadUri.

    The files are found in the folder of gcsDestination, or in the last by name of its `dataset-*` folders, which is
    what a copy of an export brings along.
    """
    uri = config["gcsDestination"]["outputUriPrefix"].rstrip("/")
    folder = buckets.folder(root, uri)
    folders = [folder, *sorted((found for found in folder.glob("dataset-*") if found.is_dir()), reverse=True)]
    there = [(place, form) for place in folders for form in _FORMATS if any(place.glob(f"training-*.{form}"))]
    place, form = there[0] if there else (folder, "jsonl" if "annotationSchemaUri" in config else "csv")
    prefix = "/".join([uri, *place.relative_to(folder).parts])
    variables = {"AIP_DATA_FORMAT": form}
    for name in _SETS:
        variables[f"AIP_{name.upper()}_DATA_URI"] = f"{prefix}/{name}-*.{form}"
    return InputData(variables, [*_about(config, uri, bool(there)), *_about_sets(place, form, there)])


def with_data(job_spec: Mapping[str, Any], data: InputData) -> dict[str, Any]:
    """A CustomJobSpec whose containers have the variables, before their own so that these can refer to them."""
    added = [{"name": name, "value": value} for name, value in data.variables.items()]
    pools = []
    for pool in job_spec["workerPoolSpecs"]:
        task = next((name for name in ("containerSpec", "pythonPackageSpec") if name in pool), None)
        pools.append({**pool, task: {**pool[task], "env": [*added, *pool[task].get("env", [])]}} if task else pool)
    return {**job_spec, "workerPoolSpecs": pools}


def _about(config: Mapping[str, Any], uri: str, found: bool) -> list[str]:
    lines = [
        f"inputDataConfig: there is no dataset service on this machine; the files of dataset {config['datasetId']} are "
        f"those that lie below {uri}."
    ]
    if not found:
        lines.append(
            f"inputDataConfig: {uri} has no files training-*.jsonl or training-*.csv; put them there before the job "
            "starts."
        )
    unused = [name for name in _UNUSED if name in config]
    if unused:
        lines.append(f"inputDataConfig: on this machine {', '.join(unused)} change nothing; split the files yourself.")
    return lines


def _about_sets(place: Path, form: str, found: list[tuple[Path, str]]) -> list[str]:
    missing = [name for name in _SETS[1:] if found and not any(place.glob(f"{name}-*.{form}"))]
    return [f"inputDataConfig: there are no {' and no '.join(missing)} files beside the training files."] * bool(
        missing
    )
