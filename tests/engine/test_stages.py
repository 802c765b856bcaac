"""Jobs that come after one another, through the real engine, Docker and the emulator."""

import copy
from datetime import datetime, timedelta
from typing import Any

from tests.engine.golden import load_golden_steps
from tests.engine.project import PARENT, SEARCH, Project

BEST = "${jobs.tune.bestTrial.parameters.lr}"


def pool(*args: str) -> dict[str, Any]:
    container: dict[str, Any] = {"imageUri": "${images.trainer}", "args": list(args)}
    return {"machineSpec": {"machineType": "n1-standard-4"}, "containerSpec": container}


def custom_job(*args: str, **lifecycle: Any) -> dict[str, Any]:
    """Return a custom job with these arguments."""
    return {"jobSpec": {"workerPoolSpecs": [pool(*args)]}, **({"lifecycle": lifecycle} if lifecycle else {})}


def declare(project: Project) -> None:
    """Declare a search, a training with its best parameters, the registration of its model, and two separate jobs."""
    study = {
        **SEARCH["studySpec"],
        "algorithm": "GRID_SEARCH",
        "parameters": [{"parameterId": "lr", "discreteValueSpec": {"values": [0.25, 0.75]}}],
    }
    search = {**copy.deepcopy(SEARCH), "studySpec": study, "maxTrialCount": 2}
    del search["lifecycle"]
    project.declarations["hyperparameterTuningJobs"] = {"tune": search}
    beside = custom_job()
    container = beside["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]
    container["env"] = [{"name": "DATA", "value": "${jobs.other.modelDir}"}]
    project.declarations["customJobs"] = {"train": custom_job(f"--lr={BEST}"), "other": custom_job(), "beside": beside}
    project.declarations["trainingPipelines"] = {
        "register": {
            "trainingTaskInputs": {"workerPoolSpecs": [pool()]},
            "modelToUpload": {
                "artifactUri": "${jobs.train.modelDir}",
                "description": f"lr {BEST}",
                "containerSpec": {"imageUri": "serve:1"},
            },
            "lifecycle": {"wait": True},
        }
    }
    project.declare()


def test_a_search_training_and_registration_are_one_stack(project: Project) -> None:
    declare(project)
    preview, steps = project.preview()
    assert f"--lr={BEST}" in preview
    assert 'artifactUri  : "gs://vertex-training-local/train/' in preview
    assert "${jobs.train" not in preview and "${jobs.other" not in preview
    assert steps == load_golden_steps("stages-first")

    project.up()

    results = project.outputs()["results"]
    assert results.keys() == {"tune", "train", "other", "register"}
    assert results["tune"]["bestTrial"]["parameters"] == {"lr": 0.25}
    bucket, _, folder = results["train"]["modelDir"].removeprefix("gs://").partition("/")
    assert (project.data / "gcs" / bucket / folder / "model.txt").read_text() == "0.25"
    (model,) = project.request("GET", f"{PARENT}/models")["models"]
    assert (model["artifactUri"], model["description"]) == (results["train"]["modelDir"], "lr 0.25")
    assert results["register"]["model"] == model["name"]
    state = project.resources()["train"]
    assert state["outputs"]["results"] == {"tune.bestTrial.parameters.lr": "0.25"}
    assert project.resources()["tune"]["id"] == state["inputs"]["jobs"]["tune"]

    project.declarations["trainingPipelines"]["register"]["modelToUpload"]["description"] = "good"
    project.declare()
    edited, steps = project.preview()
    assert steps == load_golden_steps("stages-downstream-edit")
    assert "[unknown]" not in edited[: edited.index("Completion: (update)")]

    # The edit of a search shows what comes of it; nothing that only shares its stage.
    project.declarations["hyperparameterTuningJobs"]["tune"]["lifecycle"] = {"rerun": "again"}
    project.declare()
    folders = {name: each["modelDir"] for name, each in results.items()}
    assert project.update().steps == load_golden_steps("stages-upstream-edit")
    after = project.outputs()["results"]
    changed = {name for name, each in after.items() if each["modelDir"] != folders[name]}
    assert changed == {"tune", "train", "register"}
    project.assert_no_changes("--refresh")


def test_downstream_jobs_wait_until_a_failure_is_fixed(project: Project) -> None:
    jobs = {"first": custom_job("--exit=7"), "second": custom_job(after=["first"])}
    jobs["third"] = custom_job(after=["second"])
    project.declarations["customJobs"] = jobs
    project.declare()
    output = project.up(fails=True)
    assert "first failed: The replica workerpool0-0 exited with a non-zero status of 7." in output
    assert [job["displayName"] for job in project.list_jobs()] == ["first"]

    jobs["first"] = custom_job()
    project.declare()
    project.up()

    held = {job["displayName"]: job for job in project.list_jobs()}
    assert held.keys() == jobs.keys()
    for upstream, downstream in (("first", "second"), ("second", "third")):
        end, creation = held[upstream]["endTime"], held[downstream]["createTime"]
        # Jobs end at whole seconds, of which the emulator gives the next.
        assert datetime.fromisoformat(end) < datetime.fromisoformat(creation) + timedelta(seconds=1)
    assert project.outputs()["results"].keys() == {"first", "second"}

    # Order alone: another run of the first is the only change.
    jobs["first"]["lifecycle"] = {"rerun": 1}
    project.declare()
    assert [(step["op"], step["name"]) for step in project.steps()] == [
        ("update", "wait-for-upstream-1"),
        ("replace", "first"),
    ]
