"""The script example: its declaration says all that makes an image of it, and the script is a trainer."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from vertex_training.images.image import build_context
from vertex_training.settings.settings import Settings

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "script"


def settings(root: Path) -> Settings:
    config = {"vertex-training:target": "local", "vertex-training:include": '["training/script.yaml"]'}
    return Settings.load_from_config("vertex-training", "local", root, config)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The example and its declaration in another folder."""
    shutil.copytree(EXAMPLE, tmp_path / "examples" / "script", ignore=shutil.ignore_patterns("model"))
    (tmp_path / "training").mkdir()
    shutil.copy(ROOT / "training" / "script.yaml", tmp_path / "training")
    return tmp_path


def test_its_image_holds_the_script_alone(copy: Path) -> None:
    context = build_context(copy, settings(copy).images["script"])
    assert list(context.digests) == ["Dockerfile", "package/train.py"]


def test_only_edits_of_the_script_change_the_image(copy: Path) -> None:
    before = build_context(copy, settings(copy).images["script"]).tag
    (copy / "examples/script/README.md").write_text("edited")
    assert build_context(copy, settings(copy).images["script"]).tag == before
    (copy / "examples/script/train.py").write_text("edited")
    assert build_context(copy, settings(copy).images["script"]).tag != before


def test_it_fits_and_saves_the_line(copy: Path) -> None:
    (job,) = settings(copy).jobs
    (pool,) = job.job.fields["jobSpec"]["workerPoolSpecs"]
    command = [sys.executable, str(copy / "examples/script/train.py"), *pool["containerSpec"]["args"]]
    environment = {"AIP_MODEL_DIR": str(copy / "run/model")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == f"y = 2.03 x + 0.98, saved in {copy}/run/model/model.json"
    model = json.loads((copy / "run/model/model.json").read_text())
    assert (round(model["slope"], 1), round(model["intercept"], 1)) == (2.0, 1.0)


def test_a_local_run_changes_neither_image_nor_repository(copy: Path) -> None:
    before = build_context(copy, settings(copy).images["script"]).tag
    subprocess.run([sys.executable, str(copy / "examples/script/train.py"), "--epochs=1"], check=True)
    assert (copy / "examples/script/model/model.json").is_file()
    assert build_context(copy, settings(copy).images["script"]).tag == before
