"""The life of a stack through the real engine, Docker and the emulator."""

import shutil
from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple

import docker
import pytest

from tests.engine.checkout import read_stack_config
from tests.engine.golden import load_golden_steps
from tests.engine.preview import preview_stack
from tests.engine.project import PARENT, SEARCH, Project, create_project
from tests.vertex_emulator.running import ENDED, IMAGE, until

CANARY = "canary-4711"
FIRST, SECOND = "open-sesame-1", "open-sesame-2"
READ = """
import base64, json, os, urllib.request
url = f"{os.environ['SECRET_MANAGER_API_ENDPOINT']}/v1/{os.environ['HF_TOKEN']}:access"
request = urllib.request.Request(url, headers={"X-Goog-Api-Key": os.environ["SECRET_MANAGER_API_KEY"]})
value = base64.b64decode(json.load(urllib.request.urlopen(request))["payload"]["data"]).decode()
raise SystemExit(0 if value[::-1] == os.environ["REVERSED"] else f"another value of {len(value)} characters")
"""
QUICK = {"imageUri": IMAGE, "command": ["true"]}
POOL = {"machineSpec": {"machineType": "n1-standard-4"}}


class Run(NamedTuple):
    """What an `up` changed and printed; outputs, jobs by name, and the emulator's process then."""

    steps: list[dict[str, Any]]
    printed: str
    outputs: dict[str, Any]
    jobs: dict[str, dict[str, Any]]
    pid: int

    def name(self, job: str) -> str:
        """Return the resource name of a job."""
        return str(self.jobs[job]["name"])


def bring_up(project: Project) -> Run:
    """Bring a stack up, and let the jobs end that `up` does not wait for.

    What its next edits change shows whether anything else has changed.
    """
    project.declare()
    printed, steps = project.update()
    until(lambda: all(job["state"] in ENDED for job in project.list_jobs()), "the end of all jobs")
    jobs = {job["displayName"]: job for job in project.list_jobs()}
    assert len(jobs) == len(project.list_jobs())
    return Run(steps, printed, project.outputs(), jobs, project.endpoint()["pid"])


@pytest.fixture(scope="class")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project with a trainer, a search, and quick jobs that are edited each in a way of its own."""
    with create_project(tmp_path_factory.mktemp("lifecycle")) as project:
        project.use_own_image("is shared by tests")
        project.declarations["hyperparameterTuningJobs"] = {"search": SEARCH}
        environment = [{"name": "TOKEN", "value": "${secrets.token}"}, {"name": "PLAIN", "value": "shown"}]
        project.declarations["customJobs"] |= {
            "spec": {**quick_job(env=environment), "lifecycle": {"wait": True}},
            "kept": {**quick_job(), "lifecycle": {"wait": True}},
            "again": {**quick_job(), "lifecycle": {"wait": True}},
            "again-elsewhere": quick_job(),
            "reader": {
                **quick_job(command=["python3", "-c", READ], env=reader_env(FIRST)),
                "lifecycle": {"wait": True},
            },
        }
        project.declarations["customJobs"]["again-elsewhere"]["jobSpec"]["baseOutputDirectory"] = {
            "outputUriPrefix": "gs://mine/out"
        }
        project.declare()
        set_secret(project, "secrets.token", CANARY)
        set_secret(project, "emulator.secrets.hf-token", FIRST)
        yield project


def set_secret(project: Project, key: str, value: str) -> None:
    """Set a secret of the stack file as a user does."""
    path = ("--secret", "--path", f"vertex-training:{key}")
    project.pulumi("config", "set", "--stack", "local", *path, value)
    project.stack = read_stack_config(project.root, project.name)


def reader_env(value: str) -> list[dict[str, str]]:
    """Declare the environment of a job that reads a secret of Secret Manager, and checks its value."""
    token = {"name": "HF_TOKEN", "value": "projects/local/secrets/hf-token/versions/latest"}
    return [token, {"name": "REVERSED", "value": value[::-1]}]


def quick_job(**container: Any) -> dict[str, Any]:
    """Declare a job that ends at once."""
    return {"jobSpec": {"workerPoolSpecs": [{**POOL, "containerSpec": {**QUICK, **container}}]}}


@pytest.fixture(scope="class")
def first(stack: Project) -> Run:
    """The first `up`."""
    return bring_up(stack)


@pytest.fixture(scope="class")
def edited(stack: Project, first: Run) -> Run:
    """One `up` after edits of the code, a spec and lifecycles, and the removal of the search."""
    jobs = stack.declarations["customJobs"]
    stack.edit_code()
    jobs["spec"]["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["env"][1]["value"] = "edited"
    jobs["kept"]["lifecycle"]["onDelete"] = "keep"
    jobs["again"]["lifecycle"]["rerun"] = 1
    jobs["again-elsewhere"]["lifecycle"] = {"rerun": 1}
    del stack.declarations["hyperparameterTuningJobs"]
    (pool,) = jobs["reader"]["jobSpec"]["workerPoolSpecs"]
    pool["containerSpec"]["env"] = reader_env(SECOND)
    set_secret(stack, "emulator.secrets.hf-token", SECOND)
    return bring_up(stack)


@pytest.fixture(scope="class")
def repaired(stack: Project, edited: Run) -> Run:
    """A refresh and an `up` after a job was deleted and an image removed outside the stack, and a lifecycle in it."""
    stack.request("DELETE", edited.name("spec"))
    with closing(docker.from_env()) as client:
        client.images.remove(edited.outputs["images"]["trainer"], force=True)
    assert "2 deleted" in stack.refresh()
    del stack.declarations["customJobs"]["kept"]["lifecycle"]
    return bring_up(stack)


class TestOneStack:
    """Tests of one stack, in the order of its life: each fixture goes on from the one before it."""

    def test_the_first_up_trains_and_outputs_results(self, stack: Project, first: Run) -> None:
        assert first.steps == load_golden_steps("first")
        outputs = first.outputs
        uri = outputs["images"]["trainer"]
        assert uri.startswith("localhost/vertex-training/trainer:") and len(uri.rpartition(":")[2]) == 16
        assert {name: outputs["jobs"][name]["state"] for name in ("train", "search")} == dict.fromkeys(
            ("train", "search"), "JOB_STATE_SUCCEEDED"
        )
        assert outputs["jobs"]["train"]["page"].startswith(f"{stack.endpoint()['url']}/jobs/customJobs/")
        printed = stack.run_emulator("logs", outputs["jobs"]["train"]["logs"].rpartition(" ")[2])
        assert "epoch 1 of 1" in printed.stdout
        bucket, _, folder = outputs["results"]["train"]["modelDir"].removeprefix("gs://").partition("/")
        assert (stack.data / "gcs" / bucket / folder / "model.txt").read_text() == "0.5"
        result = outputs["results"]["search"]
        assert [trial["id"] for trial in result["trials"]] == ["1", "2", "3", "4"]
        best = max(result["trials"], key=lambda trial: trial["metrics"]["score"])
        assert result["bestTrial"] == best
        assert f"/{best['id']}/model/" in result["modelDir"]

    def test_a_secret_reaches_only_the_container(self, stack: Project, first: Run) -> None:
        (pool,) = first.jobs["spec"]["jobSpec"]["workerPoolSpecs"]
        assert pool["containerSpec"]["env"][0] == {"name": "TOKEN", "value": CANARY}
        (pool,) = stack.resources()["spec"]["inputs"]["spec"]["jobSpec"]["workerPoolSpecs"]
        assert pool["containerSpec"]["env"] == [
            {"name": "TOKEN", "value": "${secrets.token}"},
            {"name": "PLAIN", "value": "shown"},
        ]
        assert CANARY not in first.printed + str(first.steps) + stack.read_state()

    def test_a_provider_takes_under_200_bytes_of_state(self, stack: Project, first: Run) -> None:
        inputs = {name: item.get("inputs", {}) for name, item in stack.resources().items()}
        providers = {name: given["__provider"] for name, given in inputs.items() if "__provider" in given}
        assert providers.keys() == {
            "emulator",
            "job-names",
            "trainer",
            "wait-for-jobs",
            "search",
            *first.jobs,
        }
        assert all(len(text) < 200 for text in providers.values()), providers

    def test_a_second_up_changes_nothing_and_builds_nothing(self, stack: Project, first: Run) -> None:
        tagged, jobs = _read_tag_time(stack), stack.list_jobs()
        output = stack.up()
        assert "14 unchanged" in output and "Step 1/" not in output
        assert _read_tag_time(stack) == tagged
        assert stack.list_jobs() == jobs

    def test_a_copied_project_previews_no_change(self, stack: Project, first: Run) -> None:
        copied = stack.root.with_name("elsewhere")
        shutil.copytree(stack.root, copied, symlinks=True, ignore=shutil.ignore_patterns(".emulator"))
        for file in (copied / "trainer").iterdir():
            file.chmod(0o600)
            file.touch()
        assert preview_stack(copied, stack.environment, stack.name).steps == []

    def test_edits_change_only_what_they_name(self, edited: Run) -> None:
        assert edited.steps == load_golden_steps("edits")

    def test_a_code_edit_replaces_image_and_job(self, first: Run, edited: Run) -> None:
        assert edited.outputs["images"]["trainer"] != first.outputs["images"]["trainer"]
        assert edited.outputs["jobs"]["train"]["name"] == edited.name("train") != first.name("train")
        assert edited.outputs["results"]["train"]["modelDir"] != first.outputs["results"]["train"]["modelDir"]

    def test_a_spec_edit_replaces_the_job(self, first: Run, edited: Run) -> None:
        assert edited.name("spec") != first.name("spec")
        (pool,) = edited.jobs["spec"]["jobSpec"]["workerPoolSpecs"]
        assert pool["containerSpec"]["env"][1]["value"] == "edited"

    def test_trainers_read_secrets_of_the_stack(self, stack: Project, first: Run, edited: Run) -> None:
        for run in (first, edited):
            assert run.outputs["results"]["reader"]["state"] == "JOB_STATE_SUCCEEDED"
        assert edited.pid == first.pid
        shown = [str(run.steps) + run.printed for run in (first, edited)]
        assert not [value for value in (FIRST, SECOND) if value in "".join(shown) + stack.read_state()]

    def test_a_lifecycle_edit_updates_in_place(self, first: Run, edited: Run) -> None:
        assert edited.jobs["kept"] == first.jobs["kept"]

    @pytest.mark.parametrize("job", ["again", "again-elsewhere"], ids=["in its own folder", "in a declared folder"])
    def test_rerun_runs_an_unchanged_job_again(self, first: Run, edited: Run, job: str) -> None:
        assert edited.name(job) != first.name(job)
        assert edited.jobs[job]["jobSpec"]["workerPoolSpecs"] == first.jobs[job]["jobSpec"]["workerPoolSpecs"]

    def test_what_is_gone_outside_the_stack_is_restored(self, stack: Project, edited: Run, repaired: Run) -> None:
        assert repaired.steps == load_golden_steps("drift")
        assert repaired.outputs["jobs"]["spec"]["name"] == repaired.name("spec") != edited.name("spec")
        assert {name for name, job in edited.jobs.items() if repaired.jobs[name] != job} == {"spec"}
        with closing(docker.from_env()) as client:
            assert client.images.get(edited.outputs["images"]["trainer"])

    def test_a_removed_lifecycle_no_longer_applies(self, stack: Project, repaired: Run) -> None:
        assert "lifecycle" not in stack.resources()["kept"]["outputs"]
        stack.assert_no_changes("--refresh")

    def test_destroy_leaves_only_jobs_of_others(self, stack: Project, repaired: Run) -> None:
        container = {"imageUri": repaired.outputs["images"]["trainer"], "args": ["--seconds=600"]}
        by_hand = {
            "displayName": "by hand",
            "jobSpec": {"workerPoolSpecs": [{**POOL, "containerSpec": container}]},
        }
        stack.request("POST", f"{PARENT}/customJobs", by_hand)
        output = stack.destroy()
        assert [job["displayName"] for job in stack.list_jobs()] == ["by hand"]
        assert "active" in output or "running" in output


def _read_tag_time(project: Project) -> str:
    """Return when the trainer's image was last built or tagged."""
    with closing(docker.from_env()) as client:
        return str(client.images.get(project.outputs()["images"]["trainer"]).attrs["Metadata"]["LastTagTime"])
