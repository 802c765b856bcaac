"""Training pipelines through the real engine, Docker and the emulator: from a declaration to an uploaded model."""

import json
from typing import Any

from tests.engine.project import PARENT, SEARCH, Project
from tests.vertex_emulator.running import until
from vertex_api.training_pipelines.backing_job import CUSTOM_TASK, TUNING_TASK

CANARY = "canary-4711"


def pipeline(project: Project, inputs: dict[str, Any], name: str = "piped") -> dict[str, Any]:
    """Declare a pipeline alone, with a model that is served by an image of another stack."""
    declared = {
        "trainingTaskInputs": inputs,
        "modelToUpload": {"containerSpec": {"imageUri": "${images.serving}"}},
        "lifecycle": {"wait": True},
    }
    del project.declarations["customJobs"]
    project.declarations["images"]["serving"] = {"uri": "serve:1"}
    project.declarations["trainingPipelines"] = {name: declared}
    project.declare()
    return declared


def training(project: Project) -> dict[str, Any]:
    return dict(project.job["jobSpec"])


def models(project: Project) -> list[dict[str, Any]]:
    return list(project.request("GET", f"{PARENT}/models").get("models", []))


def test_destroy_keeps_the_model_of_a_pipeline(project: Project) -> None:
    inputs = training(project)
    inputs["workerPoolSpecs"][0]["containerSpec"]["env"] = [{"name": "TOKEN", "value": "${secrets.token}"}]
    pipeline(project, inputs)
    project.pulumi("config", "set", "--stack", "local", "--secret", "--path", "vertex-training:secrets.token", CANARY)
    preview = project.pulumi("preview", "--stack", "local", "--diff")
    assert CUSTOM_TASK in preview and "${secrets.token}" in preview and CANARY not in preview

    project.up()

    outputs = project.outputs()
    (held,), (model,) = project.list_jobs("trainingPipelines"), models(project)
    result = outputs["results"]["piped"]
    assert result.pop("modelDir") == model["artifactUri"]
    assert result == {
        "state": "PIPELINE_STATE_SUCCEEDED",
        "backingJob": held["trainingTaskMetadata"]["backingCustomJob"],
        "model": model["name"],
    }
    assert (model["displayName"], model["containerSpec"]) == ("piped", {"imageUri": "serve:1"})
    assert outputs["jobs"]["piped"]["state"] == "PIPELINE_STATE_SUCCEEDED"
    sent = held["trainingTaskInputs"]["workerPoolSpecs"][0]["containerSpec"]
    assert (sent["env"], sent["args"]) == ([{"name": "TOKEN", "value": CANARY}], ["--epochs=1"])
    printed = project.run_emulator("logs", outputs["jobs"]["piped"]["logs"].rpartition(" ")[2])
    assert "epoch 1 of 1" in printed.stdout
    assert CANARY not in project.read_state()
    project.refresh("--expect-no-changes")
    project.assert_no_changes()

    project.destroy()
    assert project.query_database("SELECT count(*) FROM jobs") == 0
    assert project.query_database("SELECT count(*) FROM models") == 1


def test_a_tuning_pipeline_uploads_the_best_trials_model(project: Project) -> None:
    search = json.loads(json.dumps(SEARCH))
    del search["lifecycle"]
    pipeline(project, search)
    project.up()
    outputs = project.outputs()
    (held,), (model,) = project.list_jobs("trainingPipelines"), models(project)
    assert held["trainingTaskDefinition"] == TUNING_TASK
    result = outputs["results"]["piped"]
    assert [trial["id"] for trial in result["trials"]] == ["1", "2", "3", "4"]
    best = max(result["trials"], key=lambda trial: trial["metrics"]["score"])
    assert result["bestTrial"] == best
    assert result["modelDir"] == model["artifactUri"]
    assert model["artifactUri"].endswith(f"/{best['id']}/model/")
    assert (result["model"], result["backingJob"]) == (
        model["name"],
        held["trainingTaskMetadata"]["backingHyperparameterTuningJob"],
    )
    project.refresh()
    run = project.resources()["piped"]["outputs"]["run"]
    assert (run["trials"], run["bestTrial"]) == ({"ended": 4, "of": 4}, best)
    project.assert_no_changes()


def test_an_edit_replaces_running_pipeline_and_job(project: Project) -> None:
    inputs = training(project)
    inputs["workerPoolSpecs"][0]["containerSpec"]["args"] = ["--seconds=600"]
    declared = pipeline(project, inputs)
    declared["lifecycle"] = {}
    project.declare()
    project.up()
    (old,) = until(
        lambda: [each for each in project.list_jobs("trainingPipelines") if each["state"] == "PIPELINE_STATE_RUNNING"],
        "the pipeline runs",
    )
    inputs["workerPoolSpecs"][0]["containerSpec"]["args"] = ["--seconds=0"]
    declared["lifecycle"] = {"wait": True}
    project.declare()
    assert [step["op"] for step in project.steps() if step["name"] == "piped"] == ["replace"]
    project.up()
    (new,), (job,), (_,) = project.list_jobs("trainingPipelines"), project.list_jobs(), models(project)
    assert new["name"] != old["name"]
    assert job["name"] == new["trainingTaskMetadata"]["backingCustomJob"]
    until(lambda: project.containers() == [], "no container is left")
    project.assert_no_changes()


def test_removed_pipelines_and_jobs_are_deleted_without_messages(project: Project) -> None:
    project.declarations["customJobs"]["other"] = {"jobSpec": project.job["jobSpec"]}
    jobs = project.declarations.pop("customJobs")
    project.declarations["customJobs"] = {}
    pipeline(project, jobs["train"]["jobSpec"])
    project.declarations["customJobs"] = {"other": jobs["other"]}
    project.declare()
    project.up()
    until(lambda: all(job["state"] == "JOB_STATE_SUCCEEDED" for job in project.list_jobs()), "the other job has ended")
    assert len(project.list_jobs()) == 2
    for section in ("customJobs", "trainingPipelines"):
        project.declarations[section] = {}
    project.declare()
    assert "which a run that was killed" not in project.up()
    assert project.query_database("SELECT count(*) FROM jobs") == 0
    project.assert_no_changes()
    project.pulumi("refresh", "--stack", "local", "--preview-only", "--expect-no-changes")
