"""The judge of requests finds what the API's discovery document does not allow."""

from typing import Any

import pytest

from tests.corpus.discovery import broken
from tests.vertex_api.jobs import custom_job, edited
from vertex_api.messages import int64_as_text
from vertex_api.types import CustomJob

JOB = int64_as_text(CustomJob, custom_job())
POOL = ("jobSpec", "workerPoolSpecs", 0)


def test_a_job_that_is_right_is_right() -> None:
    assert broken("CustomJob", JOB) == []


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("lables",), {}, "CustomJob has no field lables"),
        (("state",), "JOB_STATE_QUEUED", "CustomJob.state is written by the service alone"),
        (("labels",), ["a"], "CustomJob.labels is no object: ['a']"),
        (("labels",), {"a": 1}, "CustomJob.labels.a is no string: 1"),
        ((*POOL, "replicaCount"), 1, "CustomJob.jobSpec.workerPoolSpecs[0].replicaCount is no string: 1"),
        ((*POOL, "replicaCount"), "one", "has not the format int64: 'one'"),
        ((*POOL, "machineSpec", "acceleratorCount"), "1", "acceleratorCount is no integer: '1'"),
        ((*POOL, "machineSpec", "acceleratorType"), "NVIDIA_T4", "acceleratorType has no value 'NVIDIA_T4'"),
        ((*POOL, "containerSpec", "args"), "a", "args is no array: 'a'"),
        (("jobSpec", "scheduling"), {"timeout": "1h"}, "timeout has not the format google-duration: '1h'"),
        (("jobSpec", "enableWebAccess"), 1, "enableWebAccess is no boolean: 1"),
    ],
)
def test_violations_are_found_with_their_path(path: tuple[str | int, ...], value: Any, said: str) -> None:
    (found,) = broken("CustomJob", edited(JOB, *path, to=value))
    assert found.endswith(said)
