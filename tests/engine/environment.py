"""An environment of packages that a project may take for its own."""

import os
import subprocess
import sys
from pathlib import Path

from tests.engine.project import CHECKOUT
from tools.setup import commands


def link_environment(project: Path) -> None:
    """Link the packages of this checkout's environment, as if set-up had installed them for the project."""
    folder = project / ".venv"
    folder.unlink(missing_ok=True)
    folder.mkdir()
    (folder / "bin").mkdir()
    made = CHECKOUT / ".venv"
    (site,) = made.glob("lib/python*/site-packages")
    (folder / site.relative_to(made)).mkdir(parents=True)
    # Set-up writes these itself, into its own environment rather than through a link.
    written = {"setup.json", "bin", "lib", "vertex-emulator", "vertex-training", *commands.PACKAGES}
    for entry in [*made.iterdir(), *(made / "bin").iterdir(), *site.iterdir()]:
        if entry.name not in written:
            (folder / entry.relative_to(made)).symlink_to(entry)
    for name, room in commands.PACKAGES.items():
        (folder / site.relative_to(made) / name).symlink_to(project / room)
    stamp = "import json; from tools.setup import python as p; "
    stamp += "p.STAMP.write_text(json.dumps({**p.stamp(), 'packages': 1}))"
    subprocess.run([sys.executable, "-c", stamp], cwd=project, env={**os.environ, "PYTHONPATH": ""}, check=True)
