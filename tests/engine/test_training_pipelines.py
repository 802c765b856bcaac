"""Training pipelines through the real engine, Docker and the emulator: from a declaration to an uploaded model."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, NamedTuple

import pytest

from tests.engine.checkout import read_stack_config
from tests.engine.project import DECLARATIONS, PARENT, SEARCH, Project, create_project, is_running
from tests.vertex_emulator.running import until
from vertex_api.pipelines import CUSTOM_TASK, TUNING_TASK

CANARY = "canary-4711"


def training(*arguments: str, **container: Any) -> dict[str, Any]:
    """Return the inputs of a pipeline that runs the trainer."""
    inputs: dict[str, Any] = deepcopy(DECLARATIONS["customJobs"]["train"]["jobSpec"])
    inputs["workerPoolSpecs"][0]["containerSpec"] |= {"args": [*arguments], **container}
    return inputs


def pipeline(inputs: dict[str, Any], **lifecycle: Any) -> dict[str, Any]:
    """Declare a pipeline with a model that is served by an image of another stack."""
    model = {"containerSpec": {"imageUri": "${images.serving}"}}
    return {"trainingTaskInputs": inputs, "modelToUpload": model, "lifecycle": lifecycle}


@pytest.fixture(scope="class")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project with pipelines that train, tune, are edited while they run, and are removed."""
    with create_project(tmp_path_factory.mktemp("pipelines")) as project:
        search = {key: value for key, value in SEARCH.items() if key != "lifecycle"}
        environment = [{"name": "TOKEN", "value": "${secrets.token}"}]
        project.declarations["trainingPipelines"] = {
            "piped": pipeline(training("--epochs=1", env=environment), wait=True),
            "tuned": pipeline(deepcopy(search), wait=True),
            "edited": pipeline(training("--seconds=600")),
            "removed": pipeline(training()),
        }
        project.declarations["customJobs"] = {
            "removed-job": {"jobSpec": training()},
            "running": {"jobSpec": training("--seconds=600")},
        }
        del project.declarations["vars"]
        project.declarations["images"]["serving"] = {"uri": "serve:1"}
        project.declare()
        secret = ("--secret", "--path", "vertex-training:secrets.token", CANARY)
        project.pulumi("config", "set", "--stack", "local", *secret)
        project.stack = read_stack_config(project.root, project.name)
        yield project


class FirstUp(NamedTuple):
    """What the first `up` has shown of its changes, and outputs, pipelines and models after it, by name."""

    shown: str
    outputs: dict[str, Any]
    pipelines: dict[str, dict[str, Any]]
    models: dict[str, dict[str, Any]]


@pytest.fixture(scope="class")
def first(stack: Project) -> FirstUp:
    """The first `up`, in which the pipelines that are waited for have ended."""
    shown = stack.up("--diff")
    return FirstUp(shown, stack.outputs(), pipelines(stack), models(stack))


class TestPipelines:
    """Tests of one stack, in the order of its life."""

    def test_a_pipeline_trains_and_uploads_its_model(self, stack: Project, first: FirstUp) -> None:
        held, model = first.pipelines["piped"], first.models["piped"]
        result = first.outputs["results"]["piped"]
        assert " s on this machine, declared for 1 n1-standard-4" in result.pop("took")
        assert result == {
            "state": "PIPELINE_STATE_SUCCEEDED",
            "backingJob": held["trainingTaskMetadata"]["backingCustomJob"],
            "model": model["name"],
            "modelDir": model["artifactUri"],
        }
        assert model["containerSpec"] == {"imageUri": "serve:1"}
        assert first.outputs["jobs"]["piped"]["state"] == "PIPELINE_STATE_SUCCEEDED"
        printed = stack.run_emulator("logs", first.outputs["jobs"]["piped"]["logs"].rpartition(" ")[2])
        assert "epoch 1 of 1" in printed.stdout

    def test_a_secret_of_a_pipeline_is_not_shown(self, stack: Project, first: FirstUp) -> None:
        sent = first.pipelines["piped"]["trainingTaskInputs"]["workerPoolSpecs"][0]["containerSpec"]
        assert (sent["env"], sent["args"]) == ([{"name": "TOKEN", "value": CANARY}], ["--epochs=1"])
        assert CUSTOM_TASK in first.shown and "${secrets.token}" in first.shown
        assert CANARY not in first.shown + stack.read_state()

    def test_a_tuning_pipeline_uploads_the_best_trials_model(self, stack: Project, first: FirstUp) -> None:
        held, model = first.pipelines["tuned"], first.models["tuned"]
        assert held["trainingTaskDefinition"] == TUNING_TASK
        result = first.outputs["results"]["tuned"]
        assert [trial["id"] for trial in result["trials"]] == ["1", "2", "3", "4"]
        best = max(result["trials"], key=lambda trial: trial["metrics"]["score"])
        assert result["bestTrial"] == best
        assert result["modelDir"] == model["artifactUri"]
        assert model["artifactUri"].endswith(f"/{best['id']}/model/")
        assert (result["model"], result["backingJob"]) == (
            model["name"],
            held["trainingTaskMetadata"]["backingHyperparameterTuningJob"],
        )
        stack.refresh()
        run = stack.resources()["tuned"]["outputs"]["run"]
        assert (run["trials"], run["bestTrial"]) == ({"ended": 4, "of": 4}, best)

    def test_an_edit_replaces_running_pipelines_and_removes_others(self, stack: Project, first: FirstUp) -> None:
        until(lambda: _count_running(stack) == 2 and "removed" in models(stack), "the end of all but two")
        until(lambda: pipelines(stack)["edited"]["state"] == "PIPELINE_STATE_RUNNING", "the start of the edited one")
        declared = stack.declarations["trainingPipelines"]
        declared["edited"] = pipeline(training("--seconds=0"), wait=True)
        del declared["removed"], stack.declarations["customJobs"]["removed-job"]
        stack.declare()
        (running,) = (job["name"] for job in stack.list_jobs() if job["displayName"] == "running")
        printed, steps = stack.update()
        changes = {step["name"]: step["op"] for step in steps}
        assert changes == {
            "wait-for-jobs": "update",
            "edited": "replace",
            "job-names": "update",
            "removed": "delete",
            "removed-job": "delete",
        }

        assert "which a killed run has left" not in printed

        there = pipelines(stack)
        assert {name: there.get(name) == held for name, held in first.pipelines.items()} == {
            "piped": True,
            "tuned": True,
            "edited": False,
            "removed": False,
        }
        assert {job["name"] for job in stack.list_jobs()} == {
            running,
            *(there[name]["trainingTaskMetadata"]["backingCustomJob"] for name in ("piped", "edited")),
        }
        assert models(stack).keys() == first.pipelines.keys()
        until(lambda: len(stack.containers()) == 1, "only the job that runs on has a container")
        stack.assert_no_changes("--refresh")

    def test_destroy_leaves_models_but_no_job_container_or_emulator(self, stack: Project, first: FirstUp) -> None:
        count, pid = len(models(stack)), stack.endpoint()["pid"]
        assert _count_running(stack) == 1
        stack.destroy()
        assert stack.resources().keys() <= {"vertex-training-local"}
        until(lambda: not is_running(pid), "the end of the emulator")
        assert not (stack.data / "endpoint.json").exists()
        assert stack.containers() == []
        assert stack.query_database("SELECT count(*) FROM jobs") == 0
        assert stack.query_database("SELECT count(*) FROM models") == count


def pipelines(project: Project) -> dict[str, dict[str, Any]]:
    """Return the emulator's pipelines by name."""
    return {each["displayName"]: each for each in project.list_jobs("trainingPipelines")}


def models(project: Project) -> dict[str, dict[str, Any]]:
    """Return the emulator's models by the name of their pipeline."""
    return {each["displayName"]: each for each in project.request("GET", f"{PARENT}/models").get("models", [])}


def _count_running(project: Project) -> int:
    return sum(job["state"] != "JOB_STATE_SUCCEEDED" for job in project.list_jobs())
