"""The digest of a checkout on this machine, and on one with another user, umask, time zone, locale and file system."""

import os
import shutil
import subprocess
from pathlib import Path

from vertex_training.files import MAX_UNCACHED_FILES
from vertex_training.images.context import DockerfileContext

ROOMS = Path(__file__).parents[2]
BASE = "python:3.11-slim-bookworm"
MODULES = (
    "components/errors",
    "components/files",
    "components/own",
    "components/images/context",
    "vertex_api/errors",
)
_SCRIPT = """
umask 077
cp --recursive --no-dereference /checkout /elsewhere/of-another-name
cd /elsewhere/of-another-name
find . -type f -exec touch --no-dereference --date 2001-02-03 {} +
exec python - <<'END'
import os
from pathlib import Path
from vertex_training.images.context import DockerfileContext

context = DockerfileContext(Path("."), "Dockerfile", {"B": "2", "A": "1"}, "slim", "linux/amd64", ("token",))
for _ in range(2):
    print(context.digest, len(context.digests), os.getuid(), oct(Path("train.py").stat().st_mode))
END
"""


def test_two_machines_compute_one_digest(tmp_path: Path) -> None:
    folder, modules = tmp_path / "checkout", tmp_path / "modules"
    for index in range(MAX_UNCACHED_FILES + 20):
        file = folder / f"part-{index % 7}" / f"größe {index}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{index}\n")
    (folder / "Dockerfile").write_text("FROM scratch\n")
    (folder / "train.py").write_text("print(1)\r\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("part-1")
    (folder / ".dockerignore").write_text("part-2\n!part-2/*9.txt\n**/größe 3?.txt\n")
    # The modules that take the digest, with nothing else of the project or of Pulumi: any machine's Python runs them.
    for package in ("vertex_training", "vertex_training/images", "vertex_api"):
        (modules / package).mkdir(parents=True)
        (modules / package / "__init__.py").touch()
    (modules / "pulumi.py").write_text("class RunError(Exception):\n    pass\n")
    for name in MODULES:
        source, copy = ROOMS / name, modules / name.replace("components", "vertex_training")
        if source.is_dir():
            shutil.copytree(source, copy)
        else:
            shutil.copy(f"{source}.py", f"{copy}.py")
    for path in (tmp_path, *tmp_path.parents):
        if path.stat().st_uid == os.getuid() and path.is_relative_to(tmp_path):
            path.chmod(0o755)
    here = DockerfileContext(folder, "Dockerfile", {"A": "1", "B": "2"}, "slim", "linux/amd64", ("token",))

    mounts = [f"--volume={folder}:/checkout:ro", f"--volume={modules}:/modules:ro", "--tmpfs=/elsewhere:mode=1777"]
    variables = ["PYTHONPATH=/modules", "TZ=Asia/Kathmandu", "LC_ALL=C", "HOME=/nowhere", "PYTHONDONTWRITEBYTECODE=1"]
    command = ["docker", "run", "--rm", "--interactive", "--network=none", "--user=4321:4321", *mounts]
    command += [f"--env={variable}" for variable in variables] + [BASE, "sh"]
    done = subprocess.run(command, input=_SCRIPT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    there = done.stdout.splitlines()
    assert oct((folder / "train.py").stat().st_mode) != "0o100600"
    assert there == [f"{here.digest} {len(here.digests)} 4321 0o100600"] * 2
