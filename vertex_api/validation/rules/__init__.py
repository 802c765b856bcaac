"""Rules of the service that the types of its messages cannot say.

Each is a generator of `(path, message)` over canonical values, its source in its docstring; "discovery document" is
that of aiplatform v1, "Google's page" one of the documentation on custom training. A rule whose spec stands in several
messages takes the path to it, `at`. Where Google does not say, nothing is refused.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.kinds import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, Kind
from vertex_api.validation.rules import job_spec, resource, tuning
from vertex_api.validation.rules.finding import KeyPath, Violation

__all__ = ["KeyPath", "Violation", "find_violations"]


def find_violations(kind: Kind, job: Mapping[str, Any]) -> Iterator[Violation]:
    """Every rule that a canonical job breaks."""
    yield from resource.find_resource_violations(job)
    if kind == CUSTOM_JOB:
        yield from job_spec.find_job_spec_violations(job["jobSpec"], ("jobSpec",))
    elif kind == HYPERPARAMETER_TUNING_JOB:
        yield from tuning.find_tuning_violations(job, ())
