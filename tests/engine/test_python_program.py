"""A program of one's own with jobs in Python: the one on the page on Python, through the real engine."""

import re
import subprocess
import sys

import pytest

from tests.blocks import taken
from tests.engine.cloud import CloudProject, create_cloud_project
from tests.engine.project import PARENT, Project
from tests.vertex_emulator.running import IMAGE, RunningEmulator

PROGRAMS = taken("docs/python.md", "python")
FOR_PULUMI_USERS = taken("docs/pulumi.md", "python")


def test_the_documented_program_trains_and_uploads_a_model(project: Project) -> None:
    (project.root / "__main__.py").write_text(PROGRAMS[0])
    del project.stack["vertex-training:include"]
    project.declare()
    project.up()
    (model,) = project.request("GET", f"{PARENT}/models")["models"]
    assert project.outputs()["model"] == model["name"]
    state = project.resources()
    kinds = {
        name: each["type"].rpartition(":")[2] for name, each in state.items() if "vertex-training:" in each["type"]
    }
    assert (
        kinds.items()
        >= {
            "train-0.1": "CustomJob",
            "train-0.2": "CustomJob",
            "search": "HyperparameterTuningJob",
            "release": "TrainingPipeline",
        }.items()
    )
    search = state["wait-for-search"]["outputs"]["results"]["search"]
    assert len(search["trials"]) == 4
    (held,) = project.list_jobs("trainingPipelines")
    (pool,) = held["trainingTaskInputs"]["workerPoolSpecs"]
    best = search["bestTrial"]["parameters"]["lr"]
    assert pool["containerSpec"]["args"] == ["--epochs=2", f"--lr={best}"]
    project.assert_no_changes()


def test_a_team_adds_resources_and_jobs(project: Project) -> None:
    # Pulumi's random provider is not at hand here; a component of the program's own stands for it.
    random = """
class RandomInteger(pulumi.ComponentResource):
    def __init__(self, name, **bounds):
        super().__init__("team:index:RandomInteger", name)
        self.result = pulumi.Output.from_input(bounds["max"])
"""
    program = PROGRAMS[1].replace("import pulumi_random\n", random).replace("pulumi_random.", "")
    (project.root / "__main__.py").write_text(program)
    project.up()
    state = project.resources()
    assert {"train", "loop-0.1", "loop-0.2", "seed"} <= state.keys()
    assert "TrainingStack$" in state["train"]["urn"] and "TrainingStack$" not in state["loop-0.1"]["urn"]
    assert project.outputs()["seed"] == 999
    project.assert_no_changes()


def test_one_stack_trains_in_two_regions(project: Project) -> None:
    (project.root / "__main__.py").write_text(PROGRAMS[2])
    project.up()
    places = {
        job["name"].split("/")[3]: job["labels"]["pulumi_name"]
        for region in ("us-central1", "us-west1")
        for job in project.request("GET", PARENT.replace("us-central1", region) + "/customJobs")["customJobs"]
    }
    assert places == {"us-central1": "train", "us-west1": "west-train"}
    assert project.outputs()["west"]["train"]["state"] == "JOB_STATE_SUCCEEDED"
    project.assert_no_changes()
    (project.root / "__main__.py").write_text("import vertex_training\n\nvertex_training.run()\n")
    project.up()
    assert "customJobs" not in project.request("GET", PARENT.replace("us-central1", "us-west1") + "/customJobs")
    assert len(project.list_jobs("customJobs")) == 1
    project.assert_no_changes()


def test_a_transformed_stack_is_automated(project: Project) -> None:
    _, transforming, _, automating = FOR_PULUMI_USERS
    (project.root / "__main__.py").write_text(transforming)
    command = [sys.executable, "-c", automating]
    done = subprocess.run(
        command, cwd=project.root, env=project.environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "JOB_STATE_SUCCEEDED" in done.stdout.splitlines()[-1]
    assert project.resources()["train"]["inputs"]["lifecycle"]["onDelete"] == "keep"
    project.assert_no_changes()


def test_a_job_before_the_stack_is_one_error(project: Project) -> None:
    (project.root / "__main__.py").write_text(JOBS + BEFORE_THE_STACK)
    said = project.pulumi("preview", "--stack", "local", fails=True)
    error, engines_own = re.findall(r"error: (.*)", said.partition("Diagnostics:")[2])
    assert error.startswith('TrainingStack "training": must be made before the first resource ')
    assert engines_own.startswith("an unhandled error occurred: program exited")
    assert "Traceback" not in said


JOBS = """\
import pulumi

from vertex_training import CustomJob, HyperparameterTuningJob


def job(machine, *args, **fields):
    container = {"imageUri": "IMAGE", "command": ["true"], "args": [*args]}
    pool = {"machineSpec": {"machineType": machine}, "containerSpec": container}
    spec = {"displayName": "a", "jobSpec": {"workerPoolSpecs": [pool], "scheduling": {"timeout": "3600s"}}}
    return {**spec, **fields}


first = CustomJob("first", job("n1-standard-4"))
""".replace("IMAGE", IMAGE)
FAULTY = """\
token = pulumi.Output.secret("t")
CustomJob("large", job("n1-standard-96"))
CustomJob("after", job("n1-standard-4", first.id, "${vars.a}"))
CustomJob("secret", job("n1-highmem-8", token))
CustomJob("typo", job("n1-standard-4", labels={"pulumi_name": "a"}), lifecycle={"wait": True})
HyperparameterTuningJob("search", {"displayName": "a", "studySpec": {}})
"""
LATE = """\
machine = first.id.apply(lambda _: "n1-highmem-8")
CustomJob("late", job(machine))
"""
BEFORE_THE_STACK = """
import vertex_training

vertex_training.run()
"""
GUARDRAILS = {"machineTypes": ["n1-standard-*"], "maxHourlyCost": 1.0}


@pytest.fixture(scope="class")
def guarded(tmp_path_factory: pytest.TempPathFactory, vertex: RunningEmulator) -> CloudProject:
    """A stack `dev` whose program brings its own jobs, with guardrails."""
    cloud = create_cloud_project(tmp_path_factory.mktemp("program"), vertex)
    cloud.stack["vertex-training:guardrails"] = GUARDRAILS
    del cloud.stack["vertex-training:include"]
    cloud.declare()
    return cloud


class TestGuardedProgram:
    """Tests of one stack, in order: nothing is submitted in the first one."""

    def test_one_preview_shows_all_problems_of_a_program(self, guarded: CloudProject) -> None:
        (guarded.root / "__main__.py").write_text(JOBS + FAULTY)
        preview = guarded.pulumi("preview", "--stack", "dev", fails=True)
        large = 'CustomJob "large": guardrails.maxHourlyCost: 5.'
        lines = [
            large,
            'CustomJob "after": jobSpec.workerPoolSpecs[0].containerSpec.args[1]: ${vars.a} is not',
            'CustomJob "secret": jobSpec.workerPoolSpecs[0].machineSpec.machineType: guardrails.machineTypes: "n1-high',
            'CustomJob "typo": lifecycle.wait: ',
            'CustomJob "typo": labels.pulumi_name: ',
            'HyperparameterTuningJob "search": ',
        ]
        assert [line for line in lines if line not in preview] == []
        assert preview.count(large) == 1
        refused = guarded.up(fails=True)
        assert large in refused and 'CustomJob "typo"' in refused
        assert list_job_names(guarded) == []

    def test_an_output_beyond_a_guardrail_is_refused_before_submission(self, guarded: CloudProject) -> None:
        (guarded.root / "__main__.py").write_text(JOBS + LATE)
        output = guarded.pulumi("up", "--yes", "--stack", "dev", fails=True)
        preview, _, output = output.partition("\nUpdating (")
        assert (
            'not known in this preview: the specs of CustomJob "late". They are validated during the update' in preview
        )
        # The job whose spec is known: 4 x 0.0400223 + 15 x 0.0053636 + 100 x 0.21505 / 730 = 0.2700022.
        assert "Cost in europe-west4: 0.27 USD an hour, 0.27 USD at most" in preview
        assert (
            'CustomJob "late": jobSpec.workerPoolSpecs[0].machineSpec.machineType: guardrails.machineTypes: ' in output
        )
        assert list_job_names(guarded) == ["first"]
        guarded.stack["vertex-training:guardrails"] = {"machineTypes": ["n1-*"], "maxHourlyCost": 1.0}
        guarded.declare()
        guarded.up()
        assert list_job_names(guarded) == ["first", "late"]
        guarded.assert_no_changes()


def list_job_names(cloud: CloudProject) -> list[str]:
    """The names of the resources of all jobs in the cloud project."""
    jobs = cloud.vertex.call("GET", "v1/projects/acme-dev/locations/europe-west4/customJobs").get("customJobs", [])
    return sorted(job["labels"]["pulumi_name"] for job in jobs)
