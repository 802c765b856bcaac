"""The page for Pulumi users shows what holds. Its other programs run in tests/engine/test_python_program.py."""

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml
from vertex_training import TrainingStack

from tests.blocks import taken
from tests.components.targets.gcp.graph import forget_loops, graph

ROOT = Path(__file__).parents[1]
TREE = [
    (line.split()[-2], line.split()[-1])
    for line in taken("docs/pulumi.md", "output", "pulumi:pulumi:Stack")[0].splitlines()
]
"""The token and the name of each resource that it shows."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The checkout's declarations and stacks."""
    for name in ("training", "stacks", "examples"):
        shutil.copytree(ROOT / name, tmp_path / "project" / name)
    return tmp_path / "project"


def test_the_tree_it_shows_is_registered(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stack = yaml.safe_load((project / "stacks" / "Pulumi.local.yaml").read_text())["config"]
    config = {key: value if isinstance(value, str) else json.dumps(value) for key, value in stack.items()}
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps(config))
    monkeypatch.chdir(project)
    made = graph(lambda: TrainingStack("training"))
    forget_loops()
    registered = {(request.type, request.name) for request in made.requests.values()}
    assert {each for each in registered if each[0] != "pulumi:pulumi:Stack"} == {*TREE[1:]}
    assert len(TREE) == 9


IN_FORKS = """
import os, sys
import pytest, vertex_training

for folder in sys.argv[1:]:
    if not (child := os.fork()):
        os.chdir(folder)
        sys.path.insert(0, folder)
        sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir=.", "test_stack.py"]))
    os.waitpid(child, 0)
    if folder != sys.argv[-1]:
        print("=== next", flush=True)
"""
"""A process of its own for the test in each folder, from one that has imported all."""


def test_its_unit_test_passes_and_can_fail(project: Path, tmp_path: Path) -> None:
    (shown,) = taken(
        "docs/pulumi.md", "python", "from typing import Any\n\nimport pulumi\n\nimport vertex_training\n\n\nclass Mocks"
    )
    (project / "test_stack.py").write_text(shown)
    faulty = tmp_path / "faulty"
    shutil.copytree(project, faulty)
    declared = faulty / "training" / "digits.yaml"
    declared.write_text(declared.read_text().replace("      scheduling: {timeout: 3600s}\n", "", 1))
    command = [sys.executable, "-c", IN_FORKS, project, faulty]
    passed, failed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("=== next")
    assert "1 passed" in passed, passed
    assert "1 failed" in failed, failed


@pytest.mark.parametrize("is_output", [False, True])
def test_its_transform_edits_every_spec(is_output: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    (shown,) = taken(
        "docs/pulumi.md", "python", "from typing import Any\n\nimport pulumi\n\nimport vertex_training\n\n\ndef limit"
    )
    transforms: list[Callable[[pulumi.ResourceTransformArgs], Any]] = []
    monkeypatch.setattr("pulumi.runtime.register_resource_transform", transforms.append)
    monkeypatch.setattr("vertex_training.run", lambda: None)
    exec(shown, {})
    declared = {"displayName": "a", "jobSpec": {"scheduling": {"strategy": "SPOT"}}}

    async def edited() -> Any:
        spec: Any = pulumi.Output.from_input(declared) if is_output else declared
        props, opts = {"spec": spec, "run": None}, pulumi.ResourceOptions()
        args = pulumi.ResourceTransformArgs(True, "pulumi-python:dynamic:CustomJob", "a", props, opts)
        return await transforms[0](args).props["spec"].future()

    assert asyncio.run(edited())["jobSpec"] == {"scheduling": {"timeout": "3600s", "strategy": "SPOT"}}
