"""Packages become images in Docker, and the images do what those do that gcloud makes of the same folder."""

import os
import re
import shutil
import subprocess
import uuid
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import docker
import pytest
from docker.models.images import Image
from vertex_training.images.builders import Buildx, ClassicBuilder, has_plugin
from vertex_training.images.image import build_context
from vertex_training.schema import shapes

from tests import buildx
from tests.components.projects import write

BASE = "python:3.11-slim-bookworm"
ARGUMENTS = ["--epochs=3", "with spaces", "$HOME"]
LISTED = (
    'find /usr/app -not -name .dockerignore -printf "%y %P %l\\n" | sort; cat $(find /usr/app -name "*.csv" | sort)'
)
"""Without `.dockerignore`: gcloud's build adds a line to it that is never the same."""
TRAIN = f"""\
import os
import subprocess
import sys

import greeting
import util

sys.stdout.reconfigure(line_buffering=True)
print(greeting.TEXT, util.NAME, sys.argv, os.getcwd(), os.environ["HOME"], os.environ["PYTHONDONTWRITEBYTECODE"])
print(oct(os.stat("/usr/app").st_mode), oct(os.stat("/home").st_mode), os.getuid())
subprocess.run(["sh", "-c", {LISTED!r}], check=True)
"""
FOLDER = {
    "requirements.txt": "# nothing that a package index would be asked for\n",
    "src/train.py": TRAIN,
    "src/util.py": "NAME = 'util'\n",
    "src/deep/a.txt": "",
    "data/a.csv": "1,2\n",
    "data/b.csv": "3,4\n",
    "unused/b.txt": "",
    ".dockerignore": "data/b.csv\n",
    "Dockerfile": "FROM scratch\n",
    "run.sh": f"""echo "$0 $# $*"; echo $PWD $HOME; {LISTED}\n""",
}
PYTHON: dict[str, Any] = {"script": "src/train.py", "extraPackages": ["dep/greeting-1.0-py3-none-any.whl"]}
CASES: dict[str, dict[str, Any]] = {
    "a script with requirements.txt, a wheel and a folder": {**PYTHON, "extraDirs": ["data"]},
    "a module": {"module": "src.module"},
    "a Bash script": {"script": "run.sh"},
}
FLAGS = {"script": "--script", "module": "--python-module", "extraPackages": "--extra-packages"}
FLAGS |= {"extraDirs": "--extra-dirs"}


@dataclass(frozen=True)
class Run:
    """An image, and what a container of it printed."""

    image: Image
    output: str


@pytest.fixture(scope="module")
def client() -> Iterator[docker.DockerClient]:
    client = docker.from_env()
    yield client
    client.close()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    write(root / "trainer", FOLDER)
    (root / "trainer/src/module.py").write_text("import sys\nprint(sys.argv, sys.orig_argv[:3], sys.path[0])\n")
    (root / "trainer/src/link").symlink_to("util.py")
    (root / "trainer/dep").mkdir()
    info = "greeting-1.0.dist-info"
    with zipfile.ZipFile(root / "trainer" / PYTHON["extraPackages"][0], "w") as wheel:
        wheel.writestr("greeting.py", "TEXT = 'hello'\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return root


@pytest.fixture(scope="module", params=list(CASES.values()), ids=list(CASES))
def package(request: pytest.FixtureRequest) -> shapes.Package:
    return cast(shapes.Package, {"path": "trainer", "baseImage": BASE, **request.param})


@pytest.fixture(scope="module", params=[ClassicBuilder, Buildx])
def builds(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Buildx | ClassicBuilder]:
    with pytest.MonkeyPatch.context() as patch:
        if request.param is Buildx and not has_plugin():
            config = tmp_path_factory.mktemp("docker")
            buildx.install(config, buildx.program())
            patch.setenv("DOCKER_CONFIG", str(config))
        yield request.param()


@pytest.fixture(scope="module")
def ours(
    client: docker.DockerClient, project: Path, package: shapes.Package, builds: Buildx | ClassicBuilder
) -> Iterator[Run]:
    context = build_context(project, {"package": package})
    uri = f"localhost/vertex-training-tests/package-{uuid.uuid4().hex}:{context.tag}"
    builds.build(context, uri, {}, lambda line: None)
    output = client.containers.run(uri, ARGUMENTS, remove=True, stderr=True)
    yield Run(client.images.get(uri), output.decode())
    client.images.remove(uri, force=True)


@pytest.fixture(scope="module")
def theirs(
    client: docker.DockerClient,
    project: Path,
    package: shapes.Package,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Run]:
    """What `gcloud ai custom-jobs local-run` makes of the same folder."""
    if shutil.which("gcloud") is None or shutil.which("docker") is None:
        pytest.skip("gcloud or the docker command is not installed: there is no local-run to compare with")
    flags = [
        f"{flag}={','.join(value) if isinstance(value, list) else value}"
        for key, flag in FLAGS.items()
        if (value := cast(dict[str, Any], package).get(key))
    ]
    config = tmp_path_factory.mktemp("gcloud")
    (config / "credentials.json").touch()  # mounted into the container, where nothing reads it
    environment = {
        **os.environ,
        "CLOUDSDK_CONFIG": str(config),
        "CLOUDSDK_CORE_DISABLE_PROMPTS": "1",
        "CLOUDSDK_AUTH_DISABLE_CREDENTIALS": "true",
        "GOOGLE_APPLICATION_CREDENTIALS": str(config / "credentials.json"),
    }
    command = ["gcloud", "ai", "custom-jobs", "local-run", f"--executor-image-uri={BASE}", *flags]
    done = subprocess.run(
        [*command, f"--local-package-path={project / 'trainer'}", "--", *ARGUMENTS],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    name = re.findall(r"using custom image: (\S+)[.]\s", done.stdout)[-1]
    output = client.containers.run(name, ARGUMENTS, remove=True, stderr=True)
    yield Run(client.images.get(name), output.decode())
    client.images.remove(name, force=True)


def test_a_package_image_equals_that_of_gcloud(ours: Run, theirs: Run) -> None:
    assert ours.output == theirs.output
    assert "with spaces" in ours.output


def test_a_package_starts_as_with_gcloud(ours: Run, theirs: Run) -> None:
    for key in ("Entrypoint", "Cmd", "WorkingDir", "User", "Env", "Volumes"):
        assert ours.image.attrs["Config"][key] == theirs.image.attrs["Config"][key], key


def test_a_package_runs_with_its_files_and_workdir(ours: Run, package: shapes.Package) -> None:
    if "module" in package:
        assert ours.output == (f"{['/usr/app/src/module.py', *ARGUMENTS]} ['python', '-m', 'src.module'] /usr/app\n")
        return
    lines = ours.output.splitlines()
    if package["script"] == "run.sh":
        assert lines[:2] == ["run.sh 3 --epochs=3 with spaces $HOME", "/usr/app /home"]
        assert {"f Dockerfile ", "f unused/b.txt ", "f data/a.csv "} < set(lines)
    else:
        assert lines[0] == f"hello util {['src/train.py', *ARGUMENTS]} /usr/app /home 1"
        assert lines[1].startswith("0o40777 ")
        held = {line.split()[1] for line in lines[2:] if line[:2] in ("f ", "l ")}
        wheel = "greeting-1.0-py3-none-any.whl"
        source = {"src/deep/a.txt", "src/link", "src/module.py", "src/train.py", "src/util.py"}
        assert held == {"data/a.csv", "requirements.txt", wheel, *source}
    assert "f data/b.csv " not in lines


def test_a_setup_py_may_read_other_files(client: docker.DockerClient, tmp_path: Path) -> None:
    setup = (
        "from setuptools import setup\n"
        "text = open('README.md').read()\n"
        "setup(name='team', version='1', packages=['trainer'], description=text)\n"
    )
    task = "import importlib.metadata\nprint(importlib.metadata.metadata('team')['Summary'])\n"
    write(
        tmp_path / "t", {"setup.py": setup, "README.md": "trains", "trainer/__init__.py": "", "trainer/task.py": task}
    )
    package = {"path": "t", "module": "trainer.task", "baseImage": BASE}
    context = build_context(tmp_path, {"package": package})
    uri = f"localhost/vertex-training-tests/package-{uuid.uuid4().hex}:{context.tag}"
    try:
        ClassicBuilder().build(context, uri, {}, lambda line: None)
        assert client.containers.run(uri, remove=True) == b"trains\n"
    finally:
        client.images.remove(uri, force=True)
