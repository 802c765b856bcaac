"""The checkout's own stacks: `make up` in a clean clone, and what `dev` and `prod` preview."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from vertex_training.errors import DeclarationErrors

from tests.blocks import taken
from tests.engine.checkout import NAMES, clone, parse_settings, read_stack_config, strip_values
from tests.engine.golden import load_golden_steps
from tests.engine.preview import run_with_steps
from tests.engine.project import CHECKOUT, engine_environment
from tests.standins import transit
from tests.standins.gcp import server
from tools.template import tracked_files
from vertex_emulator.cli import emulator
from vertex_emulator.pruning import clear

DEV_REPOSITORY = "projects/acme-dev/locations/europe-west4/repositories/training"


class Clone:
    """A clean clone in `root` and the environment that its commands run in."""

    def __init__(self, folder: Path) -> None:
        self.root = clone(folder / "clone")
        (folder / "state").mkdir()
        self.environment = {**engine_environment(folder), "GCP_STANDIN_RECORD": str(folder / "record.jsonl")}

    def run(self, *command: str) -> str:
        """Run a command and return its standard output; a test fails when the command does."""
        done = subprocess.run(
            command, cwd=self.root, env=self.environment, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def changes(self) -> str:
        """Return what git sees as changed."""
        return self.run("git", "status", "--short")


@pytest.fixture
def checkout(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def test_make_up_trains_and_leaves_git_clean(checkout: Clone) -> None:
    declared = checkout.root / "training" / "digits.yaml"
    text = declared.read_text()
    # The declarations of the checkout, but eight trials take long, and the slowest learners guess after ten epochs.
    for old, new in (("maxTrialCount: 8", "maxTrialCount: 2"), ("minValue: 0.0001", "minValue: 0.01")):
        assert old in text
        text = text.replace(old, new)
    declared.write_text(text)
    checkout.run("git", "-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "-qam", "quick trials")
    # make uses the empty passphrase, whatever the environment has.
    checkout.environment["PULUMI_CONFIG_PASSPHRASE"] = "another one"
    printed = ""
    try:
        printed = checkout.run("make", "up")
        assert checkout.changes() == ""
        checkout.environment["PULUMI_CONFIG_PASSPHRASE"] = ""
        results = read_outputs(checkout)["results"]
        assert {name: result["state"] for name, result in results.items()} == dict.fromkeys(
            ("digits", "digits-search"), "JOB_STATE_SUCCEEDED"
        )
        assert results["digits-search"]["bestTrial"]["metrics"]["accuracy"] > 0.5
        (documented,) = taken("docs/pulumi.md", "console", "$ pulumi stack output results\n")
        shown = json.loads(documented.partition("\n")[2].replace("[…], …", "[]").replace("…", "0"))
        for name, result in shown.items():
            assert result.keys() <= results[name].keys()
            assert "metrics" not in result or result["metrics"].keys() == results[name]["metrics"].keys()
            for key, value in result.get("bestTrial", {}).items():
                assert not isinstance(value, dict) or value.keys() == results[name]["bestTrial"][key].keys()
        model = results["digits"]["modelDir"].removeprefix("gs://")
        assert model.startswith("vertex-training-local/digits/")
        assert any((checkout.root / ".emulator" / "gcs" / model).iterdir())
        with (checkout.root / "examples" / "digits" / "trainer.py").open("a") as trainer:
            trainer.write("# edited\n")
        shown = strip_values(checkout.run("pulumi", "preview", "--diff", "--stack=local", "--non-interactive"))
        (documented,) = taken("docs/pulumi.md", "console", "$ pulumi preview --diff\n")
        assert [line for line in strip_values(documented.partition("\n")[2]) if line not in shown] == []
        assert checkout.changes() == " M examples/digits/trainer.py\n"
        checkout.run("git", "checkout", "--quiet", ".")
    finally:
        destroyed = subprocess.run(["make", "destroy"], cwd=checkout.root, env=checkout.environment, check=False)
        if (data := checkout.root / ".emulator").exists():
            emulator.stop(data)
            clear(data)
        uris = re.findall(r"localhost/vertex-training/digits:[0-9a-f]{16}", printed)
        subprocess.run(["docker", "image", "rm", "--no-prune", *set(uris)], capture_output=True, check=False)
    assert destroyed.returncode == 0
    assert checkout.changes() == ""

    # The stack takes secrets, and keeps the salt that the checkout has.
    secret = "vertex-training:secrets.token"
    checkout.run("pulumi", "config", "set", "--stack=local", "--secret", "--path", secret, "abc")
    assert checkout.run("pulumi", "config", "get", "--stack=local", "--path", secret).strip() == "abc"
    removed = [line for line in checkout.run("git", "diff", "--unified=0").splitlines() if re.match("-[^-]", line)]
    assert removed == []


def read_outputs(checkout: Clone) -> dict[str, Any]:
    """Return the outputs of the stack `local`, from the backend's file."""
    (file,) = checkout.root.parent.glob("state/.pulumi/stacks/*/local.json")
    resources = json.loads(file.read_text())["checkpoint"]["latest"]["resources"]
    (stack,) = (each for each in resources if each["type"] == "pulumi:pulumi:Stack")
    return dict(stack["outputs"])


def test_make_previews_as_it_brings_up() -> None:
    def recipe(target: str) -> str:
        done = subprocess.run(["make", "-n", target], cwd=CHECKOUT, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()[-1]

    assert recipe("preview") == recipe("up").replace("pulumi up --yes", "pulumi preview")


def test_stack_dev_previews_with_three_names_set(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / ".venv").symlink_to(CHECKOUT / ".venv")
    for file in map(Path, tracked_files()):
        if file.parts[0] in ("Pulumi.yaml", "__main__.py", "stacks", "training", "examples"):
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(CHECKOUT / file, root / file)
    (tmp_path / "state").mkdir()
    environment = {**engine_environment(tmp_path), "GCP_STANDIN_RECORD": str(tmp_path / "record.jsonl")}
    _gcp, port = server.start_server(environment)
    environment["PULUMI_DEBUG_PROVIDERS"] = f"gcp:{port}"
    init = ["pulumi", "stack", "init", "--secrets-provider", transit.PROVIDER, "dev"]
    subprocess.run(init, cwd=root, env=environment, check=True)
    names = [f"--config=vertex-training:{key}={value}" for key, value in NAMES.items()]
    shown = run_with_steps(root, environment, "preview", "--diff", "--stack", "dev", *names)
    assert shown.steps == load_golden_steps("new-dev")


def test_prod_names_the_values_to_fill_in() -> None:
    shipped = read_stack_config(CHECKOUT, "prod")
    with pytest.raises(DeclarationErrors) as raised:
        parse_settings(CHECKOUT, "prod", shipped)
    *asked_for, repository = map(str, raised.value.problems)
    assert [problem.split(": ")[1] for problem in asked_for] == [f"vertex-training:{key}" for key in NAMES]
    assert repository.startswith("stacks/Pulumi.prod.yaml:8: vertex-training:registry.existing: ")
    names = {f"vertex-training:{key}": value for key, value in NAMES.items()}
    filled = shipped | names | {"vertex-training:registry": {"existing": DEV_REPOSITORY}}
    known = parse_settings(CHECKOUT, "prod", filled)
    assert known.images == {"digits": {"stack": "dev"}}
    dev = parse_settings(CHECKOUT, "dev", read_stack_config(CHECKOUT, "dev") | names)
    assert [job.job for job in known.jobs] == [job.job for job in dev.jobs]
