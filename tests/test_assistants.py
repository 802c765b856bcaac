"""What coding assistants read is true: the skill's declarations, commands and links, and the index of all pages."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from vertex_training.settings.settings import Settings

from tools import llms

ROOT = Path(__file__).parents[1]
SKILL = (ROOT / "skills" / "vertex-training" / "SKILL.md").read_text()
BLOCKS = re.findall(r"^```yaml\n(.*?)^```", SKILL, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
@pytest.mark.parametrize("target", ["local", "gcp"])
def test_a_declaration_of_the_skill_has_no_problem(block: str, target: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "jobs.yaml").write_text(block)
    config = {"target": target, "include": json.dumps(["jobs.yaml"])}
    if target == "gcp":
        config |= {"project": "acme-dev", "projectNumber": "123456789012", "region": "europe-west4"}
    values = {f"vertex-training:{key}": value for key, value in config.items()}
    settings = Settings.load_from_config("team", "dev", tmp_path, values)
    kinds = ("customJobs", "hyperparameterTuningJobs", "trainingPipelines")
    declared = {name for kind in kinds for name in yaml.safe_load(block).get(kind, {})}
    assert {job.name for job in settings.plan.trainings} == declared


def test_what_it_says_in_passing_is_accepted(tmp_path: Path) -> None:
    said = [yaml.safe_load(text) for text in re.findall(r"`((?:lifecycle|scheduling): \{[^`]*\})`", SKILL)]
    assert len(said) == 2
    block = yaml.safe_load(BLOCKS[0])
    job = block["customJobs"]["digits"]
    for each in said:
        job["lifecycle"] |= each.get("lifecycle", {})
        job["jobSpec"]["scheduling"] |= each.get("scheduling", {})
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "jobs.json").write_text(json.dumps(block, default=str))
    values = {"vertex-training:target": "local", "vertex-training:include": '["jobs.json"]'}
    Settings.load_from_config("team", "dev", tmp_path, values)


def test_each_command_it_names_exists() -> None:
    for program in ("vertex-training", "vertex-emulator"):
        named = set(re.findall(rf"`{program} ([a-z-]+)", SKILL))
        shown = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
        assert named and named <= set(re.findall(r"^    ([a-z-]+)", shown, re.MULTILINE))


def test_its_links_lead_somewhere() -> None:
    folder = ROOT / "skills" / "vertex-training"
    links = re.findall(r"\]\(([^)]+)\)", SKILL)
    assert links and [link for link in links if not (folder / link).exists()] == []


def test_the_index_for_assistants_is_that_of_the_docs() -> None:
    assert llms.FILE.read_text() == llms.text(), "run python -m tools.llms"
    paths = re.findall(r"\]\(([^)]+)\)", llms.text())
    assert [path for path in paths if not (ROOT / path).exists()] == []
