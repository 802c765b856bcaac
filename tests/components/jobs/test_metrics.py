"""Metrics of jobs that have ended: from the target's store, once, and never a reason to fail."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from vertex_training.jobs import completion
from vertex_training.jobs.completion import CompletionProvider
from vertex_training.jobs.metrics import read, without_model

from tests.blocks import taken
from tests.components.fakes import NOON, FakeClient
from tests.standins.cloud_storage import CloudStorageStandIn, cloud_storage
from tests.vertex_emulator.events import plain, records
from vertex_api.metrics import MAX_EVENT_BYTES
from vertex_api.names import JobJson

PARENT = "projects/local/locations/us-central1"
LOCAL, CLOUD = f"//local/{PARENT}", f"//aiplatform.googleapis.com/{PARENT}"
SUCCEEDED = "JOB_STATE_SUCCEEDED"
FOLDER = {"baseOutputDirectory": {"outputUriPrefix": "gs://b/out"}}
TRAIN = f"{PARENT}/customJobs/1"
JOB: JobJson = {"name": TRAIN, "createTime": "2026-01-31T12:00:00Z", "state": SUCCEEDED, "jobSpec": FOLDER}


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the bucket `b` in the emulator's data folder."""
    monkeypatch.setenv("VERTEX_EMULATOR_DATA", str(tmp_path))
    folder = tmp_path / "gcs" / "b"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[CloudStorageStandIn]:
    with cloud_storage() as standin:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", standin.url)
        yield standin


def write(folder: Path, metrics: Mapping[str, Any], updated: float = NOON + 60) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "metrics.json"
    file.write_text(json.dumps(metrics))
    os.utime(file, (updated, updated))
    return file


def test_the_first_file_of_a_run_counts(bucket: Path) -> None:
    write(bucket / "out", {"loss": 2})
    assert read(LOCAL, {"train": JOB}) == ({"train": {"loss": 2}}, ["train: loss 2"])
    write(bucket / "out" / "model", {"loss": {"test": 0.123456}})
    assert read(LOCAL, {"train": JOB}) == ({"train": {"loss.test": 0.123456}}, ["train: loss.test 0.1235"])


def test_the_file_of_the_page_is_read(bucket: Path) -> None:
    (shown,) = taken("docs/configuration.md", "json")
    write(bucket / "out", json.loads(shown))
    metrics = {"accuracy": 0.9722, "test.loss": 0.0439}
    assert read(LOCAL, {"train": JOB}) == ({"train": metrics}, ["train: accuracy 0.9722, test.loss 0.0439"])


def test_a_file_of_an_earlier_run_is_ignored(bucket: Path) -> None:
    write(bucket / "out", {"loss": 2}, updated=NOON - 1)
    assert read(LOCAL, {"train": JOB}) == ({}, [])


def test_a_job_without_a_file_says_nothing(bucket: Path) -> None:
    assert read(LOCAL, {"train": JOB, "bare": {**JOB, "jobSpec": {}}}) == ({}, [])


def test_a_broken_file_is_a_line_of_its_job(bucket: Path) -> None:
    write(bucket / "out", {}).write_text("loss=0.5")
    write(bucket / "good", {"loss": 1})
    good = {**JOB, "jobSpec": {"baseOutputDirectory": {"outputUriPrefix": "gs://b/good"}}}
    found, lines = read(LOCAL, {"train": JOB, "good": good})
    assert found == {"good": {"loss": 1}}
    assert lines == ["good: loss 1", "train: its metrics are not read: gs://b/out/metrics.json: it is not JSON"]


def test_links_that_a_container_made_lead_nowhere(bucket: Path) -> None:
    outside = write(bucket.parent.parent / "outside", {"loss": 1})
    (bucket / "out").mkdir()
    (bucket / "out" / "metrics.json").symlink_to(outside)
    assert read(LOCAL, {"train": JOB}) == ({}, [])


def scalars(bucket: Path, name: str, *events: Any, updated: float = NOON + 60) -> Path:
    """Write an event file below the job's log folder."""
    file = bucket / "out" / "logs" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(records(events))
    os.utime(file, (updated, updated))
    return file


def test_without_a_file_the_last_scalars_count(bucket: Path) -> None:
    scalars(bucket, "train/events.out.tfevents.1", plain("loss", 1, 3), plain("acc", 1, 0.5), plain("loss", 2, 2))
    scalars(bucket, "events.out.tfevents.1", plain("lr", 1, 0.25))
    scalars(bucket, "other.txt", plain("no", 1, 1))
    expected = {"lr": 0.25, "train.acc": 0.5, "train.loss": 2}
    assert read(LOCAL, {"train": JOB}) == ({"train": expected}, ["train: lr 0.25, train.acc 0.5, train.loss 2"])
    write(bucket / "out", {"loss": 1})
    assert read(LOCAL, {"train": JOB})[0] == {"train": {"loss": 1}}
    write(bucket / "out", {}).write_text("loss=0.5")
    assert read(LOCAL, {"train": JOB})[0] == {}


def test_the_newest_event_file_counts(bucket: Path) -> None:
    scalars(bucket, "tfevents.b", plain("loss", 1, 3), plain("first", 1, 1), updated=NOON + 5)
    scalars(bucket, "tfevents.a", plain("loss", 9, 2), updated=NOON + 9)
    scalars(bucket, "tfevents.old", plain("old", 9, 2), updated=NOON - 9)
    assert read(LOCAL, {"train": JOB})[0] == {"train": {"first": 1, "loss": 2}}


def test_links_in_a_log_folder_lead_nowhere(bucket: Path) -> None:
    outside = scalars(bucket, "tfevents.1", plain("loss", 1, 3)).rename(bucket / "tfevents.1")
    (bucket / "out" / "logs" / "tfevents.2").symlink_to(outside)
    (bucket / "out" / "logs" / "linked").symlink_to(bucket)
    assert read(LOCAL, {"train": JOB}) == ({}, [])


def test_a_line_names_six_metrics_at_most(bucket: Path) -> None:
    write(bucket / "out", {f"m{number}": number for number in range(9)})
    _, lines = read(LOCAL, {"train": JOB})
    assert lines == ["train: m0 0, m1 1, m2 2, m3 3, m4 4, m5 5 and 3 more"]


def test_many_jobs_at_once_print_no_metrics(bucket: Path) -> None:
    write(bucket / "out", {"loss": 2})
    found, lines = read(LOCAL, {f"job{number}": JOB for number in range(40)})
    assert len(found) == 40
    assert lines == []


def test_a_search_has_its_best_trial_s_metrics() -> None:
    study = {"metrics": [{"metricId": "loss", "goal": "MINIMIZE"}]}
    losses = [{"metrics": [{"metricId": "loss", "value": value}]} for value in (0.5, 0.1)]
    trials = [
        {"id": str(number), "state": "SUCCEEDED", "finalMeasurement": loss} for number, loss in enumerate(losses, 1)
    ]
    search: JobJson = {**JOB, "studySpec": study, "trialJobSpec": FOLDER, "trials": trials}
    assert read(LOCAL, {"search": search}) == ({"search": {"loss": 0.1}}, [])


def test_cloud_storage_has_them_by_the_same_rule(cloud: CloudStorageStandIn) -> None:
    cloud.objects["b", "out/metrics.json"] = b'{"loss": 2}'
    cloud.updated = NOON - 1
    assert read(CLOUD, {"train": JOB}) == ({}, [])
    cloud.updated = NOON + 1
    assert read(CLOUD, {"train": JOB}) == ({"train": {"loss": 2}}, ["train: loss 2"])
    cloud.objects["b", "out/model/metrics.json"] = b""
    _, lines = read(CLOUD, {"train": JOB})
    assert lines == ["train: its metrics are not read: gs://b/out/model/metrics.json: it is not JSON"]
    cloud.objects["b", "out/model/metrics.json"] = b" " * 200_000
    _, lines = read(CLOUD, {"train": JOB})
    assert lines == ["train: its metrics are not read: gs://b/out/model/metrics.json: it has more than 64 KiB"]
    assert cloud.downloaded <= 70_000


def test_a_model_is_what_this_job_has_written(bucket: Path, cloud: CloudStorageStandIn) -> None:
    uploads = {**JOB, "modelToUpload": {}}
    jobs = {"train": JOB, "bare": {**JOB, "jobSpec": {}}, "uploads": uploads}
    assert without_model(LOCAL, jobs) == without_model(CLOUD, jobs) == ["train"]
    write(bucket / "out" / "model", {}, updated=NOON - 1)
    assert without_model(LOCAL, jobs) == ["train"]
    write(bucket / "out" / "model", {})
    cloud.objects["b", "out/model/weights"], cloud.updated = b"1", NOON + 1
    assert without_model(LOCAL, jobs) == without_model(CLOUD, jobs) == []


def test_long_event_files_are_read_from_their_end(cloud: CloudStorageStandIn, bucket: Path) -> None:
    long = [plain("loss", step, step) for step in range(10_000)]
    content = scalars(bucket, "run/a/tfevents.1", plain("early", 0, 1), *long, plain("late", 1, 1)).read_bytes()
    assert len(content) > MAX_EVENT_BYTES
    cloud.updated = NOON + 60
    cloud.objects["b", "out/logs/run/a/tfevents.1"] = content
    cloud.objects["b", "out/logs-of-another/tfevents.1"] = records([plain("other", 0, 1)])
    expected = {"run.a.late": 1, "run.a.loss": 9_999}
    assert read(CLOUD, {"train": JOB})[0] == read(LOCAL, {"train": JOB})[0] == {"train": expected}
    assert cloud.downloaded == MAX_EVENT_BYTES


def test_a_refusal_is_one_line_for_all(cloud: CloudStorageStandIn) -> None:
    cloud.refusal = "no access"
    found, (line,) = read(CLOUD, {f"job{number}": JOB for number in range(40)})
    assert found == {}
    assert line == (
        "metrics are not read: gs://b/out/model/metrics.json: Cloud Storage refuses: "
        f"GET {cloud.url}/storage/v1/b/b/o/out%2Fmodel%2Fmetrics.json?projection=noAcl&prettyPrint=false: no access; "
        "your account needs roles/storage.objectViewer on the bucket"
    )


@pytest.mark.usefixtures("clock")
def test_a_wait_reads_each_job_once(api: FakeClient, bucket: Path, capsys: pytest.CaptureFixture[str]) -> None:
    api.add(TRAIN, state="JOB_STATE_RUNNING", jobSpec=FOLDER)
    other = f"{PARENT}/customJobs/2"
    api.add(other, state="JOB_STATE_PENDING", jobSpec={})
    api.coming = {TRAIN: [SUCCEEDED], other: ["JOB_STATE_RUNNING"] * 3 + [SUCCEEDED]}
    write(bucket / "out", {"loss": 2})
    result = completion.wait(LOCAL, "team/dev", {"train": TRAIN, "other": other}, {})
    assert {name: each.get("metrics") for name, each in result.items()} == {"train": {"loss": 2}, "other": None}
    assert capsys.readouterr().out.splitlines().count("train: loss 2") == 1


def test_a_refresh_keeps_the_metrics(api: FakeClient, bucket: Path) -> None:
    api.add(TRAIN, state=SUCCEEDED, jobSpec=FOLDER)
    earlier = {"train": {"state": SUCCEEDED, "metrics": {"loss": 2}}, "gone": {"metrics": {"loss": 3}}}
    props = {"parent": LOCAL, "owner": "team/dev", "jobs": {"train": TRAIN}, "results": earlier}
    outs = CompletionProvider().read("completion", props).outs
    assert outs["results"] == {"train": {"state": SUCCEEDED, "modelDir": "gs://b/out/model/", "metrics": {"loss": 2}}}
