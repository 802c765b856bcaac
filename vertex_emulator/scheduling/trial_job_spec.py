"""The spec of a trial's job: the study's trialJobSpec with the trial's parameters."""

from collections.abc import Mapping, Sequence
from typing import Any

from vertex_api.jobspec import output_folder
from vertex_emulator.database.records import Job

Values = Mapping[str, float | int | str]
_PROGRAM_FIELDS = ("containerSpec", "pythonPackageSpec")


def build_trial_job_spec(study: Job, trial_number: int, parameters: Values) -> dict[str, Any]:
    """Build the CustomJobSpec of a trial: parameters are appended to each pool's args, outputs go to its own folder."""
    spec = dict(study.spec["trialJobSpec"])
    flags = [f"--{name}={_format_flag_value(value)}" for name, value in parameters.items()]
    spec["workerPoolSpecs"] = [
        {name: _copy_appending_args(value, flags) if name in _PROGRAM_FIELDS else value for name, value in pool.items()}
        for pool in spec["workerPoolSpecs"]
    ]
    if directory := output_folder(spec, str(trial_number)):
        spec["baseOutputDirectory"] = {"outputUriPrefix": f"{directory}/"}
    return spec


def _copy_appending_args(container_or_package_spec: Mapping[str, Any], flags: Sequence[str]) -> dict[str, Any]:
    args = [*container_or_package_spec.get("args", []), *flags]
    return {**container_or_package_spec, "args": args}


def _format_flag_value(value: float | int | str) -> str:
    return repr(value) if isinstance(value, float) else str(value)
