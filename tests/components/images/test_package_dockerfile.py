"""Generated Dockerfiles: one golden file for each property of a package, and gcloud's own beside them."""

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from vertex_training.images import package_dockerfile
from vertex_training.schema import shapes

GOLDEN = Path(__file__).parent / "dockerfiles"
BASE = "python:3.11-slim-bookworm"
PREBUILT = "us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-4.py310:latest"
PACKAGED = {"trainer/__init__.py", "trainer/task.py", "trainer/util.py", "trainer/data/read.py"}

Case = tuple[dict[str, Any], set[str]]
CASES: dict[str, Case] = {
    "a-script-at-the-top": ({"script": "train.py"}, {"train.py"}),
    "a-script-in-a-folder": ({"script": "src/deep/train.py"}, {"src/deep/train.py"}),
    "a-bash-script": ({"script": "run.sh"}, {"run.sh", "train.py"}),
    "a-module": ({"module": "trainer.task"}, PACKAGED),
    "a-prebuilt-base": (
        {"module": "trainer.task", "baseImage": PREBUILT, "requirements": ["rich"], "extraPackages": ["a.whl"]},
        {*PACKAGED, "requirements.txt", "a.whl"},
    ),
    "requirements-txt": ({"script": "train.py"}, {"train.py", "requirements.txt"}),
    "requirements": ({"script": "train.py", "requirements": ["pandas>=2,<3", "rich[jupyter]"]}, {"train.py"}),
    "extra-packages": (
        {"script": "train.py", "extraPackages": ["dep/foo-1.tar.gz", "bar 2.whl"]},
        {"train.py", "dep/foo-1.tar.gz", "bar 2.whl"},
    ),
    "extra-dirs": (
        {"script": "src/train.py", "extraDirs": ["data", "conf/dev"]},
        {"src/train.py", "data/a.csv", "conf/dev/a.yaml"},
    ),
    "all-but-setup-py": (
        {"script": "src/train.py", "requirements": ["rich"], "extraPackages": ["a.whl"], "extraDirs": ["data"]},
        {"src/train.py", "requirements.txt", "a.whl", "data/a.csv"},
    ),
    "setup-py": ({"module": "trainer.task"}, {*PACKAGED, "setup.py"}),
    "setup-py-that-reads-other-files": (
        {"module": "trainer.task", "extraDirs": ["common"]},
        {*PACKAGED, "setup.py", "README.md", "setup.cfg", "requirements.txt", "common/__init__.py"},
    ),
    "a-module-within-a-package": (
        {"module": "trainer.jobs.task"},
        {"trainer/__init__.py", "trainer/jobs/__init__.py", "trainer/jobs/task.py", "trainer/util.py"},
    ),
}
DIFFERENT = {"setup-py", "setup-py-that-reads-other-files", "a-module-within-a-package"}
"""Where gcloud's has a known defect, docs/autopackaging.md."""


def package(fields: dict[str, Any]) -> shapes.Package:
    return cast(shapes.Package, {"path": "trainer", "baseImage": BASE, **fields})


@pytest.mark.parametrize("name", CASES)
def test_the_dockerfile_of(name: str) -> None:
    fields, present = CASES[name]
    assert package_dockerfile.render_dockerfile(package(fields), present) == (GOLDEN / f"{name}.Dockerfile").read_text()


def test_each_golden_file_belongs_to_a_case() -> None:
    assert {file.stem for file in GOLDEN.iterdir()} == CASES.keys()


def test_the_order_of_files_does_not_matter() -> None:
    fields, present = CASES["setup-py-that-reads-other-files"]
    found = sorted(present)
    one, other = (
        package_dockerfile.render_dockerfile(package(fields), found),
        package_dockerfile.render_dockerfile(package(fields), found[::-1]),
    )
    assert one == other


@pytest.mark.parametrize("requirement", ["it's>1", 'a; python_version < "3.12"', "a $(touch /x)", "a > 1"])
def test_a_requirement_reaches_pip_as_it_is_written(requirement: str) -> None:
    text = package_dockerfile.render_dockerfile(
        package({"script": "train.py", "requirements": [requirement]}), {"train.py"}
    )
    (line,) = [line for line in text.splitlines() if "--upgrade" in line]
    assert shlex.split(line)[-1] == requirement


GCLOUD = """
import json, sys
sdk, cases = sys.argv[1:]
sys.path[:0] = [sdk, sdk + "/third_party"]
from googlecloudsdk.command_lib.ai.custom_jobs import local_util
from googlecloudsdk.command_lib.ai.docker import build, utils

texts = {}
for name, (package, present) in json.loads(cases).items():
    module = package.get("module")
    script = local_util.ModuleToPath(module) if module else package["script"]
    texts[name] = build._MakeDockerfile(
        package["baseImage"],
        utils.Package(script, "/package", module),
        build._DEFAULT_WORKDIR,
        build._DEFAULT_HOME,
        requirements_path=build._DEFAULT_REQUIREMENTS_PATH if "requirements.txt" in present else None,
        setup_path=build._DEFAULT_SETUP_PATH if "setup.py" in present else None,
        extra_requirements=package.get("requirements"),
        extra_packages=package.get("extraPackages"),
        extra_dirs=package.get("extraDirs"),
    )
print(json.dumps(texts))
"""


@pytest.fixture(scope="module")
def theirs() -> dict[str, str]:
    """What gcloud writes for each case."""
    command = shutil.which("gcloud")
    sdk = Path(command).resolve().parents[1] / "lib" if command else Path("/nonexistent")
    if not (sdk / "googlecloudsdk").is_dir():
        pytest.skip("gcloud is not installed: its own Dockerfiles cannot be looked at")
    cases = {name: (package(fields), sorted(present)) for name, (fields, present) in CASES.items()}
    # In a process of its own: its libraries are other versions than ours, and some of them warn.
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", GCLOUD, str(sdk), json.dumps(cases)],
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(done.stdout))


def instructions(text: str) -> list[Any]:
    """What a Dockerfile does, without comments: a COPY as its source and target, from the package's path."""
    found: list[Any] = []
    for line in (line.strip() for line in text.splitlines()):
        if line.startswith("COPY "):
            source, to = (path.removeprefix("./") for path in json.loads(line.removeprefix("COPY ")))
            source = source.removeprefix(f"{package_dockerfile.PACKAGE_FOLDER}/")
            found.append(("COPY", "." if source == package_dockerfile.PACKAGE_FOLDER else source, to))
        elif line and not line.startswith("#"):
            found.append(line)
    return found


@pytest.mark.parametrize("name", [name for name in CASES if name not in DIFFERENT])
def test_gcloud_writes_the_same_instructions_for(name: str, theirs: dict[str, str]) -> None:
    fields, present = CASES[name]
    assert instructions(package_dockerfile.render_dockerfile(package(fields), present)) == instructions(theirs[name])


@pytest.mark.parametrize("name", ["setup-py", "setup-py-that-reads-other-files"])
def test_a_setup_py_is_handled_as_by_gcloud(name: str, theirs: dict[str, str]) -> None:
    fields, present = CASES[name]
    ours = instructions(package_dockerfile.render_dockerfile(package(fields), present))
    assert [each for each in instructions(theirs[name]) if each not in ours] == []
    installed = ours.index("RUN pip install --no-cache-dir .")
    assert ("COPY", "trainer", "trainer") in ours[:installed]
