"""The folders of a run's output, below the output directory that its CustomJobSpec names."""

from collections.abc import Mapping
from typing import Any

OUTPUT_FOLDERS = {"AIP_MODEL_DIR": "model", "AIP_CHECKPOINT_DIR": "checkpoints", "AIP_TENSORBOARD_LOG_DIR": "logs"}
"""The folders below a run's output directory, by the variables that name them in its containers (discovery document,
CustomJobSpec.baseOutputDirectory)."""


def get_output_directory_or_none(job_spec: Mapping[str, Any], trial_id: str = "") -> str | None:
    """Return the `gs://` folder of a run's output, without a slash at its end, None if the spec names none.

    Each trial of a tuning job has a folder of its own below that of the job, named by its id (discovery document,
    CustomJobSpec.baseOutputDirectory).
    """
    prefix = job_spec.get("baseOutputDirectory", {}).get("outputUriPrefix")
    return "/".join([prefix.rstrip("/"), *filter(None, [trial_id])]) if prefix else None


def get_output_directories_by_variable(job_spec: Mapping[str, Any], trial_id: str = "") -> dict[str, str]:
    """Return the `gs://` folders of a run by the variables of `OUTPUT_FOLDERS`, empty if the spec names none."""
    base = get_output_directory_or_none(job_spec, trial_id)
    return {variable: f"{base}/{folder}/" for variable, folder in OUTPUT_FOLDERS.items()} if base else {}


def get_model_directory_or_none(job_spec: Mapping[str, Any], trial_id: str = "") -> str | None:
    """Return the `gs://` folder where a run puts its model, None if the spec names no output directory."""
    return get_output_directories_by_variable(job_spec, trial_id).get("AIP_MODEL_DIR")
