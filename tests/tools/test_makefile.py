"""`make`: exit codes reach the caller, in a copy of the set-up whose Pulumi and Docker are scripts."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from tools.setup import CHECKOUT, python, sdks, testing

STAMP_SCRIPT = """
import json
from tools.setup import dev, python as p
dev.STAMP.write_text(dev._digest())
p.STAMP.write_text(json.dumps({**p.stamp(), "packages": 1}))
"""


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Runs make in a copy of the checkout in which all steps find what they need."""
    copy = tmp_path / "a checkout"
    (copy / "tools").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "requirements.lock", "requirements-dev.lock", "tools/__init__.py"):
        shutil.copy(CHECKOUT / name, copy / name)
    shutil.copytree(CHECKOUT / "tools/setup", copy / "tools/setup", ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "vertex_api").mkdir()
    for name in ("vertex_api/__init__.py", "vertex_api/locks.py"):
        shutil.copy(CHECKOUT / name, copy / name)
    (copy / "tools/engine").mkdir()
    shutil.copy(CHECKOUT / "tools/engine/go.mod", copy / "tools/engine")
    bin_folder = copy / ".venv/bin"
    bin_folder.mkdir(parents=True)
    (bin_folder / "python").touch()
    (copy / ".venv/lib/python3/site-packages").mkdir(parents=True)
    subprocess.run([sys.executable, "-c", STAMP_SCRIPT], cwd=copy, check=True)
    asked = tmp_path / "asked"
    note = f'echo "${{0##*/}} $*" >> "{asked}"'
    scripts = {
        bin_folder / "python": f'{note}; [ "$2" != "$FAILS" ]',
        "pulumi": f'[ "$1" = version ] && echo v3.259.0 && exit; {note}; [ "$1" != "$FAILS" ]',
        "pulumi-language-python": "",
        "docker": '[ "$1" = image ] && echo null || echo 28.2.2',
        **dict.fromkeys((*testing.PACKAGES, *testing.INSTALL_HINTS), ""),
    }
    for version in sdks.SHA256:
        (tmp_path / "cache" / "vertex-training" / f"pulumi-sdk-{version}").mkdir(parents=True)
    # Nor may make split the interpreter's path, which is in the checkout once the environment is set.
    programs = tmp_path / "it's in a $HOME"
    programs.mkdir()
    (programs / "python3").symlink_to(python.base_python())
    for name, script in scripts.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)

    def run(*arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        env = {
            "PATH": f"{programs}:/usr/bin:/bin",
            "HOME": str(tmp_path),
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
            **variables,
        }
        result = subprocess.run(["make", *arguments], cwd=copy, env=env, capture_output=True, text=True)
        result.asked = asked.read_text().splitlines() if asked.exists() else []  # type: ignore[attr-defined]
        return result

    return run


def test_make_up_selects_and_updates_local(make: Callable) -> None:
    result = make("up")
    assert result.returncode == 0, result.stderr
    assert result.asked == [
        "pulumi stack select --create --secrets-provider passphrase local",
        "pulumi up --yes",
    ]


@pytest.mark.parametrize(("target", "failing"), [("up", "up"), ("up", "stack"), ("preview", "preview")])
def test_a_pulumi_that_fails_fails_make(make: Callable, target: str, failing: str) -> None:
    assert make(target, FAILS=failing).returncode != 0


@pytest.mark.parametrize(("target", "selected"), [("test", " -m not large"), ("test-all", "")])
def test_make_test_runs_what_is_not_large(make: Callable, target: str, selected: str) -> None:
    result = make(target)
    (asked,) = result.asked
    assert (result.returncode, asked.split(" --")[0].rstrip()) == (0, f"python -m pytest{selected}")


def test_make_test_fails_when_pytest_fails(make: Callable) -> None:
    assert make("test", FAILS="pytest").returncode != 0


def test_make_template_prints_nothing_but_the_folder(make: Callable) -> None:
    result = make("-s", "template")
    assert (result.returncode, result.stdout) == (0, "")  # the script in Python's place prints no folder
    assert result.asked == ["python -m tools.template"]


def test_make_without_a_target_explains_itself(make: Callable) -> None:
    result = make()
    assert result.returncode == 0
    assert "make up " in result.stdout
    assert 'eval "$(make -s env)"' in result.stdout


def test_the_printed_environment_works_in_a_shell(make: Callable, tmp_path: Path) -> None:
    exports = make("-s", "env").stdout
    script = f'{exports}\ncommand -v python; echo "$PULUMI_BACKEND_URL"'
    shell = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True)
    found, backend = shell.stdout.splitlines()
    assert found == str(tmp_path / "a checkout/.venv/bin/python")
    assert backend == f"file://{quote(str(tmp_path))}/a%20checkout/.pulumi-state?metadata=skip"


def test_a_failed_setup_makes_shell_code_fail(make: Callable, tmp_path: Path) -> None:
    for program in ("pulumi", "pulumi-language-python", "go"):
        (tmp_path / "it's in a $HOME" / program).unlink()
    result = make("-s", "env")
    assert "Install Pulumi" in result.stderr
    assert subprocess.run(["/bin/sh", "-c", result.stdout]).returncode != 0


def test_pulumi_does_not_run_without_its_environment(make: Callable, tmp_path: Path) -> None:
    (tmp_path / "a checkout/.venv/setup.json").unlink()
    result = make("preview")
    assert result.returncode != 0
    assert "did not make it" in result.stderr
    assert result.asked == []


def test_an_old_python_is_reported(make: Callable, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for name in ("make", "sed", "sh"):
        (empty / name).symlink_to(shutil.which(name) or os.devnull)
    for _ in ("none at all", "an old one"):
        result = make("setup", PATH=str(empty))
        assert result.returncode != 0
        assert "Python 3.11 or later is needed" in result.stderr
        old = "import sys; sys.version_info = (3, 10); exec(sys.argv[2])"
        (empty / "python3").write_text(f"#!/bin/sh\nexec '{sys.executable}' -c '{old}' \"$@\"\n")
        (empty / "python3").chmod(0o755)
