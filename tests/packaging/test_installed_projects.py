"""Projects that have installed the wheel without the extra run for gcp, and have the command.

With the extra, on the emulator: tests/engine/test_new.py.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.cloud import GCP
from tests.engine.project import DECLARATIONS, TRAINER
from tests.packaging.building import wheel
from tests.packaging.installed import InstalledProject
from tests.packaging.test_wheel import requirement_closure
from tools.template import CHECKOUT, TEMPLATE


@pytest.fixture
def project(tmp_path: Path) -> InstalledProject:
    """A project of six files: one tiny job, whose image is built here."""
    root = tmp_path / "project"
    shutil.copytree(TRAINER, root / "trainer", ignore=shutil.ignore_patterns("__pycache__"))
    runtime = {"name": "python", "options": {"toolchain": "pip", "virtualenv": ".venv"}}
    (root / "Pulumi.yaml").write_text(json.dumps({"name": "demo", "runtime": runtime}))
    shutil.copy(TEMPLATE / "__main__.py", root)
    (root / "jobs.yaml").write_text(json.dumps(DECLARATIONS))
    config = {**GCP, "vertex-training:include": ["jobs.yaml"]}
    (root / "Pulumi.dev.yaml").write_text(json.dumps({"config": config}))
    assert len([file for file in root.rglob("*") if file.is_file()]) == 6
    return InstalledProject(tmp_path, root)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> InstalledProject:
    """A project with the wheel and no extra."""
    folder = tmp_path_factory.mktemp("installed")
    (folder / "project").mkdir()
    (folder / "project" / "Pulumi.yaml").touch()
    project = InstalledProject(folder, folder / "project")
    project.install(str(wheel()), requirements=requirement_closure(""))
    return project


def test_a_preview_for_gcp_needs_no_extra(
    project: InstalledProject, installed: InstalledProject, tmp_path: Path
) -> None:
    (project.root / ".venv").symlink_to(installed.root / ".venv")
    plugin = tmp_path / "plugin" / "pulumi-resource-gcp"
    plugin.parent.mkdir()
    plugin.write_text(f'#!/bin/sh\nPYTHONPATH="{CHECKOUT}" exec "{sys.executable}" -m tests.standins.gcp.server "$@"\n')
    plugin.chmod(0o755)
    described = json.loads((project.root / "Pulumi.yaml").read_text())
    described["plugins"] = {"providers": [{"name": "gcp", "path": str(plugin.parent)}]}
    (project.root / "Pulumi.yaml").write_text(json.dumps(described))
    project.environment["GCP_STANDIN_RECORD"] = str(tmp_path / "record.jsonl")
    project.pulumi("stack", "init", "dev")
    shown = project.pulumi("preview", "--stack=dev")
    assert re.search(r":CustomJob train create", shown), shown
    for module in ("numpy", "egobox", "starlette", "uvicorn"):
        assert subprocess.run(
            [project.root / ".venv/bin/python", "-c", f"import {module}"], check=False, capture_output=True
        ).returncode
    said = project.run("vertex-emulator", "serve", exit_code=1)
    assert "vertex-training[emulator]" in said


COMMANDS: list[tuple[list[str], int, str]] = [
    (["--version"], 0, "0.1.0"),
    (["--help"], 0, "convert-legacy"),
    (["prices", "--region=us-central1"], 0, "NVIDIA_L4"),
    (["prices", "--name=none"], 1, "no list price matches"),
    (["schema", "stack"], 0, "json-schema.org"),
    (["schema", "--write=schemas"], 0, "schemas/declarations.schema.json"),
    (["schema", "--write=Pulumi.yaml/schemas"], 1, "Pulumi.yaml/schemas: Not a directory"),
    (["schema"], 2, "usage:"),
    (["nonsense"], 2, "usage:"),
    (["convert-legacy", "none.yaml"], 1, "none.yaml: cannot be read"),
    (["doctor"], 2, "it is not clear which stack is meant"),
]
ALL = """
import contextlib, io, json, sys
from importlib.metadata import entry_points

(script,) = entry_points(group="console_scripts", name="vertex-training")
main, ended = script.load(), []
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["vertex-training", *arguments]
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(said):
        try:
            code = main()
        except SystemExit as stop:
            code = stop.code or 0
    ended.append([code, said.getvalue()])
print(json.dumps(ended))
"""
"""One process for all, of the function that the script of this name calls."""


def test_the_command_has_stable_exit_codes(installed: InstalledProject) -> None:
    said = installed.run("python", "-c", ALL, json.dumps([arguments for arguments, _, _ in COMMANDS]))
    for (arguments, exit_code, text), (ended, printed) in zip(COMMANDS, json.loads(said), strict=True):
        assert (ended, text in printed) == (exit_code, True), (arguments, printed)
    # As a script, too.
    arguments, exit_code, text = COMMANDS[-1]
    assert text in installed.run("vertex-training", *arguments, exit_code=exit_code)
