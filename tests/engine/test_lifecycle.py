"""The life of a stack through the real engine, Docker and the emulator."""

from collections.abc import Iterator
from contextlib import closing

import docker
import pytest

from tests.engine.golden import load_golden_steps
from tests.engine.project import PARENT, SEARCH, Project, create_project, is_running


def test_the_first_up_trains_and_outputs_results(project: Project) -> None:
    project.declarations["hyperparameterTuningJobs"] = {"search": SEARCH}
    project.declare()
    assert project.steps() == load_golden_steps("first")

    project.up()

    outputs = project.outputs()
    uri = outputs["images"]["trainer"]
    assert uri.startswith("localhost/vertex-training/trainer:") and len(uri.rpartition(":")[2]) == 16
    assert {name: run["state"] for name, run in outputs["jobs"].items()} == dict.fromkeys(
        ("train", "search"), "JOB_STATE_SUCCEEDED"
    )
    assert outputs["jobs"]["train"]["page"].startswith(f"{project.endpoint()['url']}/jobs/customJobs/")
    printed = project.run_emulator("logs", outputs["jobs"]["train"]["logs"].rpartition(" ")[2])
    assert "epoch 1 of 1" in printed.stdout
    bucket, _, folder = outputs["results"]["train"]["modelDir"].removeprefix("gs://").partition("/")
    assert (project.data / "gcs" / bucket / folder / "model.txt").read_text() == "0.5"
    result = outputs["results"]["search"]
    assert [trial["id"] for trial in result["trials"]] == ["1", "2", "3", "4"]
    best = max(result["trials"], key=lambda trial: trial["metrics"]["score"])
    assert result["bestTrial"] == best
    assert f"/{best['id']}/model/" in result["modelDir"]
    project.assert_no_changes()


@pytest.fixture(scope="class")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project whose job has run. Each test that shares it leaves it with a preview without changes."""
    with create_project(tmp_path_factory.mktemp("trained")) as project:
        project.use_own_image("is shared by tests")
        project.up()
        yield project


class TestTrainedStack:
    """Edits of a stack that is up, in any order."""

    def test_a_provider_takes_under_200_bytes_of_state(self, trained: Project) -> None:
        inputs = {name: item.get("inputs", {}) for name, item in trained.resources().items()}
        providers = {name: given["__provider"] for name, given in inputs.items() if "__provider" in given}
        assert providers.keys() == {"emulator", "ledger", "trainer", "train", "completion"}
        assert all(len(text) < 200 for text in providers.values()), providers

    def test_a_second_up_changes_nothing_and_builds_nothing(self, trained: Project) -> None:
        tagged, job = _read_tag_time(trained), trained.list_jobs()
        output = trained.up()
        assert "7 unchanged" in output and "Step 1/" not in output
        assert _read_tag_time(trained) == tagged
        assert trained.list_jobs() == job

    def test_a_code_edit_changes_only_tag_and_job(self, trained: Project) -> None:
        before = trained.outputs()
        trained.edit_code()
        assert trained.steps() == load_golden_steps("code-edit")

        trained.up()

        after = trained.outputs()
        assert after["images"]["trainer"] != before["images"]["trainer"]
        assert [job["name"] for job in trained.list_jobs()] == [after["jobs"]["train"]["name"]]
        assert after["jobs"]["train"]["name"] != before["jobs"]["train"]["name"]
        assert after["results"]["train"]["modelDir"] != before["results"]["train"]["modelDir"]
        trained.assert_no_changes()

    def test_a_spec_edit_replaces_only_the_job(self, trained: Project) -> None:
        trained.declarations["vars"]["epochs"] = 2
        trained.declare()
        assert trained.steps() == load_golden_steps("spec-edit")
        trained.up()
        (job,) = trained.list_jobs()
        assert job["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"] == ["--epochs=2"]
        trained.assert_no_changes()

    def test_a_lifecycle_edit_updates_in_place(self, trained: Project) -> None:
        before = trained.list_jobs()
        trained.job["lifecycle"]["onDelete"] = "keep"
        trained.declare()
        assert trained.steps() == load_golden_steps("lifecycle-edit")
        trained.up()
        assert trained.list_jobs() == before
        trained.assert_no_changes()

        del trained.job["lifecycle"]["onDelete"]
        trained.declare()
        trained.up()
        assert trained.list_jobs() == before

    def test_rerun_runs_an_unchanged_job_again(self, trained: Project) -> None:
        (before,) = trained.list_jobs()
        trained.job["lifecycle"]["rerun"] = 1
        trained.declare()
        assert trained.steps() == load_golden_steps("rerun")
        trained.up()
        (after,) = trained.list_jobs()
        assert after["name"] != before["name"]
        trained.assert_no_changes()

    def test_a_job_deleted_outside_the_stack_is_restored(self, trained: Project) -> None:
        (job,) = trained.list_jobs()
        trained.request("DELETE", job["name"])
        refreshed = trained.refresh()
        assert "1 deleted" in refreshed
        assert trained.steps() == load_golden_steps("drift")
        trained.up()
        (restored,) = trained.list_jobs()
        assert restored["name"] != job["name"]
        assert trained.outputs()["jobs"]["train"]["name"] == restored["name"]
        trained.assert_no_changes()

    def test_an_image_removed_from_docker_is_rebuilt(self, trained: Project) -> None:
        uri = trained.outputs()["images"]["trainer"]
        with closing(docker.from_env()) as client:
            client.images.remove(uri, force=True)
            trained.refresh()
            assert [step["name"] for step in trained.steps()] == ["trainer"]
            trained.up()
            assert client.images.get(uri)
        trained.assert_no_changes()


def test_a_copied_project_previews_no_change(project: Project) -> None:
    project.up()
    for file in (project.root / "trainer").iterdir():
        file.chmod(0o600)
        file.touch()
    moved = project.root.with_name("elsewhere")
    project.root.rename(moved)
    project.root = moved
    project.assert_no_changes()


def test_a_removed_lifecycle_no_longer_applies(project: Project) -> None:
    project.job["lifecycle"] = {"onDelete": "keep"}
    project.declare()
    project.up()
    del project.job["lifecycle"]
    project.declare()
    project.up()
    assert "lifecycle" not in project.resources()["train"]["outputs"]
    project.refresh("--expect-no-changes")
    project.assert_no_changes()
    project.destroy()
    assert project.query_database("SELECT count(*) FROM jobs") == 0


def test_rerun_works_with_a_declared_output_folder(project: Project) -> None:
    project.job["jobSpec"]["baseOutputDirectory"] = {"outputUriPrefix": "gs://mine/out"}
    del project.job["lifecycle"]
    project.declare()
    project.up()
    (before,) = project.list_jobs()
    project.job["lifecycle"] = {"rerun": 1}
    project.declare()
    assert project.steps() == load_golden_steps("first-rerun")
    project.up()
    (after,) = project.list_jobs()
    assert after["name"] != before["name"]


def test_a_secret_reaches_only_the_container(project: Project) -> None:
    canary = "canary-4711"
    project.container["env"] = [{"name": "TOKEN", "value": "${secrets.token}"}, {"name": "PLAIN", "value": "shown"}]
    project.declare()
    project.pulumi("config", "set", "--stack", "local", "--secret", "--path", "vertex-training:secrets.token", canary)
    preview = project.pulumi("preview", "--stack", "local", "--diff")
    assert "shown" in preview and "${secrets.token}" in preview
    output = project.up()
    (job,) = project.list_jobs()
    assert job["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["env"][0]["value"] == canary
    assert canary not in preview + output + project.read_state()
    project.refresh("--expect-no-changes")
    project.assert_no_changes()


def test_failing_jobs_show_exit_code_and_log(project: Project) -> None:
    project.container["args"] = ["--exit=7"]
    project.declare()
    output = project.up(fails=True)
    assert "train failed: The replica workerpool0-0 exited with a non-zero status of 7." in output
    assert "the data is not there" in output

    again = project.up(fails=True)
    assert "exited with a non-zero status of 7" in again
    assert len(project.list_jobs()) == 1

    project.container["args"] = []
    project.declare()
    project.up()
    assert project.outputs()["results"]["train"]["state"] == "JOB_STATE_SUCCEEDED"
    project.assert_no_changes()


def test_destroy_leaves_no_job_container_or_emulator(project: Project) -> None:
    project.container["args"] = ["--seconds=600"]
    project.job["lifecycle"] = {"wait": False}
    project.declare()
    project.up()
    pid = project.endpoint()["pid"]
    project.destroy()
    assert project.resources().keys() <= {"vertex-training-local"}
    assert not is_running(pid)
    assert not (project.data / "endpoint.json").exists()
    assert project.containers() == []
    assert project.query_database("SELECT count(*) FROM jobs") == 0


def test_destroy_leaves_the_emulator_to_jobs_of_others(project: Project) -> None:
    project.up()
    container = {"imageUri": project.outputs()["images"]["trainer"], "args": ["--seconds=600"]}
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "containerSpec": container}
    by_hand = {"displayName": "by hand", "jobSpec": {"workerPoolSpecs": [pool]}}
    project.request("POST", f"{PARENT}/customJobs", by_hand)
    output = project.destroy()
    assert [job["displayName"] for job in project.list_jobs()] == ["by hand"]
    assert "active" in output or "running" in output


def _read_tag_time(project: Project) -> str:
    """Return when the trainer's image was last built or tagged."""
    with closing(docker.from_env()) as client:
        return str(client.images.get(project.outputs()["images"]["trainer"]).attrs["Metadata"]["LastTagTime"])
