"""What type checkers say of programs that use the components: slips are found where they are, the rest passes."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.blocks import PAGES, blocks

ROOT = Path(__file__).parents[2]
# Each line with a slip ends with what mypy must say of it.
SLIPS = """\
import pulumi
import vertex_api.types
from vertex_training import CustomJob, CustomJobArgs, Foundation, HyperparameterTuningJob, TrainingPipeline
from vertex_training.args import StudySpec, WorkerPoolSpec

late = pulumi.Output.from_input("a")
plain: vertex_api.types.WorkerPoolSpec = {"containerSpec": {"imageUri": "x"}}
outputs: WorkerPoolSpec = {"containerSpec": {"imageUri": late, "args": [late], "env": [{"name": "A", "value": late}]}}
message: WorkerPoolSpec = plain
right: WorkerPoolSpec = {"machineSpec": {"machineType": "n1-standard-4"}, "containerSpec": {"imageUri": "x"}}
study: StudySpec = {"metrics": [{"metricId": "a", "goal": "MINIMIZE"}], "parameters": []}
field: WorkerPoolSpec = {"machineSpecs": {}}  # Extra key "machineSpecs"
number: WorkerPoolSpec = {"replicaCount": "one"}  # "replicaCount"
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

# What the few lines of a program stand on that shows no imports, and a provider that is not installed here.
_GIVEN = """\
from vertex_training import CustomJob, Foundation, JobTemplate, Schedule
from vertex_training.args import CustomJobSpec
def given() -> tuple[CustomJobSpec, Foundation]:
    raise NotImplementedError
job_spec, foundation = given()
"""
_RANDOM = """\
from pulumi import Output, Resource
class RandomInteger(Resource):
    result: Output[int]
    def __init__(self, name: str, min: int, max: int) -> None: ...
"""


def programs() -> dict[str, str]:
    """Return all programs by name: of the pages, the template and this checkout."""
    found = {"checkout": (ROOT / "__main__.py").read_text(), "template": (ROOT / "template/__main__.py").read_text()}
    for page in PAGES:
        for block in blocks(page):
            if block.language == "python" and re.search(r"\b(pulumi|vertex_training|Schedule)\b", block.text):
                name = f"{re.sub(r'[^a-z]', '_', page)}_{block.line}"
                found[name] = block.text if "import " in block.text else f"{_GIVEN}{block.text}"
    return found


PROVIDER_SKIPPED = """
[[tool.mypy.overrides]]
module = ["pulumi_gcp", "pulumi_gcp.*"]
follow_imports = "skip"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Has all programs, and SLIPS."""
    folder = tmp_path_factory.mktemp("programs")
    for name, text in {**programs(), "slips": SLIPS}.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "pulumi_random.pyi").write_text(_RANDOM)
    return folder


@pytest.fixture(scope="module")
def said(folder: Path) -> dict[str, dict[int, str]]:
    """What strict mypy says of each program, by line."""
    files = [str(file) for file in folder.glob("*.py*")]
    # Half of the time would go into the provider's 4,000 files, whose types none of the programs' lines is about.
    settings = (ROOT / "pyproject.toml").read_text() + PROVIDER_SKIPPED
    (folder / "settings").mkdir()
    (folder / "settings" / "pyproject.toml").write_text(settings)
    command = [sys.executable, "-m", "mypy", "--config-file", str(folder / "settings" / "pyproject.toml"), *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert f"(checked {len(files)} source files)" in done.stdout, done.stdout + done.stderr
    return by_line(re.findall(r"(\w+)\.py:(\d+): (?:error|note): (.*)", done.stdout))


def by_line(found: list[tuple[str, str, str]]) -> dict[str, dict[int, str]]:
    """Return messages by program and line."""
    messages: dict[str, dict[int, str]] = {}
    for name, line, message in found:
        lines = messages.setdefault(name, {})
        lines[int(line)] = f"{lines.get(int(line), '')} {message}"
    return messages


def test_the_type_checker_finds_exactly_the_mistakes(said: dict[str, dict[int, str]]) -> None:
    lines = enumerate(SLIPS.splitlines(), 1)
    expected = {number: line.partition("  # ")[2] for number, line in lines if "  # " in line}
    found = said["slips"]
    assert found.keys() == expected.keys(), found
    assert {text: found[number] for number, text in expected.items() if text not in found[number]} == {}


def test_mypy_accepts_every_program(said: dict[str, dict[int, str]]) -> None:
    assert len(programs()) > 9
    assert {name: lines for name, lines in said.items() if name != "slips"} == {}


def test_pyright_accepts_every_program(folder: Path) -> None:
    settings = {"typeCheckingMode": "standard", "extraPaths": [str(ROOT)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [str(Path(sys.executable).with_name("basedpyright")), "--pythonpath", sys.executable, "--outputjson", "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)
    problems = [each for each in report["generalDiagnostics"] if each["severity"] == "error"]
    found = [(each["file"], each["range"]["start"]["line"] + 1, each["message"]) for each in problems]
    assert report["summary"]["filesAnalyzed"] > len(programs())
    slips = {line for file, line, _ in found if file.endswith("slips.py")}
    assert slips == {number for number, line in enumerate(SLIPS.splitlines(), 1) if "  # " in line}
    assert [each for each in found if not each[0].endswith("slips.py")] == []
