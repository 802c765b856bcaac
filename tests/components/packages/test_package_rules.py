"""Declarations of Python packages: each problem at its line, and references to packages."""

from pathlib import Path

import pytest

from tests.components.packages.test_source_distribution import FILES, FOLDER
from tests.components.projects import INCLUDING, load, problems, write


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path, FILES)
    return tmp_path


EITHER = "needs either the path of a folder with a pyproject.toml or setup.py, or a script"


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ("{}", f"2: packages.trainer: {EITHER}"),
        ("{path: t, script: train.py}", f"2: packages.trainer: {EITHER}"),
        ("{path: /t}", '2: packages.trainer.path: "/t" must be relative to the project\'s folder'),
        (
            "{path: t/trainer}",
            '2: packages.trainer.path: "t/trainer" is not a folder with a pyproject.toml or setup.py in {root}/; write '
            "one for pip",
        ),
        ("{script: run.sh}", '2: packages.trainer.script: "run.sh" is not a Python file in {root}/'),
        ("{script: t/task.py}", '2: packages.trainer.script: "t/task.py" is not a Python file in {root}/'),
        (
            "{path: t, requirements: [rich]}",
            "2: packages.trainer.requirements: is for a script; declare those of a folder in its pyproject.toml or "
            "setup.py",
        ),
        ("{paths: t}", "2: packages.trainer.paths: unknown field; did you mean path?"),
    ],
)
def test_an_invalid_python_package_is_rejected(project: Path, declared: str, problem: str) -> None:
    write(project, {"run.sh": ""})
    (found,) = problems(project, INCLUDING, jobs=f"packages:\n  trainer: {declared}\n")
    assert found == "jobs.yaml:" + problem.replace("{root}", project.name)


JOB = """\
packages: {trainer: {path: t}}
customJobs:
  train:
    jobSpec:
      workerPoolSpecs:
        - machineSpec: {machineType: n1-standard-4}
          pythonPackageSpec: {executorImageUri: x, pythonModule: trainer.task, packageUris: ["${packages.NAME}"]}
"""


def test_a_job_refers_to_its_package(project: Path) -> None:
    settings = load(project, INCLUDING, jobs=JOB.replace("NAME", "trainer"))
    assert settings.packages == {"trainer": FOLDER}
    (job,) = settings.jobs
    assert job.required_valid_spec.job_spec["workerPoolSpecs"][0]["pythonPackageSpec"]["packageUris"] == [
        "${packages.trainer}"
    ]


def test_an_undeclared_package_is_reported_at_its_reference(project: Path) -> None:
    (problem,) = problems(project, INCLUDING, jobs=JOB.replace("NAME", "trainr"))
    assert problem.endswith("packageUris[0]: ${packages.trainr} is not declared; did you mean trainer?")
