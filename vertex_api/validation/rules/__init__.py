"""Rules of the service that the types of its messages do not express.

Each is a generator of `(path, message)` over canonical values, with its source in its docstring: "discovery document"
is that of aiplatform v1, "Google's page" one of the documentation on custom training. `at` is the path of the value in
the job. There is no rule without a source.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.job_kinds import CUSTOM_JOB, Kind
from vertex_api.validation.rules import common_fields, job_spec, tuning_job
from vertex_api.validation.rules.violation_type import KeyPath, Violation

__all__ = ["KeyPath", "Violation", "find_violations"]


def find_violations(kind: Kind, job: Mapping[str, Any]) -> Iterator[Violation]:
    """Find every rule that a canonical job breaks. Pipelines have rules of their own: `training_pipeline`."""
    yield from common_fields.find_common_field_violations(job)
    if kind == CUSTOM_JOB:
        yield from job_spec.find_job_spec_violations(job["jobSpec"], ("jobSpec",))
    else:
        yield from tuning_job.find_tuning_job_violations(job, ())
