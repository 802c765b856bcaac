"""Conversion of legacy jobs: a corpus and its golden files, traced fields, and what Vertex AI would refuse."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from vertex_training.cli import main
from vertex_training.legacy.convert import convert, origin
from vertex_training.legacy.document import CommentedFields, to_yaml
from vertex_training.settings.settings import Settings

from vertex_api.messages import KeyPath, show_path
from vertex_api.names import KINDS
from vertex_api.validation.check import validate_job

HERE = Path(__file__).parent
CORPUS = sorted((HERE / "corpus").iterdir())
INCLUDING = {"vertex-training:target": "local", "vertex-training:include": '["golden"]'}


def golden(file: Path) -> Path:
    return HERE / "golden" / f"{file.stem}.yaml"


def names(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(names, value.values()))
    return set[str]().union(*map(names, value)) if isinstance(value, list) else set()


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(child) for key, child in value.items()}
    return [plain(child) for child in value] if isinstance(value, list) else value


def test_each_corpus_job_has_its_declaration() -> None:
    assert len(CORPUS) >= 25
    assert [golden(file) for file in CORPUS] == sorted((HERE / "golden").iterdir())


@pytest.mark.parametrize("file", CORPUS, ids=lambda file: file.stem)
def test_a_converted_job_equals_its_golden_file(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert-legacy", str(file)]) == 0
    assert capsys.readouterr() == (golden(file).read_text(), "")


@pytest.mark.parametrize("file", CORPUS, ids=lambda file: file.stem)
def test_converted_jobs_are_valid_vertex_jobs(file: Path) -> None:
    ((collection, jobs),) = yaml.safe_load(golden(file).read_text()).items()
    ((name, body),) = jobs.items()
    assert validate_job(KINDS[collection], {"displayName": name, **body})[1] == []


def test_all_of_them_preview_clean_as_one_stack() -> None:
    settings = Settings.load_from_config("team", "dev", HERE, INCLUDING)
    assert len(settings.jobs) == len(CORPUS)


@pytest.mark.parametrize("file", CORPUS, ids=lambda file: file.stem)
def test_rendered_yaml_parses_to_the_converted_fields(file: Path) -> None:
    fields, problems = convert(yaml.safe_load(file.read_text()), file.stem)
    assert problems == []
    assert yaml.safe_load(to_yaml(fields)) == plain(fields)


@pytest.mark.parametrize("file", CORPUS, ids=lambda file: file.stem)
def test_yaml_and_json_give_the_same(file: Path) -> None:
    given = yaml.safe_load(file.read_text())
    assert to_yaml(convert(json.loads(json.dumps(given)), "x")[0]) == to_yaml(convert(given, "x")[0])


def test_text_that_looks_like_references_is_escaped(tmp_path: Path) -> None:
    settings = Settings.load_from_config("team", "dev", HERE, INCLUDING)
    (job,) = (job for job in settings.jobs if job.name == "leftovers")
    args = job.job.fields["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"]
    assert args == ["$${HOME}", "$(AIP_MODEL_DIR)", "yes", "a: b # c", "line\nbreak"]


@pytest.mark.parametrize("breaking", ["\n", "\r", "\x85", "\u2028", "\u2029", "\x00"])
def test_no_comment_text_becomes_a_field(breaking: str) -> None:
    fields = CommentedFields({"a": 1})
    fields.comment("a", f"before{breaking}b: 2")
    fields.comment("z", f"before{breaking}c: 3")
    assert yaml.safe_load(to_yaml(fields)) == {"a": 1}


@pytest.mark.parametrize(
    "value",
    [
        "",
        "yes",
        "1",
        "1.0",
        "null",
        "a: b",
        "a #b",
        "- a",
        "[",
        "{",
        "é ☃",
        "a\nb",
        "\t",
        " a ",
        "1:30",
        "=",
        "*x",
        "'\"",
    ],
)
def test_any_text_reads_back_as_it_was(value: str) -> None:
    fields = CommentedFields({"scalar": value, "list": [value, "x" * 120], "map": {"a": [{"b": value, "c": [1]}]}})
    assert yaml.safe_load(to_yaml(fields)) == plain(fields)


@pytest.mark.parametrize(
    ("job_id", "name"),
    [("census_1", "census_1"), ("Census", "census"), ("x" * 80, "x" * 63), ("___", "job"), ("a b", "a-b")],
)
def test_a_job_id_becomes_name_and_display_name(job_id: str, name: str) -> None:
    fields, problems = convert({"jobId": job_id, "trainingInput": {"masterConfig": {"imageUri": "x"}}}, "file")
    assert problems == []
    body = fields["customJobs"][name]
    assert body.get("displayName", name) == job_id


def test_fields_have_the_api_names_and_order() -> None:
    ((_, body),) = yaml.safe_load((HERE / "golden" / "everything-around.yaml").read_text())["customJobs"].items()
    assert list(body) == ["labels", "encryptionSpec", "jobSpec"]
    assert next(iter(body["jobSpec"])) == "workerPoolSpecs"
    assert all("_" not in name for name in names(body))


def test_missing_machine_types_are_replaced() -> None:
    accelerator = {"acceleratorConfig": {"type": "NVIDIA_TESLA_T4", "count": 1}}
    fields, problems = convert({"masterType": "n1-highcpu-8", "masterConfig": accelerator}, "j")
    pool = fields["customJobs"]["j"]["jobSpec"]["workerPoolSpecs"][0]
    assert (pool["machineSpec"]["machineType"], problems) == ("n1-standard-8", [])
    assert "# masterType n1-highcpu-8: Vertex AI has none; n1-standard-8 has" in to_yaml(fields)
    assert "n1-highcpu-16" in to_yaml(fields)


@pytest.mark.parametrize(("given", "said"), [([64, 32, 64.0], True), ([32, 64], False)])
def test_discrete_values_increase(given: list[float], said: bool) -> None:
    parameter = {"parameterName": "a", "type": "DISCRETE", "discreteValues": given}
    fields, problems = convert({"hyperparameters": {"params": [parameter]}}, "j")
    (found,) = fields["hyperparameterTuningJobs"]["j"]["studySpec"]["parameters"]
    assert (found["discreteValueSpec"], problems) == ({"values": [32, 64]}, [])
    assert ("# discreteValues: " in to_yaml(fields)) == said


POOL = ("jobSpec", "workerPoolSpecs")
TYPES = {"masterType": "n1-standard-4", "workerType": "n1-standard-4", "workerCount": 1}
ACCELERATOR = {"acceleratorConfig": {"type": "NVIDIA_TESLA_T4", "count": 3}}


def legacy_path(path: KeyPath, training_input: dict[str, Any], training_input_path: KeyPath) -> str:
    return show_path(origin(path, training_input, training_input_path) or ())


@pytest.mark.parametrize(
    ("path", "training_input", "field"),
    [
        ((*POOL, 0, "machineSpec", "machineType"), TYPES, "masterType"),
        ((*POOL, 1, "machineSpec", "machineType"), TYPES, "workerType"),
        ((*POOL, 1, "machineSpec", "machineType"), {"scaleTier": "STANDARD_1"}, "scaleTier"),
        ((*POOL, 2, "replicaCount"), {"scaleTier": "STANDARD_1"}, "scaleTier"),
        ((*POOL, 1, "replicaCount"), TYPES, "workerCount"),
        ((*POOL, 0, "machineSpec", "acceleratorType"), TYPES, "masterType"),
        (
            (*POOL, 0, "machineSpec", "acceleratorType"),
            TYPES | {"masterConfig": ACCELERATOR},
            "masterConfig.acceleratorConfig.type",
        ),
        (
            (*POOL, 1, "machineSpec", "acceleratorCount"),
            TYPES | {"workerConfig": ACCELERATOR},
            "workerConfig.acceleratorConfig.count",
        ),
        ((*POOL, 1, "containerSpec", "imageUri"), {"masterConfig": {"imageUri": "x"}}, "masterConfig.imageUri"),
        ((*POOL, 1, "containerSpec", "imageUri"), {"workerConfig": {"imageUri": "x"}}, "workerConfig.imageUri"),
        ((*POOL, 0, "containerSpec", "args"), {"args": ["a"]}, "args"),
        ((*POOL, 0, "containerSpec", "args"), {"masterConfig": {"containerArgs": []}}, "masterConfig.containerArgs"),
        ((*POOL, 1, "pythonPackageSpec", "packageUris", 2), {}, "packageUris[2]"),
        ((*POOL, 0, "diskSpec", "bootDiskType"), {}, "masterConfig.diskConfig.bootDiskType"),
        (("jobSpec", "scheduling", "timeout"), {}, "scheduling.maxRunningTime"),
        (("studySpec", "parameters", 1, "discreteValueSpec", "values"), {}, "hyperparameters.params[1].discreteValues"),
        (("studySpec", "parameters", 1, "scaleType"), {}, "hyperparameters.params[1].scaleType"),
        (("studySpec", "parameters", 1, "doubleValueSpec"), {}, "hyperparameters.params[1]"),
        (("maxTrialCount",), {}, "hyperparameters.maxTrials"),
        (("maxFailedTrialCount",), {}, "hyperparameters.maxFailedTrials"),
        (("trialJobSpec", "network"), {}, "network"),
    ],
)
def test_a_field_is_traced_to_its_origin(path: KeyPath, training_input: dict[str, Any], field: str) -> None:
    assert legacy_path(path, training_input, ()) == field
    assert legacy_path(path, training_input, ("trainingInput",)) == f"trainingInput.{field}"


@pytest.mark.parametrize(("path", "field"), [(("labels", "a"), "labels.a"), (("displayName",), "jobId")])
def test_job_fields_are_outside_the_training_input(path: KeyPath, field: str) -> None:
    assert legacy_path(path, {}, ("trainingInput",)) == field


def test_what_came_from_no_field_has_no_place() -> None:
    assert origin(("jobSpec", "tensorboard"), {}, ("trainingInput",)) is None
