"""The JSON Schemas for editors: as generated, taking all that is right, and flagging slips of the pen."""

import json
import re
import sys
from functools import cache
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft7Validator

from tests.blocks import PAGES, blocks, taken
from tests.cases import case
from tests.components.settings.test_declarations import JOB
from tests.components.settings.test_entries import DECLARED, SEARCH
from tools import schemas

ROOT = Path(__file__).parents[2]
DECLARATIONS = schemas.FOLDER / "declarations.schema.json"
STACK = schemas.FOLDER / "stack.schema.json"
MODELINE = re.compile(r"^# yaml-language-server: \$schema=(\S+)$", re.MULTILINE)


@cache
def validator(file: Path) -> Draft7Validator:
    return Draft7Validator(json.loads(file.read_text()))


def flagged(file: Path, text: str) -> list[str]:
    """The paths and messages of what an editor underlines."""
    errors = validator(file).iter_errors(yaml.safe_load(text))
    return [f"{'.'.join(map(str, error.absolute_path))}: {error.message}" for error in errors]


def documented() -> list[tuple[str, Path, str]]:
    """The YAML of the documentation that is a stack file, or declarations: its place, schema and text."""
    found = []
    for block in [each for page in PAGES for each in blocks(page) if each.language == "yaml"]:
        keys = yaml.safe_load(block.text).keys()
        if "config" in keys:
            found.append((f"{block.page}:{block.line}", STACK, block.text))
        elif keys & {"images", *schemas.KINDS}:
            found.append((f"{block.page}:{block.line}", DECLARATIONS, block.text))
    return found


def files() -> list[tuple[str, Path, str]]:
    """The declarations and stack files of the repository."""
    converted = (ROOT / "tests" / "components" / "legacy" / "golden").glob("*.yaml")
    files = (*(ROOT / "training").glob("*.yaml"), *(ROOT / "examples").glob("*/training.yaml"))
    declared = [DECLARATIONS, *sorted(files), *sorted(converted)]
    stacks = [STACK, *sorted((ROOT / "stacks").glob("*.yaml"))]
    return [(file.stem, each[0], file.read_text()) for each in (declared, stacks) for file in each[1:]]


def check(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["schemas", "--check"])
    return schemas.main()


def test_the_files_are_what_the_generator_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(monkeypatch) == 0


def test_a_stray_row_of_a_table_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "configuration.md").read_text()
    row = "| `deleteAfterDays` |"
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "configuration.md").write_text(
        page.replace(row, f"| `stray` | int | 1 | none | none |\n{row}")
    )
    monkeypatch.setattr(schemas, "ROOT", tmp_path)
    with pytest.raises(LookupError, match=r"no table has exactly the keys of Bucket$"):
        schemas.build_schemas()


def test_an_outdated_file_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / STACK.name).write_text(STACK.read_text().replace("bootDiskType", "bootDisk"))
    monkeypatch.setattr(schemas, "FOLDER", tmp_path)
    assert check(monkeypatch) == 1
    again = "is out of date: run python -m tools.schemas"
    assert capsys.readouterr().err.splitlines() == [f"{tmp_path / file.name} {again}" for file in (DECLARATIONS, STACK)]


@pytest.mark.parametrize("file", [DECLARATIONS, STACK], ids=lambda file: file.name)
def test_a_schema_is_valid_and_small(file: Path) -> None:
    Draft7Validator.check_schema(json.loads(file.read_text()))
    assert file.stat().st_size < 400_000


def test_there_are_documents_to_look_at() -> None:
    assert len(documented()) > 25
    assert len(files()) > 25


def test_all_documents_of_the_project_are_valid() -> None:
    for place, schema, text in (*documented(), *files()):
        with case(place):
            assert flagged(schema, text) == []


@pytest.mark.parametrize("text", [JOB, DECLARED, SEARCH, JOB.replace("replicaCount: 1", "replica_count: '1'")])
def test_declarations_that_the_program_takes_are_right(text: str) -> None:
    assert flagged(DECLARATIONS, text) == []


@pytest.mark.parametrize(
    ("right", "wrong", "place"),
    [
        ("customJobs:", "customJob:", ""),
        ("jobSpec:", "jobSpecs:", "customJobs.digits"),
        ("machineType:", "machineTyp:", "customJobs.digits.jobSpec.workerPoolSpecs.0.machineSpec"),
        ("replicaCount: 1", "replicaCount: one", "customJobs.digits.jobSpec.workerPoolSpecs.0.replicaCount"),
        ("timeout: 3600s", "timeout: 1h", "customJobs.digits.jobSpec.scheduling.timeout"),
        ("timeout: 3600s", "strategy: SPOTTY", "customJobs.digits.jobSpec.scheduling.strategy"),
        ("wait: true", "wait: maybe", "customJobs.digits.lifecycle.wait"),
        ("wait: true", "onDelete: drop", "customJobs.digits.lifecycle.onDelete"),
        ("lifecycle: {wait: true}", "state: JOB_STATE_RUNNING", "customJobs.digits"),
        ('uri: "trainer:1"', 'ury: "trainer:1"', "images.digits"),
    ],
)
def test_a_slip_is_flagged_where_it_is(right: str, wrong: str, place: str) -> None:
    assert JOB.count(right) == 1
    assert place in [line.partition(": ")[0] for line in flagged(DECLARATIONS, JOB.replace(right, wrong))]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("replicaCount: 1", "replicaCount: ${vars.replicas}"),
        ("timeout: 3600s", 'timeout: "${vars.timeout}"'),
        ("timeout: 3600s", 'strategy: "${vars.strategy}"'),
        ("wait: true", 'wait: "${vars.wait}"'),
        ('["--epochs=${vars.epochs}"]', "${vars.args}"),
        ("{machineType: n1-standard-4}", "${vars.machine}"),
    ],
)
def test_a_reference_can_replace_any_value(right: str, wrong: str) -> None:
    assert JOB.count(right) == 1
    assert flagged(DECLARATIONS, JOB.replace(right, wrong)) == []


@pytest.mark.parametrize(
    ("config", "is_flagged"),
    [
        ("vertex-training:target: local", False),
        ("vertex-training:target: gpc", True),
        ("vertex-training:regon: us-central1\n  vertex-training:target: gcp", True),
        ("gcp:project: mine\n  vertex-training:target: gcp", False),
        ("vertex-training:region: us-central1", True),
        ("vertex-training:target: gcp\n  vertex-training:secrets: {hfToken: {secure: AAAB}}", False),
        ("vertex-training:target: gcp\n  vertex-training:secrets: {hfToken: [AAAB]}", True),
    ],
)
def test_only_the_own_namespace_is_checked(config: str, is_flagged: bool) -> None:
    assert bool(flagged(STACK, f"encryptionsalt: v1:x\nconfig:\n  {config}\n")) == is_flagged


def test_almost_every_field_says_what_it_is() -> None:
    for definition, about in json.loads(DECLARATIONS.read_text())["$defs"].items():
        properties = about["properties"]
        silent = [name for name in properties if "_" not in name and "description" not in properties[name]]
        assert len(silent) <= 1, (definition, silent)


def test_every_top_level_key_has_a_description() -> None:
    stack = json.loads(STACK.read_text())["properties"]["config"]["properties"]
    keys = json.loads(DECLARATIONS.read_text())["properties"] | stack
    assert [name for name, schema in keys.items() if not schema.get("description")] == []


def test_files_name_the_schema_that_checks_them() -> None:
    declared = [*(ROOT / "training").glob("*.yaml"), *(ROOT / "examples").glob("*/training.yaml")]
    for files, schema in ((declared, DECLARATIONS), ((ROOT / "stacks").glob("*.yaml"), STACK)):
        for file in files:
            (named,) = MODELINE.findall(file.read_text())
            assert (file.parent / named).resolve() == schema


PIPELINE = """\
trainingPipelines:
  release:
    trainingTaskInputs:
      workerPoolSpecs:
        - machineSpec: {machineType: n1-standard-4}
          containerSpec: {imageUri: trainer}
      scheduling: {strategy: SPOT}
    modelToUpload:
      containerSpec: {imageUri: "${images.serving}", predictRoute: /predict}
"""
TUNING = """\
trainingPipelines:
  tune:
    training_task_inputs:
      studySpec:
        metrics: [{metricId: score}]
        parameters: []
      max_trial_count: 4
      parallelTrialCount: "${vars.at_once}"
      trialJobSpec: {workerPoolSpecs: []}
"""


@pytest.mark.parametrize("job", ["jobSpec: {serviceAccount: '1'}", "job_spec: {scheduling: {strategy: SPOT}}"])
def test_pools_are_required_without_a_spec_file(job: str) -> None:
    declared = f"customJobs:\n  digits:\n    spec: {{file: config.yaml}}\n    {job}\n"
    assert flagged(DECLARATIONS, declared) == []
    alone = flagged(DECLARATIONS, declared.replace("    spec: {file: config.yaml}\n", ""))
    assert [line.partition(": ")[0] for line in alone] == [f"customJobs.digits.{job.partition(':')[0]}"]
    inputs = flagged(DECLARATIONS, "trainingPipelines: {release: {trainingTaskInputs: {enableWebAccess: true}}}\n")
    assert [line.partition(": ")[0] for line in inputs] == ["trainingPipelines.release.trainingTaskInputs"]


@pytest.mark.parametrize("text", [PIPELINE, TUNING])
def test_a_pipeline_takes_the_inputs_of_either_task(text: str) -> None:
    assert flagged(DECLARATIONS, text) == []


@pytest.mark.parametrize(
    ("text", "right", "wrong"),
    [
        (PIPELINE, "workerPoolSpecs:", "workerPools:"),
        (PIPELINE, "strategy: SPOT", "strategy: SPOTTY"),
        (PIPELINE, "modelToUpload:", "modelsToUpload:"),
        (PIPELINE, "predictRoute", "predictRout"),
        (TUNING, "max_trial_count: 4", "max_trials: 4"),
        (TUNING, "metricId", "metric"),
    ],
)
def test_a_slip_in_a_pipeline_is_flagged_too(text: str, right: str, wrong: str) -> None:
    assert text.count(right) == 1
    assert len({line.partition(": ")[0] for line in flagged(DECLARATIONS, text.replace(right, wrong))}) == 1


def test_the_page_on_editors_maps_the_schemas() -> None:
    (settings,) = taken("docs/editors.md", "json")
    mapped = json.loads(settings)["yaml.schemas"]
    assert {ROOT / schema for schema in mapped} == {DECLARATIONS, STACK}
    assert all([*ROOT.glob(pattern)] for pattern in mapped.values())
