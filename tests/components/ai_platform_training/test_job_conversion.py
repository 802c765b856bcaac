"""Legacy jobs become declarations that are right, read well and lose nothing."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from vertex_training.ai_platform_training.commented_yaml import CommentedFields, render_yaml
from vertex_training.ai_platform_training.validated_job_conversion import convert_job_to_declaration_and_find_problems
from vertex_training.cli import main
from vertex_training.settings.settings import Settings

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
    fields, problems = convert_job_to_declaration_and_find_problems(yaml.safe_load(file.read_text()), file.stem)
    assert problems == []
    assert yaml.safe_load(render_yaml(fields)) == plain(fields)


@pytest.mark.parametrize("file", CORPUS, ids=lambda file: file.stem)
def test_yaml_and_json_give_the_same(file: Path) -> None:
    given = yaml.safe_load(file.read_text())
    assert render_yaml(
        convert_job_to_declaration_and_find_problems(json.loads(json.dumps(given)), "x")[0]
    ) == render_yaml(convert_job_to_declaration_and_find_problems(given, "x")[0])


def test_text_that_looks_like_references_is_escaped(tmp_path: Path) -> None:
    settings = Settings.load_from_config("team", "dev", HERE, INCLUDING)
    (job,) = (job for job in settings.jobs if job.name == "leftovers")
    args = job.required_valid_spec.fields["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"]
    assert args == ["$${HOME}", "$(AIP_MODEL_DIR)", "yes", "a: b # c", "line\nbreak"]


@pytest.mark.parametrize("breaking", ["\n", "\r", "\x85", "\u2028", "\u2029", "\x00"])
def test_no_comment_text_becomes_a_field(breaking: str) -> None:
    fields = CommentedFields({"a": 1})
    fields.add_comments("a", f"before{breaking}b: 2")
    fields.add_comments("z", f"before{breaking}c: 3")
    assert yaml.safe_load(render_yaml(fields)) == {"a": 1}


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
    assert yaml.safe_load(render_yaml(fields)) == plain(fields)


@pytest.mark.parametrize(
    ("job_id", "name"),
    [("census_1", "census_1"), ("Census", "census"), ("x" * 80, "x" * 63), ("___", "job"), ("a b", "a-b")],
)
def test_a_job_id_becomes_name_and_display_name(job_id: str, name: str) -> None:
    fields, problems = convert_job_to_declaration_and_find_problems(
        {"jobId": job_id, "trainingInput": {"masterConfig": {"imageUri": "x"}}}, "file"
    )
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
    fields, problems = convert_job_to_declaration_and_find_problems(
        {"masterType": "n1-highcpu-8", "masterConfig": accelerator}, "j"
    )
    pool = fields["customJobs"]["j"]["jobSpec"]["workerPoolSpecs"][0]
    assert (pool["machineSpec"]["machineType"], problems) == ("n1-standard-8", [])
    assert "# masterType n1-highcpu-8: Vertex AI has none; n1-standard-8 has" in render_yaml(fields)
    assert "n1-highcpu-16" in render_yaml(fields)


@pytest.mark.parametrize(("given", "said"), [([64, 32, 64.0], True), ([32, 64], False)])
def test_discrete_values_increase(given: list[float], said: bool) -> None:
    parameter = {"parameterName": "a", "type": "DISCRETE", "discreteValues": given}
    fields, problems = convert_job_to_declaration_and_find_problems({"hyperparameters": {"params": [parameter]}}, "j")
    (found,) = fields["hyperparameterTuningJobs"]["j"]["studySpec"]["parameters"]
    assert (found["discreteValueSpec"], problems) == ({"values": [32, 64]}, [])
    assert ("# discreteValues: " in render_yaml(fields)) == said
