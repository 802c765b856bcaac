"""The table example: a search in a pipeline, which registers the model of its best trial."""

import json
import subprocess
from typing import Any

import pytest
from vertex_training.rehearsal.runner import Ended

from tests.blocks import taken
from tests.examples.running import Example
from tests.vertex_emulator.running import RunningEmulator

pytestmark = pytest.mark.large


@pytest.fixture(scope="module")
def example(emulator: RunningEmulator) -> Example:
    return Example("table", emulator)


@pytest.fixture(scope="module")
def searched(example: Example) -> Ended:
    ended = example.run("table-search --set vars.tableTrials=3")
    assert ended.succeeded, ended.failure
    return ended


def of_trial(searched: Ended, trial: str, file: str = "metrics.json") -> Any:
    return json.loads((searched.outputs / trial / "model" / file).read_text())


def test_the_best_trials_model_is_registered(example: Example, searched: Ended) -> None:
    trials = {each["id"]: each["metrics"]["auc"] for each in searched.results["trials"]}
    assert len(trials) == 3 and max(trials.values()) > 0.75
    assert trials == {trial: of_trial(searched, trial)["auc"] for trial in trials}
    best = max(trials, key=lambda trial: trials[trial])
    assert searched.results["bestTrial"]["id"] == best
    model = example.emulator.get(searched.results["model"])
    assert model["displayName"] == "table"
    kept = example.emulator.data / "gcs" / model["artifactUri"].removeprefix("gs://") / "model.bst"
    assert kept.read_bytes() == (searched.outputs / best / "model" / "model.bst").read_bytes()
    assert model["artifactUri"].endswith(f"/{best}/model/")


def test_the_trees_find_what_makes_the_table(searched: Ended) -> None:
    gains = of_trial(searched, searched.results["bestTrial"]["id"])["gain"]
    assert min(gains["months"], gains["contract"]) > max(gains["age"], gains["region"])


def test_the_page_shows_what_the_image_prints(searched: Ended) -> None:
    (pool,) = searched.submitted.job_spec["workerPoolSpecs"]
    command = ["docker", "run", "--rm", pool["containerSpec"]["imageUri"], "--rounds=20"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert taken("examples/table/README.md", "output", "tree 10/20") == [done.stdout]
    bad = subprocess.run([*command, "--eta=2.0"], capture_output=True, text=True, check=False)
    assert (bad.returncode, [bad.stderr]) == (2, taken("examples/table/README.md", "output", "trainer.py: error"))
