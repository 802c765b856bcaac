"""Update plans: what was reviewed is what runs, and nothing else is submitted."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from vertex_training.cli import main

from tests.engine.project import CHECKOUT, SEARCH, Project
from tests.vertex_emulator.running import IMAGE


def declare_every_kind(project: Project) -> None:
    """Declare an image, a package, two custom jobs, a search, and a pipeline that takes the search's result."""
    (project.root / "task.py").write_text("print('trained')\n")
    project.declarations["packages"] = {"task": {"script": "task.py"}}
    search = json.loads(json.dumps(SEARCH)) | {"maxTrialCount": 1, "parallelTrialCount": 1}
    project.declarations["hyperparameterTuningJobs"] = {"search": search}
    pool: dict[str, Any] = {"machineSpec": {"machineType": "n1-standard-4"}}
    package = {"executorImageUri": IMAGE, "packageUris": ["${packages.task}"], "pythonModule": "task"}
    pools = [{**pool, "pythonPackageSpec": package}]
    project.declarations["customJobs"]["packaged"] = {"jobSpec": {"workerPoolSpecs": pools}}
    best = {"imageUri": IMAGE, "command": ["true"], "args": ["${jobs.search.bestTrial.parameters.lr}"]}
    inputs = {"workerPoolSpecs": [{**pool, "containerSpec": best}]}
    project.declarations["trainingPipelines"] = {"pipeline": {"trainingTaskInputs": inputs}}
    project.declare()


def save_plan(project: Project, file: Path) -> str:
    """Save a plan with a preview, and return the file's name."""
    project.pulumi("preview", "--stack", project.name, "--save-plan", str(file))
    return str(file)


def check_plan(project: Project, plan: str) -> int:
    """Return the exit code of `vertex-training check-plan` for a plan and the stack's state of now."""
    return main(["check-plan", plan, str(project.export())])


def list_job_names(project: Project) -> set[str]:
    """Return the names of all custom jobs that the emulator has."""
    return {job["name"] for job in project.list_jobs()}


def test_a_plan_runs_what_was_reviewed_and_nothing_else(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project.use_own_image("plans")
    declare_every_kind(project)
    project.up("--plan", save_plan(project, tmp_path / "first.json"))
    assert len(project.list_jobs("trainingPipelines")) == 1
    project.assert_no_changes()

    project.container["args"] = ["--epochs=2"]
    project.declare()
    plan, submitted = save_plan(project, tmp_path / "plan.json"), list_job_names(project)
    assert check_plan(project, plan) == 0

    def assert_refused(*input_names: str) -> None:
        output = project.up("--plan", plan, fails=True)
        (violation, *_) = [line for line in output.splitlines() if "violates plan: properties changed: " in line]
        assert [name for name in input_names if name not in violation] == []
        assert list_job_names(project) == submitted

    code = (project.root / "trainer" / "train.py").read_text()
    project.edit_code()
    assert_refused("files")
    (project.root / "trainer" / "train.py").write_text(code)

    project.stack["vertex-training:guardrails"] = {"maxReplicas": 7}
    project.declare()
    assert_refused("guardrails")
    del project.stack["vertex-training:guardrails"]

    # A job that nothing waits for, and another version of the package: both are inputs of the ledger.
    project.declarations["customJobs"]["packaged"]["labels"] = {"not": "reviewed"}
    project.declare()
    shutil.copytree(CHECKOUT / "vertex_api", tmp_path / "newer" / "vertex_api")
    package = tmp_path / "newer" / "vertex_api" / "__init__.py"
    package.write_text(package.read_text().replace('__version__ = "', '__version__ = "7.'))
    startup = project.environment["PYTHONPATH"]
    project.environment["PYTHONPATH"] = str(tmp_path / "newer")  # alone: what is preloaded has the installed one
    assert_refused("declarations", "packageVersion")
    project.environment["PYTHONPATH"] = startup

    # Somebody else updates the stack. Pulumi would apply the plan all the same.
    project.container["args"] = ["--epochs=3"]
    project.declare()
    project.up()
    assert check_plan(project, plan) == 1
    assert "is older than the state: " in capsys.readouterr().err
