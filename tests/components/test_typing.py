"""What a type checker says of programs that use the components: slips are found where they are, the rest passes."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.blocks import taken

ROOT = Path(__file__).parents[2]
# Each line with a slip ends with what mypy must say of it.
SLIPS = """\
from vertex_training import CustomJob, CustomJobArgs, Foundation, HyperparameterTuningJob, TrainingPipeline
from vertex_api.types import StudySpec, WorkerPoolSpec

right: WorkerPoolSpec = {"machineSpec": {"machineType": "n1-standard-4"}, "containerSpec": {"imageUri": "x"}}
study: StudySpec = {"metrics": [{"metricId": "a", "goal": "MINIMIZE"}], "parameters": []}
field: WorkerPoolSpec = {"machineSpecs": {}}  # Extra key "machineSpecs"
number: WorkerPoolSpec = {"replicaCount": "one"}  # "replicaCount" has type "int"
enum: StudySpec = {"metrics": [{"metricId": "a", "goal": "LOWER"}], "parameters": []}  # "goal"


def program(on: Foundation) -> None:
    CustomJob("a", {"displayName": "a", "jobSpec": {"workerPoolSpecs": [right]}}, foundation=on)
    CustomJob("b", {"displayName": "b", "jobSpecs": {}}, foundation=on)  # Missing key "jobSpec"
    CustomJob("c", {"jobSpec": {"workerPoolSpecs": [right]}}, foundation=on)  # Missing key "displayName"
    CustomJob("d", {"displayName": "d", "studySpec": study}, foundation=on)  # "studySpec"
    HyperparameterTuningJob("e", {"displayName": "e", "jobSpec": {}}, foundation=on)  # "studySpec"
    TrainingPipeline("f", {"displayName": "f", "trainingTaskInputs": {"workerPoolSpecs": [right]}}, foundation=on)
    TrainingPipeline("g", {"displayName": "g", "trainingTaskInputs": {"workerPools": []}}, foundation=on)  # TypedDict
    TrainingPipeline("h", {"displayName": "h", "modelToUpload": {"displayName": "m"}}, foundation=on)  # Missing key
    job: CustomJobArgs = {"displayName": "i", "jobSpec": {"workerPoolSpecs": [right]}}
    CustomJob("i", job, foundation=on, lifecycle={"onDelet": "keep"})  # expected "Lifecycle | None"
"""

PROVIDER_SKIPPED = """
[[tool.mypy.overrides]]
module = ["pulumi_gcp", "pulumi_gcp.*"]
follow_imports = "skip"
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[int, str]]:
    """What strict mypy says of both programs, by line."""
    folder = tmp_path_factory.mktemp("programs")
    program, *_ = taken("docs/python.md", "python")
    for name, text in (("slips", SLIPS), ("page", program)):
        (folder / f"{name}.py").write_text(text)
    files = [str(file) for file in folder.iterdir()]
    # Half of the time would go into the provider's 4,000 files, whose types none of the programs' lines is about.
    settings = (ROOT / "pyproject.toml").read_text() + PROVIDER_SKIPPED
    (folder / "settings").mkdir()
    (folder / "settings" / "pyproject.toml").write_text(settings)
    command = [sys.executable, "-m", "mypy", "--config-file", str(folder / "settings" / "pyproject.toml"), *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert "(checked 2 source files)" in done.stdout, done.stdout + done.stderr
    found: dict[str, dict[int, str]] = {"slips": {}, "page": {}}
    for name, line, message in re.findall(r"(\w+)\.py:(\d+): (?:error|note): (.*)", done.stdout):
        lines = found.setdefault(name, {})
        lines[int(line)] = f"{lines.get(int(line), '')} {message}"
    return found


def test_the_type_checker_finds_exactly_the_mistakes(said: dict[str, dict[int, str]]) -> None:
    lines = enumerate(SLIPS.splitlines(), 1)
    expected = {number: line.partition("  # ")[2] for number, line in lines if "  # " in line}
    found = said["slips"]
    assert found.keys() == expected.keys(), found
    assert {text: found[number] for number, text in expected.items() if text not in found[number]} == {}


def test_the_program_of_the_page_is_right(said: dict[str, dict[int, str]]) -> None:
    assert said["page"] == {}
