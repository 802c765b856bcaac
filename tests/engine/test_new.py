"""`pulumi new` from this checkout: a project of its own, which works as it is."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.errors import DeclarationErrors
from components.settings.settings import Settings
from tests import git_server, terminal
from tests.engine.cloud import STANDIN
from tests.engine.environment import own_environment
from tests.engine.golden import golden
from tests.engine.project import CHECKOUT, engine_environment, steps

NAMES = {"project": "acme-dev", "projectNumber": "123456789012", "region": "europe-west4"}
DEV_REPOSITORY = "projects/acme-dev/locations/europe-west4/repositories/training"


@pytest.fixture(scope="module")
def template() -> Iterator[Path]:
    """What `make -s template` prints."""
    printed = subprocess.run(["make", "-s", "template"], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    folder = Path(printed.stdout.strip())
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "state").mkdir()
    return {**engine_environment(tmp_path), "GCP_STANDIN_RECORD": str(tmp_path / "record.jsonl")}


def pulumi(*arguments: str, cwd: Path, environment: dict[str, str]) -> str:
    command = ["pulumi", *arguments, "--non-interactive"]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def project(template: Path, tmp_path: Path, environment: dict[str, str]) -> Path:
    """A project `demo` in a folder that was empty, with the environment of this checkout."""
    folder = tmp_path / "demo"
    pulumi("new", str(template), "--dir", str(folder), "--name=demo", "--yes", "--generate-only",
           cwd=tmp_path, environment=environment)  # fmt: skip
    (folder / ".venv").symlink_to(CHECKOUT / ".venv")
    return folder


def test_the_template_is_the_checkout_without_what_lies_around_in_it(template: Path) -> None:
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(listed, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout.splitlines()
    copied = {str(file.relative_to(template)) for file in template.rglob("*") if file.is_file()}
    assert copied == set(files)
    assert not {".venv", ".git", ".pulumi-state", ".emulator"} & {path.name for path in template.iterdir()}


def test_a_new_project_has_its_own_name_and_previews_at_once(project: Path, environment: dict[str, str]) -> None:
    assert yaml.safe_load((project / "Pulumi.yaml").read_text())["name"] == "demo"
    pulumi("stack", "init", "local", cwd=project, environment=environment)
    shown = pulumi("preview", "--diff", "--stack=local", cwd=project, environment=environment)
    assert "localhost/demo/digits:" in shown
    assert "gs://demo-local/digits/" in shown
    assert "is not pinned" not in shown


def test_make_up_in_a_new_project_trains(project: Path, environment: dict[str, str]) -> None:
    own_environment(project)
    declared = project / "training" / "digits.yaml"
    # All as it comes, but for the time that eight trials take.
    declared.write_text(declared.read_text().replace("maxTrialCount: 8", "maxTrialCount: 2"))
    done = subprocess.run(["make", "up"], cwd=project, env=environment, capture_output=True, text=True, timeout=300)
    try:
        assert done.returncode == 0, done.stdout + done.stderr
        results = json.loads(
            pulumi("stack", "output", "results", "--stack=local", cwd=project, environment=environment)
        )
        assert {name: result["state"] for name, result in results.items()} == dict.fromkeys(
            ("digits", "digits-search"), "JOB_STATE_SUCCEEDED"
        )
        assert results["digits-search"]["bestTrial"]["metrics"]["accuracy"] > 0.5
        model = results["digits"]["modelDir"].removeprefix("gs://")
        assert model.startswith("demo-local/digits/")
        assert any((project / ".emulator" / "gcs" / model).iterdir())
        with (project / "examples" / "digits" / "trainer.py").open("a") as trainer:
            trainer.write("# edited\n")
        shown = pulumi("preview", "--diff", "--stack=local", cwd=project, environment=environment)
        (readme,) = re.findall(r"\$ pulumi preview --diff\n(.*?)```", (CHECKOUT / "README.md").read_text(), re.DOTALL)
        lines = _without_values(shown)
        assert [line for line in _without_values(readme) if line not in lines] == []
    finally:
        removed = subprocess.run(["make", "destroy"], cwd=project, env=environment, capture_output=True, text=True)
        for command in (["stop"], ["reset", "--yes"]):
            subprocess.run(
                [sys.executable, "-m", "vertex_emulator", *command], cwd=project, capture_output=True, check=False
            )
        uris = re.findall(r"localhost/demo/digits:[0-9a-f]{16}", done.stdout)
        subprocess.run(["docker", "image", "rm", "--no-prune", *set(uris)], capture_output=True, check=False)
    assert removed.returncode == 0, removed.stdout + removed.stderr


def test_its_stack_dev_previews_once_the_three_names_are_set(project: Path, environment: dict[str, str]) -> None:
    program = yaml.safe_load((project / "Pulumi.yaml").read_text())
    program["plugins"] = {"providers": [{"name": "gcp", "path": str(STANDIN)}]}
    (project / "Pulumi.yaml").write_text(yaml.safe_dump(program))
    environment["PYTHONPATH"] = str(CHECKOUT)
    pulumi("stack", "init", "dev", cwd=project, environment=environment)
    for key, value in NAMES.items():
        pulumi("config", "set", f"vertex-training:{key}", value, "--stack=dev", cwd=project, environment=environment)
    assert steps(project, environment, "dev") == golden("new-dev")
    shown = pulumi("preview", "--stack=dev", cwd=project, environment=environment)
    assert "examples/digits/Dockerfile:1: FROM python:3.11-slim-bookworm is not pinned" in shown


@pytest.mark.skipif(bool(git_server.why_impossible()), reason=git_server.why_impossible())
def test_pulumi_new_of_a_git_url_asks_for_project_number_and_region_alone_and_writes_them_down(
    template: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    repository = tmp_path / "served" / "team" / "training.git"
    shutil.copytree(template, repository)
    program = yaml.safe_load((repository / "Pulumi.yaml").read_text())
    # Without a runtime, nothing is fetched and installed once the questions are answered.
    del program["runtime"]
    (repository / "Pulumi.yaml").write_text(yaml.safe_dump(program))
    git_server.commit(repository)
    made = tmp_path / "demo"
    with git_server.serving(tmp_path / "served", tmp_path / "certificate.pem") as url:
        command = ["pulumi", "new", f"{url}/team/training", f"--dir={made}", "--name=demo", "--stack=dev"]
        questions, _ = terminal.talk(
            [*command, "--description=Ours"],
            {f"(vertex-training:{key})": value for key, value in NAMES.items()},
            cwd=tmp_path,
            environment=environment | {"SSL_CERT_FILE": str(tmp_path / "certificate.pem")},
        )
    assert [re.findall(r"\(vertex-training:(\w+)\)", question) for question in questions] == [[key] for key in NAMES]
    assert {path.name for path in made.iterdir()} == {path.name for path in template.iterdir()}
    assert config(made, "dev") == config(CHECKOUT, "dev") | {f"vertex-training:{key}": NAMES[key] for key in NAMES}
    settings(made, "dev", config(made, "dev"))


def test_a_stack_local_has_no_use_for_answers_and_what_is_filled_in_without_one_does_it_no_harm(
    template: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    source = tmp_path / "template"
    shutil.copytree(template, source)
    program = yaml.safe_load((source / "Pulumi.yaml").read_text())
    assert {key.partition(":")[2] for key in program["template"]["config"]} == NAMES.keys()
    del program["runtime"]
    (source / "Pulumi.yaml").write_text(yaml.safe_dump(program))
    pulumi("new", str(source), f"--dir={tmp_path / 'demo'}", "--name=demo", "--stack=local", "--yes",
           cwd=tmp_path, environment=environment)  # fmt: skip
    assert settings(tmp_path / "demo", "local", config(tmp_path / "demo", "local")).cloud is None


def test_prod_builds_nothing_and_names_what_is_still_to_be_filled_in() -> None:
    shipped = config(CHECKOUT, "prod")
    with pytest.raises(DeclarationErrors) as raised:
        settings(CHECKOUT, "prod", shipped)
    *asked_for, repository = map(str, raised.value.problems)
    assert [problem.split(": ")[1] for problem in asked_for] == [f"vertex-training:{key}" for key in NAMES]
    assert repository.startswith("stacks/Pulumi.prod.yaml:8: vertex-training:registry.existing: ")
    filled = {
        **shipped,
        **{f"vertex-training:{key}": value for key, value in NAMES.items()},
        "vertex-training:registry": {"existing": DEV_REPOSITORY},
    }
    known = settings(CHECKOUT, "prod", filled)
    assert known.images == {"digits": {"stack": "dev"}}
    dev = settings(
        CHECKOUT, "dev", {**config(CHECKOUT, "dev"), **{f"vertex-training:{k}": v for k, v in NAMES.items()}}
    )
    assert [job.spec for job in known.jobs] == [job.spec for job in dev.jobs]


def _without_values(preview: str) -> list[str]:
    """The lines of a preview without texts, which differ from project to project."""
    return [re.sub(r'"[^"]*"', "", line).strip() for line in preview.splitlines()]


def config(root: Path, stack: str) -> dict[str, Any]:
    """What a stack file says."""
    return dict(yaml.safe_load((root / "stacks" / f"Pulumi.{stack}.yaml").read_text())["config"])


def settings(root: Path, stack: str, values: dict[str, Any]) -> Settings:
    """The settings of a stack, as the engine hands its config over."""
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in values.items()}
    return Settings.parse("demo", stack, root, texts)
