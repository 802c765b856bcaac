"""Why a job failed, and what may help one that waits without machines."""

from typing import Any

import pytest
from vertex_training.jobs.failures import (
    LONG_WAIT_MINUTES,
    WaitAdvice,
    failure_report,
    metric_notes,
)
from vertex_training.runtime import target
from vertex_training.runtime.target import EmulatorLinks

from tests.components.fakes import NOON, FakeClient
from tests.vertex_api.jobs import custom_job, tuning_job, tuning_pipeline
from vertex_api import errors
from vertex_api.errors import FOUND_HERE

PARENT = "projects/local/locations/us-central1"
TRAIN, SEARCH = f"{PARENT}/customJobs/1", f"{PARENT}/hyperparameterTuningJobs/2"
EXITED = "The replica workerpool1-0 exited with a non-zero status of 1."
HINT = " To find out more about why your job exited please check the logs: https://console.cloud.google.com/logs/viewer"
LOW_ON_MEMORY = "Replicas low on memory: workerpool0. Specify a machine with larger memory and try again."
CALL = (
    "call hypertune.HyperTune().report_hyperparameter_tuning_metric("
    "hyperparameter_metric_tag='accuracy', metric_value=…)"
)


def said(api: FakeClient, job: dict[str, Any]) -> list[str]:
    at = target.Target(api, PARENT, EmulatorLinks("http://127.0.0.1:1"))
    return failure_report(at, "digits", job).splitlines()


def failed(message: str) -> dict[str, Any]:
    return {"name": TRAIN, "state": "JOB_STATE_FAILED", "jobSpec": {}, "error": {"code": 3, "message": message}}


def search(*trials: dict[str, Any], **fields: Any) -> dict[str, Any]:
    study = {"metrics": [{"metricId": "accuracy"}]}
    return {"name": SEARCH, "state": "JOB_STATE_FAILED", "studySpec": study, "trials": list(trials), **fields}


def infeasible(number: int, reason: str, **fields: Any) -> dict[str, Any]:
    return {"id": str(number), "state": "INFEASIBLE", "infeasibleReason": reason, **fields}


def test_a_report_shows_the_failed_replica_s_log(api: FakeClient) -> None:
    api.logs[f"{TRAIN}/workerpool1-0"] = [f"line {number}" for number in range(20)] + ["ValueError: no data"]
    api.logs[TRAIN] = ["of another replica"]
    assert said(api, failed(f"{EXITED}{HINT}?project=1&resource=ml_job%2Fjob_id%2F1")) == [
        f"digits failed: {EXITED}",
        "  the last log lines of workerpool1-0:",
        *[f"    line {number}" for number in range(11, 20)],
        "    ValueError: no data",
        "  all of it: http://127.0.0.1:1/jobs/customJobs/1 or `vertex-emulator logs 1`",
        "  fix it, or run it again as it is with another value of its lifecycle.rerun",
    ]


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("The replica workerpool3-12 failed to start: no such package", "workerpool3-12"),
        # Only the first pool has one replica for sure.
        (LOW_ON_MEMORY, "workerpool0-0"),
        (LOW_ON_MEMORY.replace("pool0", "pool1"), "workerpool1"),
    ],
)
def test_a_chatty_replica_crowds_out_no_other(api: FakeClient, message: str, shown: str) -> None:
    api.logs[f"{TRAIN}/{shown}"], api.logs[TRAIN] = ["Killed"], ["of a chatty replica"] * 20
    lines = said(api, failed(message))
    at = lines.index(f"  the last log lines of {shown}:")
    assert lines[at + 1 : at + 2] == ["    Killed"]
    assert not any("chatty" in line for line in lines)


def test_without_a_replica_the_whole_log_is_shown(api: FakeClient) -> None:
    api.logs[TRAIN] = ["the end"]
    assert said(api, {"name": TRAIN, "state": "JOB_STATE_EXPIRED"})[:3] == [
        "digits failed: JOB_STATE_EXPIRED",
        "  its last log lines:",
        "    the end",
    ]


def test_an_empty_or_unreadable_log_is_reported(api: FakeClient) -> None:
    assert "    (it wrote nothing)" in said(api, failed("x"))
    api.failing["log_lines"] = errors.PermissionDenied("no permission")
    needed = "whoever reads it needs roles/logging.viewer on the project"
    assert f"    (its log cannot be read: no permission; {needed})" in said(api, failed("x"))


def test_the_likely_cause_follows_the_service_s_message(api: FakeClient) -> None:
    api.logs[f"{TRAIN}/workerpool1-0"] = ["ModuleNotFoundError: No module named 'torch'"]
    assert said(api, failed(EXITED))[1].startswith("  likely cause: the image has no Python module torch")


def test_a_python_exception_comes_first(api: FakeClient) -> None:
    traceback = [
        "Traceback (most recent call last):",
        '  File "/app/train.py", line 3, in <module>',
        "    import torch",
    ]
    error = "ModuleNotFoundError: No module named 'torch'"
    api.logs[f"{TRAIN}/workerpool1-0"] = [*traceback, error, *["and so on"] * 50]
    report = said(api, failed(EXITED))
    assert report[1] == f"  last exception: {error} (/app/train.py:3)"
    assert report[2].startswith("  likely cause: the image has no Python module torch")
    assert report[4:6] == ["    and so on"] * 2
    api.failing["log_lines"] = errors.PermissionDenied("no permission")
    told = "\n".join([f"{EXITED} Termination reason: Error. ", *traceback, error])
    assert f"  last exception: {error} (/app/train.py:3)" in said(api, failed(told))


def test_a_stockout_is_followed_by_what_may_help(api: FakeClient) -> None:
    job = {**custom_job(), **failed("Resources are insufficient in region: us-central1.")}
    lines = said(api, {**job, "jobSpec": custom_job()["jobSpec"]})
    assert lines[1:5] == [
        "  likely cause: the region is out of such machines for now: try later, or change the job as below",
        "  what may help (each of these replaces the job):",
        "    - scheduling: {strategy: SPOT}: spare machines, which may be taken back; it takes preemptible quota",
        "    - another machineType: n2-standard-4, n4-standard-4, e2-standard-4, c2-standard-4",
    ]
    assert not any("what may help" in line for line in said(api, failed(EXITED)))


def test_the_last_failed_trials_have_their_reasons(api: FakeClient) -> None:
    api.logs[SEARCH] = ["boom"]
    job = search(*(infeasible(number, EXITED) for number in (5, 1, 2, 4, 3)), error={"message": "Too many failed"})
    lines = said(api, job)
    assert lines[:3] == [
        "digits failed: Too many failed",
        f"  trials 3, 4, 5: {EXITED}",
        "  and 2 more trials failed",
    ]
    assert "    boom" in lines
    assert not any("never reported" in line for line in lines)


def test_an_unreported_metric_is_said_once(api: FakeClient) -> None:
    reason = "The trial ended without reporting the metric accuracy. It reported acc."
    report = "\n".join(said(api, search(infeasible(1, reason), error={"message": f"Too many failed. Last: {reason}"})))
    assert f"  likely cause: metric `accuracy` was never reported by 1 of 1 trials: {CALL}." in report
    assert report.count(reason) == 1
    (note,) = metric_notes(search(infeasible(1, reason)))
    assert note.endswith(f" Trial 1: {reason}")


def test_what_the_emulator_found_is_a_cause(api: FakeClient) -> None:
    found = "the image has no /app/trainer/tsk.py; it has /app/trainer/task.py"
    api.logs[f"{TRAIN}/service"] = ["Job failed.", f"{FOUND_HERE}{found}", f"{FOUND_HERE}{found}"]
    api.logs[f"{TRAIN}/workerpool1-0"] = ["/usr/bin/python: No module named trainer.tsk"]
    assert said(api, failed(EXITED))[1:3] == [
        f"  likely cause: {found}",
        "  likely cause: the image has the package trainer, and no module trainer.tsk: correct the name in the "
        "command, or COPY the file there",
    ]


def test_a_tag_that_was_reported_instead_is_named() -> None:
    other = {"finalMeasurement": {"metrics": [{"metricId": "acc", "value": 1}]}}
    job = search({"id": "1", "state": "SUCCEEDED", **other}, {"id": "2", "state": "SUCCEEDED"})
    (line,) = metric_notes(job)
    assert line == f"metric `accuracy` was never reported by 2 of 2 trials: {CALL}. They reported acc."
    assert list(metric_notes(failed("x"))) == []


CLOUD_PARENT = "projects/acme-dev/locations/us-central1"
LATER = NOON + LONG_WAIT_MINUTES * 60
SPOT = "    - scheduling: {strategy: SPOT}: spare machines, which may be taken back; it takes preemptible quota"


def waiting(state: str, number: int = 1, collection: str = "customJobs", **fields: Any) -> dict[str, Any]:
    body = {"customJobs": custom_job, "hyperparameterTuningJobs": tuning_job, "trainingPipelines": tuning_pipeline}
    prefix = "PIPELINE_STATE" if collection == "trainingPipelines" else "JOB_STATE"
    name = f"projects/123/locations/us-central1/{collection}/{number}"
    return {
        **body[collection](),
        "name": name,
        "state": f"{prefix}_{state}",
        "createTime": "2026-01-31T12:00:00Z",
        **fields,
    }


@pytest.fixture
def advice() -> WaitAdvice:
    return WaitAdvice(f"//aiplatform.googleapis.com/{CLOUD_PARENT}")


def test_a_job_that_waits_long_has_advice_once(advice: WaitAdvice) -> None:
    jobs = {"a": waiting("PENDING"), "b": waiting("RUNNING", 2)}
    assert advice.take_lines(jobs, LATER - 1) == []
    lines = advice.take_lines(jobs, LATER)
    assert lines[:3] == [
        f"a: PENDING for {LONG_WAIT_MINUTES} min, as machines may be short, or an image is large",
        "  what may help (each of these replaces the job):",
        SPOT,
    ]
    assert advice.take_lines(jobs, LATER + 60) == []


def test_a_queued_job_has_its_quotas_named(advice: WaitAdvice) -> None:
    lines = advice.take_lines({"a": waiting("QUEUED")}, LATER)
    assert lines[:3] == [
        f"a: QUEUED for {LONG_WAIT_MINUTES} min, as quota or machines are short",
        "  it needs these quotas (aiplatform.googleapis.com/custom_model_training_NAME): cpus 4, pd_ssd 100",
        "  see and ask for more: https://console.cloud.google.com/iam-admin/quotas?project=acme-dev",
    ]
    assert SPOT in lines


def test_many_jobs_of_one_kind_have_one_advice(advice: WaitAdvice) -> None:
    jobs = {f"j{number}": waiting("QUEUED", number) for number in range(200)}
    lines = advice.take_lines(jobs, LATER)
    assert lines[0].startswith("j0, j1, j2, j3, j4 and 195 more: QUEUED for ")
    assert len(lines) < 10
    late = {"late": waiting("QUEUED", 201, createTime="2026-01-31T12:05:00Z")}
    assert advice.take_lines({**jobs, **late}, LATER + 300) == []


@pytest.mark.parametrize("collection", ["hyperparameterTuningJobs", "trainingPipelines"])
def test_every_kind_of_job_has_advice(advice: WaitAdvice, collection: str) -> None:
    assert SPOT in advice.take_lines({"a": waiting("PENDING", collection=collection)}, LATER)


def test_jobs_on_this_machine_have_no_advice() -> None:
    assert WaitAdvice(f"//local/{CLOUD_PARENT}").take_lines({"a": waiting("QUEUED")}, LATER) == []
