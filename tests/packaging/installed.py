"""A Pulumi project that has the wheel and what that requires, and nothing of this checkout."""

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Set
from importlib import metadata
from pathlib import Path
from typing import Any

from tests.engine.project import plain_environment
from tests.packaging.building import PIP

_BLOCKER = """\
import sys


class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError("No module named " + name, name=name)


sys.meta_path.insert(0, Blocker())
"""


class InstalledProject:
    """A project in `root`, with a state of its own below `folder`."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.root = root
        (folder / "state").mkdir(exist_ok=True)
        self.environment = plain_environment(folder)
        self.environment["PATH"] = os.pathsep.join([str(root / ".venv" / "bin"), os.environ["PATH"]])
        self.environment.pop("PYTHONPATH", None)

    def install(self, *arguments: str, requirements: Set[str]) -> None:
        """Make `.venv` with what `arguments` of pip name; of this environment's packages it sees `requirements` alone.

        `requirements` are normalised names of distributions.
        """
        venv = self.root / ".venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
        (site,) = venv.glob("lib/python*/site-packages")
        (site / "packages.pth").write_text(sysconfig.get_path("purelib") + "\n")
        (site / "sitecustomize.py").write_text(
            _BLOCKER.format(blocked=_modules_outside(requirements | {"pip", "vertex-training"}))
        )
        options = ["--quiet", "--no-index", "--no-deps", "--no-compile", "--ignore-installed"]
        command = [*PIP, "--python", str(venv / "bin" / "python"), "install", *options, *arguments]
        subprocess.run(command, cwd=self.root, env=self.environment, check=True)

    def run(self, *command: str, exit_code: int = 0) -> str:
        """Run a command in the project and return what it prints; a test fails if it ends with another exit code."""
        done = subprocess.run(command, cwd=self.root, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == exit_code, done.stdout + done.stderr
        assert "Traceback" not in done.stdout + done.stderr
        return done.stdout + done.stderr

    def pulumi(self, *arguments: str) -> str:
        """Run `pulumi` in the project and return what it prints."""
        return self.run("pulumi", *arguments, "--non-interactive")

    def read_state(self) -> list[dict[str, Any]]:
        """Return the resources of the stack `local`."""
        state: dict[str, Any] = json.loads(self.pulumi("stack", "export", "--stack=local"))
        return list(state["deployment"]["resources"])

    def stop_emulator(self) -> None:
        """Stop the emulator and remove its containers."""
        self.run("vertex-emulator", "stop")
        self.run("vertex-emulator", "reset", "--yes")


def _modules_outside(names: Set[str]) -> set[str]:
    """Return the top-level modules here that belong to none of the distributions."""
    owners = metadata.packages_distributions().items()
    normal = {module: {name.lower().replace("_", "-").replace(".", "-") for name in found} for module, found in owners}
    return {module for module, found in normal.items() if not found & names}
