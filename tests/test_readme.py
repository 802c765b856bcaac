"""What the README shows is what happens."""

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml
from vertex_training.errors import DeclarationErrors
from vertex_training.images.image import build_context
from vertex_training.settings.settings import Settings

from tests.blocks import taken

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
STACK = yaml.safe_load((ROOT / "stacks" / "Pulumi.local.yaml").read_text())["config"]
CONFIG = {key: value if isinstance(value, str) else json.dumps(value) for key, value in STACK.items()}


def test_the_declaration_it_shows_is_the_example_s() -> None:
    (shown,) = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    files = [ROOT / "training" / name for name in ("images.yaml", "digits.yaml")]
    declared = {section: entries for file in files for section, entries in yaml.safe_load(file.read_text()).items()}
    for section, entries in yaml.safe_load(shown).items():
        assert entries == {name: declared[section][name] for name in entries}


def test_readme_shows_the_actual_violations(tmp_path: Path) -> None:
    for folder in ("examples", "stacks", "training"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    file = tmp_path / "training" / "digits.yaml"
    slipped = file.read_text().replace("${vars.epochs}", "${vars.epoch}", 1)
    file.write_text(slipped.replace("3600s", "3600", 1))
    with pytest.raises(DeclarationErrors) as raised:
        Settings.load_from_config("vertex-training", "local", tmp_path, CONFIG)
    assert taken("README.md", "console", "error: ") == [f"error: {raised.value}\n"]


def test_a_script_joins_the_checkout_in_four_steps(tmp_path: Path) -> None:
    steps = re.findall(r"^\d\. (.*)$", (ROOT / "docs/tutorial.md").read_text(), re.MULTILINE)
    script, declarations, include, _ = [re.findall("`([^`]+)`", step)[-1] for step in steps]
    for folder in ("examples", "stacks", "training"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / script).parent.mkdir()
    (tmp_path / script).write_text(taken("docs/tutorial.md", "python", "points")[0])
    (tmp_path / declarations).write_text(taken("docs/tutorial.md", "yaml", "images")[0])
    assert include == "stacks/Pulumi.local.yaml"
    config = {**CONFIG, "vertex-training:include": json.dumps([*STACK["vertex-training:include"], declarations])}
    settings = Settings.load_from_config("vertex-training", "local", tmp_path, config)
    assert [each.name for each in settings.jobs if each.name not in ("digits", "digits-search")] == ["line"]
    assert build_context(tmp_path, settings.images["line"]).digests.keys() == {"Dockerfile", f"package/{script[8:]}"}


def test_the_review_it_shows_begins_as_printed() -> None:
    printed = (ROOT / "tests" / "components" / "review" / "golden" / "readme.md").read_text()
    shown = re.findall(r"^> ?(.*)$", README, re.MULTILINE)
    assert len(shown) > 10 and shown == printed.splitlines()[: len(shown)]


def test_every_make_target_it_names_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:`|\$ |\()make (?:-s )?([a-z]+)", README))
    assert {"up", "test", "env"} <= named <= targets


def test_every_file_it_links_to_exists() -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)(?:#[^)]*)?\)|(?:src|srcset)=\"([^\"]+)\"", README)
    assert len(links) > 20
    assert [link for link in map("".join, links) if not (ROOT / link).exists()] == []
