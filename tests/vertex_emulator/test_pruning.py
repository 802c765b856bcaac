"""What a prune removes and keeps, on a machine in memory and by the command."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.vertex_emulator.fakes import Clock, Emulator, Machine, use_clock
from tests.vertex_emulator.jobs import LOCATION, custom_job_spec, pool
from tests.vertex_emulator.running import RunningEmulator, command
from tests.vertex_emulator.scheduling.steps import reports, submit, submit_study
from tests.vertex_emulator.test_removal import nest_folders
from vertex_api.names import CUSTOM_JOB, TRAINING_PIPELINE
from vertex_api.pipelines import CUSTOM_TASK
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database
from vertex_emulator.pruning import PruneReport, prune_jobs, split_referenced
from vertex_emulator.replicas.environment import METRIC_FOLDER
from vertex_emulator.replicas.spec import ReplicaSpec

DAY = 24 * 3600


@pytest.fixture
def emulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Emulator:
    clock = Clock()
    use_clock(clock, monkeypatch)

    def program(spec: ReplicaSpec) -> int:
        is_trial = any(mount.target == METRIC_FOLDER for mount in spec.mounts)
        return reports(spec) if is_trial else 0

    return Emulator(tmp_path / "data", Machine(clock, program=program))


def prune(emulator: Emulator, outputs: bool = False, dry_run: bool = False) -> PruneReport:
    """Remove what is older than a day."""
    before = emulator.machine.clock.now_ns() - DAY * 10**9
    wake = emulator.scheduler.wake
    report = prune_jobs(emulator.database, emulator.data, before, outputs, dry_run, wake)
    emulator.run_ready_steps()
    return report


def output(emulator: Emulator, name: str) -> Path:
    """The folder of a run, with a file and a link out of the buckets."""
    folder = emulator.data.buckets / "runs" / name
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "weights").write_text("12345")
    (folder / "checkpoints" / "link").symlink_to(emulator.data.root)
    return folder


def spec(name: str, **container: Any) -> dict[str, Any]:
    return custom_job_spec(pool(**container), baseOutputDirectory={"outputUriPrefix": f"gs://runs/{name}"})


def ids(emulator: Emulator) -> list[str]:
    with emulator.database.read() as transaction:
        return [row["id"] for row in transaction.rows.read("jobs")]


def test_old_jobs_go_with_their_parts(emulator: Emulator) -> None:
    submit(emulator)
    submit_study(emulator, trials=2)
    deleted = submit(emulator)
    emulator.run()
    emulator.run_ready_steps()
    emulator.jobs.delete(CUSTOM_JOB, LOCATION, deleted)
    emulator.machine.clock.advance(2 * DAY)
    young, active = submit(emulator), submit(emulator)
    emulator.run(until=lambda each: each.job(young).is_terminal)
    before = prune(emulator, dry_run=True)
    assert len(ids(emulator)) == 6
    report = prune(emulator)
    assert report == before
    assert (report.jobs, report.trials, report.operations, report.objects) == (2, 2, 1, 0)
    assert report.log_bytes > 0
    assert ids(emulator) == [young, active]
    assert {*emulator.data.job_ids()} <= {young, active}
    assert prune(emulator) == PruneReport(0, 0, 0, 0)


def test_endlessly_nested_folders_go_too(emulator: Emulator) -> None:
    submit_study(emulator, trials=2)
    emulator.run()
    trial, _ = emulator.data.trials.iterdir()
    nest_folders(trial)
    emulator.machine.clock.advance(2 * DAY)
    assert prune(emulator, dry_run=True) == prune(emulator)
    assert not trial.exists()


def test_pruned_pipelines_leave_their_models(emulator: Emulator) -> None:
    output(emulator, "model/model")
    body = {
        "displayName": "a pipeline",
        "trainingTaskDefinition": CUSTOM_TASK,
        "trainingTaskInputs": spec("model")["jobSpec"],
        "modelToUpload": {"displayName": "a model", "containerSpec": {"imageUri": "serve:1"}},
    }
    emulator.jobs.create(TRAINING_PIPELINE, LOCATION, body)
    emulator.run()
    assert prune(emulator) == PruneReport(0, 0, 0, 0)
    emulator.machine.clock.advance(2 * DAY)
    report = prune(emulator, outputs=True)
    assert (report.jobs, report.objects, report.kept_outputs) == (2, 0, ["gs://runs/model"])
    with emulator.database.read() as transaction:
        assert len([*transaction.models.iterate()]) == 1


def test_outputs_stay_unless_asked_and_unreferenced(emulator: Emulator) -> None:
    used, recorded, unused = (output(emulator, name) for name in ("used", "recorded", "unused"))
    for name in ("used", "recorded", "unused"):
        submit(emulator, spec(name))
    emulator.run()
    with emulator.database.write() as transaction:
        store = f"{LOCATION.name}/metadataStores/default"
        transaction.lineage.add(f"{store}/artifacts/model", {"uri": "gs://runs/recorded/weights"})
    emulator.machine.clock.advance(2 * DAY)
    submit(emulator, spec("next", args=["--from=/gcs/runs/used/weights"]))
    dry = prune(emulator, outputs=True, dry_run=True)
    assert (used / "weights").exists() and (unused / "weights").exists()
    report = prune(emulator, outputs=True)
    assert (report.objects, report.object_bytes, report.kept_outputs) == (
        1,
        5,
        ["gs://runs/recorded", "gs://runs/used"],
    )
    assert dry == report
    assert (used / "weights").exists() and (recorded / "weights").exists() and not unused.exists()
    assert emulator.data.database.exists()  # to which a link in the folder led


@pytest.fixture
def old_job(tmp_path: Path) -> Path:
    """A data folder with a job that ended long ago."""
    data = DataFolder.open(tmp_path / "data")
    database = Database(data.database)
    with database.write() as transaction:
        job = transaction.jobs.add("1", CUSTOM_JOB, LOCATION, custom_job_spec())
        transaction.jobs.update(job, state="JOB_STATE_SUCCEEDED")
        transaction.rows._connection.execute("UPDATE jobs SET ended = 1")
    database.close()
    return data.root


def test_the_command_prunes_with_and_without_emulator(old_job: Path) -> None:
    dry = command("prune", "--older-than=7d", "--dry-run", data=old_job)
    assert (dry.returncode, dry.stdout[:20]) == (0, "would remove 1 jobs,")
    emulator = RunningEmulator(old_job)
    try:
        again = command("prune", "--older-than=7d", "--dry-run", data=old_job)
        assert again.stdout == dry.stdout, again.stderr
        assert emulator.call("GET", "vertex_emulator/jobs/1")["state"] == "JOB_STATE_SUCCEEDED"
        done = command("prune", "--older-than=7d", "--json", data=old_job)
        assert (json.loads(done.stdout)["jobs"], done.stderr) == (1, "")
        emulator.call("GET", "vertex_emulator/jobs/1", expect=404)
        emulator.call("POST", "vertex_emulator/prune", {"ageSeconds": -1}, expect=400)
    finally:
        emulator.close()
    assert "removed 0 jobs" in command("prune", "--older-than=7d", data=old_job).stdout


def test_an_age_needs_a_unit(tmp_path: Path) -> None:
    done = command("prune", "--older-than=7", data=tmp_path)
    assert (done.returncode, "such as 7d or 12h" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [
        ('{"artifactUri": "gs://bucket/run/model"}', True),
        ('{"args": ["--from=/gcs/bucket/run"]}', True),
        ('{"outputUriPrefix": "gs://bucket/run/"}', True),
        ('{"outputUriPrefix": "gs://bucket/all"}', False),
        ('{"args": ["gs://bucket/running", "gs://bucket/run2"]}', False),
        ('{"args": ["gs://bucket"]}', False),
        ('{"args": ["gs://other/run"]}', False),
    ],
)
def test_references_keep_a_folder(text: str, is_kept: bool) -> None:
    unreferenced, kept = split_referenced(["gs://bucket/run"], [text])
    assert (unreferenced, kept) == (([], ["gs://bucket/run"]) if is_kept else (["gs://bucket/run"], []))


def test_references_above_keep_a_folder() -> None:
    assert split_referenced(["gs://b/all/run"], ["gs://b/all"]) == ([], ["gs://b/all/run"])


def test_a_whole_bucket_is_kept() -> None:
    assert split_referenced(["gs://bucket"], []) == ([], ["gs://bucket"])
