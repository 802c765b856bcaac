"""Packages as images: what is copied, the generated Dockerfile beside gcloud's own, and the rules of a declaration."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from vertex_training.images.autopackage import PACKAGE_FOLDER, PackageContext, Recipe
from vertex_training.images.image import build_context
from vertex_training.schema import shapes

from tests.components.projects import INCLUDING, load, problems, write

FILES = {
    "t/trainer/task.py": "print(1)\n",
    "t/trainer/util.py": "",
    "t/requirements.txt": "rich\n",
    "t/dep/foo.tar.gz": "x",
    "t/data/deep/a.csv": "1,2\n",
    "t/notes.md": "x",
    "t/other/unused.py": "x",
}
PACKAGE: dict[str, Any] = {
    "path": "t",
    "script": "trainer/task.py",
    "baseImage": "python:3.11",
    "requirements": ["pandas"],
    "extraPackages": ["dep/foo.tar.gz"],
    "extraDirs": ["data"],
}


def context(root: Path, **fields: Any) -> PackageContext:
    found = build_context(root, {"package": {**PACKAGE, **fields}})
    assert isinstance(found, PackageContext)
    return found


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path, FILES)
    return tmp_path


def read_archive(context: PackageContext) -> dict[str, bytes]:
    with context.open() as archive, tarfile.open(fileobj=archive) as tar:
        return {member.name: stream.read() for member in tar.getmembers() if (stream := tar.extractfile(member))}


PROJECT = """
[project]
name = "trainer"
dependencies = ["numpy>=1.26", "rich ; python_version < '4'", "Ours_Lib"]
[tool.uv.sources]
ours-lib = {path = "../ours"}
"""


def dockerfile_of(folder: Path, **fields: Any) -> str:
    found = build_context(folder, {"package": {"path": "p", "script": "task.py", "baseImage": "python:3.11", **fields}})
    assert isinstance(found, PackageContext)
    return found.texts["Dockerfile"]


def test_a_project_s_dependencies_are_installed(tmp_path: Path) -> None:
    write(tmp_path, {"p/task.py": "", "p/pyproject.toml": PROJECT})
    lines = dockerfile_of(tmp_path).splitlines()
    # Not what the project has elsewhere: anybody may have the name on an index.
    install = "RUN pip install --no-cache-dir 'numpy>=1.26' 'rich ; python_version < '\"'\"'4'\"'\"''"
    assert install in lines and "ours" not in "".join(lines).lower()
    assert lines.index(install) < next(at for at, line in enumerate(lines) if line.startswith("COPY"))


@pytest.mark.parametrize(
    ("files", "fields"),
    [
        ({"p/requirements.txt": "rich\n"}, {}),
        ({"p/setup.py": ""}, {}),
        ({}, {"requirements": ["rich"]}),
        ({"p/pyproject.toml": "[project"}, {}),
        ({"p/pyproject.toml": "project = 1"}, {}),
        ({"p/pyproject.toml": "[tool.black]"}, {}),
    ],
)
def test_what_says_what_to_install_goes_first(tmp_path: Path, files: dict[str, str], fields: dict[str, Any]) -> None:
    write(tmp_path, {"p/task.py": "", "p/pyproject.toml": PROJECT, **files})
    assert "numpy" not in dockerfile_of(tmp_path, **fields)


POETRY = """
[tool.poetry.dependencies]
python = "^3.11"
Torch = {version = "^2.1", source = "pytorch"}
pandas = "^2"
polars = {version = "*", optional = true}
"""
BOTH = PROJECT.replace("[tool.uv.sources]", POETRY.replace("pandas", "numpy")).replace("Ours_Lib", "torch")


@pytest.mark.parametrize(
    ("files", "unread"),
    [
        ({"pyproject.toml": PROJECT}, "pyproject.toml, [tool.uv.sources] (ours-lib)"),
        ({"pyproject.toml": POETRY}, "pyproject.toml, [tool.poetry.dependencies] (pandas, torch)"),
        ({"pyproject.toml": BOTH.partition("ours-lib")[0]}, "pyproject.toml, [tool.poetry.dependencies] (torch)"),
        ({"pyproject.toml": "project.dynamic = ['dependencies']"}, "pyproject.toml, [project] dynamic (dependencies)"),
        ({"environment.yml": "", "Pipfile": ""}, "Pipfile, environment.yml"),
        ({"setup.cfg": "[options]\ninstall_requires = rich"}, "setup.cfg (install_requires)"),
    ],
)
def test_what_is_not_installed_is_said(tmp_path: Path, files: dict[str, str], unread: str) -> None:
    write(tmp_path, {"p/task.py": "", **{f"p/{name}": text for name, text in files.items()}})
    package = {"path": "p", "script": "task.py", "baseImage": "python:3.11"}
    found = build_context(tmp_path, {"package": package})
    assert found.warning == (
        f"what {unread} asks for is not installed; write it to a requirements.txt in the package's path, or into "
        "requirements or extraPackages"
    )
    assert "torch" not in found.dockerfile_text
    assert not build_context(tmp_path, {"package": {**package, "requirements": ["rich"]}}).warning
    write(tmp_path, {"p/requirements.txt": ""})
    assert not build_context(tmp_path, {"package": package}).warning


def test_a_project_without_dependencies_warns_of_nothing(tmp_path: Path) -> None:
    write(tmp_path, {"p/task.py": "", "p/pyproject.toml": "[project]\nname = 'x'\n", "p/setup.cfg": "[flake8]\n"})
    assert not build_context(tmp_path, {"package": {"path": "p", "script": "task.py", "baseImage": "a"}}).warning


def test_the_context_has_copied_files_and_dockerfile(project: Path) -> None:
    one = context(project)
    expected = ["data/deep/a.csv", "dep/foo.tar.gz", "requirements.txt", "trainer/task.py", "trainer/util.py"]
    assert list(one.digests) == ["Dockerfile", *(f"package/{path}" for path in expected)]
    held = read_archive(one)
    assert held.pop("Dockerfile").decode() == one.dockerfile_text
    assert held == {f"package/{path}": FILES[f"t/{path}"].encode() for path in expected}


def test_a_top_level_script_copies_the_whole_path(
    project: Path,
) -> None:
    write(project, {"t/train.py": "", "t/Dockerfile": "FROM other\n"})
    one = context(project, script="./train.py")
    assert one.digests.keys() >= {
        "Dockerfile",
        "package/Dockerfile",
        "package/notes.md",
        "package/other/unused.py",
    }
    assert read_archive(one)["package/Dockerfile"] == b"FROM other\n"
    assert b"FROM python:3.11" in read_archive(one)["Dockerfile"]


EDITS: dict[str, Callable[[Path], object]] = {
    "the script": lambda path: (path / "trainer/task.py").write_text("print(2)\n"),
    "a file beside the script": lambda path: (path / "trainer/util.py").write_text("x"),
    "a new file beside the script": lambda path: (path / "trainer/new.py").touch(),
    "an executable bit": lambda path: (path / "trainer/task.py").chmod(0o755),
    "requirements.txt": lambda path: (path / "requirements.txt").write_text("rich>1\n"),
    "requirements.txt going": lambda path: (path / "requirements.txt").unlink(),
    "setup.py coming": lambda path: (path / "setup.py").touch(),
    "an extra package": lambda path: (path / "dep/foo.tar.gz").write_text("y"),
    "a file deep in an extra folder": lambda path: (path / "data/deep/a.csv").write_text("1,3\n"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_the_digest_changes_with(project: Path, edit: str) -> None:
    before = context(project).digest
    EDITS[edit](project / "t")
    assert context(project).digest != before


@pytest.mark.parametrize(
    "fields",
    [
        {"script": "trainer/util.py"},
        {"baseImage": "python:3.12"},
        {"requirements": ["pandas>1"]},
        {"requirements": []},
        {"extraPackages": []},
        {"extraDirs": []},
        {"extraDirs": ["data/deep"]},
    ],
    ids=str,
)
def test_the_digest_changes_with_what_is_declared(project: Path, fields: dict[str, Any]) -> None:
    assert context(project, **fields).digest != context(project).digest


def test_the_digest_changes_with_the_platform(project: Path) -> None:
    arm = build_context(project, {"package": PACKAGE, "platform": "linux/arm64"})
    assert arm.digest != context(project).digest


LEFT_OUT: dict[str, Callable[[Path], object]] = {
    "a file that is not copied": lambda path: (path / "other/unused.py").write_text("y"),
    "a new file that is not copied": lambda path: (path / "README.md").touch(),
    "what Python compiled": lambda path: write(path, {"trainer/__pycache__/task.pyc": "", "data/__pycache__/a": ""}),
    "what Python compiled beside the script": lambda path: (path / "trainer/task.pyc").touch(),
    "times": lambda path: os.utime(path / "trainer/task.py", (1, 1)),
    "a .dockerignore that leaves out what is not copied": lambda path: (path / ".dockerignore").write_text("*.md\n"),
    "an empty folder": lambda path: (path / "trainer/empty").mkdir(),
}


@pytest.mark.parametrize("edit", LEFT_OUT)
def test_digest_and_archive_do_not_change_after(project: Path, edit: str) -> None:
    one = context(project)
    digest, held = one.digest, read_archive(one)
    LEFT_OUT[edit](project / "t")
    assert context(project).digest == digest
    assert read_archive(context(project)) == held


def test_the_digest_is_the_same_under_another_path(project: Path) -> None:
    digest = context(project).digest
    (project / "t").rename(project / "renamed")
    assert context(project, path="renamed").digest == digest


def test_ignored_files_are_excluded(project: Path) -> None:
    write(project, {"t/.dockerignore": "**/*.csv\n!data/keep.csv\n", "t/data/keep.csv": ""})
    assert [path for path in context(project).digests if "data" in path] == ["package/data/keep.csv"]


def test_dockerignore_itself_is_not_copied(project: Path) -> None:
    write(project, {"t/train.py": ""})
    before = context(project, script="train.py").digest
    write(project, {"t/.dockerignore": "*.nothing\n"})
    assert context(project, script="train.py").digest == before


def test_the_target_of_a_link_is_copied_too(project: Path) -> None:
    write(project, {"t/reqs/base.txt": "rich\n", "t/shared/conf/a.yaml": "x"})
    (project / "t/requirements.txt").unlink()
    (project / "t/requirements.txt").symlink_to("reqs/base.txt")
    (project / "t/conf").symlink_to("shared/conf")
    files = context(project, extraDirs=["conf"]).digests
    assert files.keys() >= {
        "package/requirements.txt",
        "package/reqs/base.txt",
        "package/conf",
        "package/shared/conf/a.yaml",
    }


def test_the_digest_is_stable_across_versions(project: Path) -> None:
    # Another digest would rebuild every image of every user.
    assert context(project).tag == "4de490d1be715bee"


GOLDEN = Path(__file__).parent / "dockerfiles"
BASE = "python:3.11-slim-bookworm"
PREBUILT = "us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-4.py310:latest"
PACKAGED = {"trainer/__init__.py", "trainer/task.py", "trainer/util.py", "trainer/data/read.py"}

Case = tuple[dict[str, Any], set[str]]
DOCKERFILES: dict[str, Case] = {
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


def package_of(fields: dict[str, Any]) -> shapes.Package:
    return cast(shapes.Package, {"path": "trainer", "baseImage": BASE, **fields})


@pytest.mark.parametrize("name", DOCKERFILES)
def test_the_dockerfile_of(name: str) -> None:
    fields, present = DOCKERFILES[name]
    assert Recipe(package_of(fields), present).dockerfile == (GOLDEN / f"{name}.Dockerfile").read_text()


def test_each_golden_file_belongs_to_a_case() -> None:
    assert {file.stem for file in GOLDEN.iterdir()} == DOCKERFILES.keys()


def test_the_order_of_files_does_not_matter() -> None:
    fields, present = DOCKERFILES["setup-py-that-reads-other-files"]
    found = sorted(present)
    one, other = (
        Recipe(package_of(fields), found).dockerfile,
        Recipe(package_of(fields), found[::-1]).dockerfile,
    )
    assert one == other


@pytest.mark.parametrize("requirement", ["it's>1", 'a; python_version < "3.12"', "a $(touch /x)", "a > 1"])
def test_a_requirement_reaches_pip_as_it_is_written(requirement: str) -> None:
    text = Recipe(package_of({"script": "train.py", "requirements": [requirement]}), {"train.py"}).dockerfile
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
    cases = {name: (package_of(fields), sorted(present)) for name, (fields, present) in DOCKERFILES.items()}
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
            source = source.removeprefix(f"{PACKAGE_FOLDER}/")
            found.append(("COPY", "." if source == PACKAGE_FOLDER else source, to))
        elif line and not line.startswith("#"):
            found.append(line)
    return found


@pytest.mark.parametrize("name", [name for name in DOCKERFILES if name not in DIFFERENT])
def test_gcloud_writes_the_same_instructions_for(name: str, theirs: dict[str, str]) -> None:
    fields, present = DOCKERFILES[name]
    assert instructions(Recipe(package_of(fields), present).dockerfile) == instructions(theirs[name])


@pytest.mark.parametrize("name", ["setup-py", "setup-py-that-reads-other-files"])
def test_a_setup_py_is_handled_as_by_gcloud(name: str, theirs: dict[str, str]) -> None:
    fields, present = DOCKERFILES[name]
    ours = instructions(Recipe(package_of(fields), present).dockerfile)
    assert [each for each in instructions(theirs[name]) if each not in ours] == []
    installed = ours.index("RUN pip install --no-cache-dir .")
    assert ("COPY", "trainer", "trainer") in ours[:installed]


def declared(**fields: Any) -> str:
    lines = "".join(f"      {key}: {value}\n" for key, value in {**PACKAGE, **fields}.items() if value is not None)
    return f"images:\n  digits:\n    package:\n{lines}"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"path": "nowhere"}, '4: images.digits.package.path: "nowhere" is not a folder in {root}/'),
        ({"path": "/srv"}, '4: images.digits.package.path: "/srv" must be relative to the project\'s folder'),
        ({"path": None}, "3: images.digits.package.path: is required"),
        ({"baseImage": None}, "3: images.digits.package.baseImage: is required"),
        (
            {"module": "trainer.task"},
            "3: images.digits.package: needs either a script (.py, or anything else for Bash) or a module to run",
        ),
        (
            {"script": None},
            "3: images.digits.package: needs either a script (.py, or anything else for Bash) or a module to run",
        ),
        (
            {"script": "task.py"},
            '5: images.digits.package.script: there is no file "task.py" in the package\'s path; write it relative to '
            "that",
        ),
        (
            {"script": None, "module": "trainer.tusk"},
            '9: images.digits.package.module: there is no file "trainer/tusk.py" in the package\'s path; write it '
            "relative to that",
        ),
        (
            {"script": None, "module": "trainer/task.py"},
            '9: images.digits.package.module: "trainer/task.py" is not a Python module, such as trainer.task',
        ),
        (
            {"script": "../outside.py"},
            '5: images.digits.package.script: "../outside.py" is outside the package\'s path; move it there, or set '
            "path to a folder that contains both",
        ),
        (
            {"extraPackages": "[dep/bar.whl]"},
            '8: images.digits.package.extraPackages[0]: there is no file "dep/bar.whl" in the package\'s path; write '
            "it relative to that",
        ),
        (
            {"extraDirs": "[data, notes.md]"},
            '9: images.digits.package.extraDirs[1]: there is no folder "notes.md" in the package\'s path; write it '
            "relative to that",
        ),
        (
            {"extraDirs": "[/etc]"},
            '9: images.digits.package.extraDirs[0]: "/etc" is outside the package\'s path; move it there, or set '
            "path to a folder that contains both",
        ),
        (
            {"extraDirs": "[link]"},
            '9: images.digits.package.extraDirs[0]: "link" is outside the package\'s path; move it there, or set '
            "path to a folder that contains both",
        ),
        (
            {"extraDirs": "['d*']"},
            '9: images.digits.package.extraDirs[0]: "d*" is not a path without wildcards, quotes, $ and \\; give the '
            "file another name",
        ),
        (
            {"extraDirs": "[empty]"},
            '9: images.digits.package.extraDirs[0]: "empty" is an empty folder, which no context has; put a file '
            "there, such as empty/.gitkeep",
        ),
        (
            {"requirements": "['--pre']"},
            '7: images.digits.package.requirements[0]: "--pre" is not one requirement as pip reads it, such as '
            "pandas>=2; options go into requirements.txt",
        ),
        (
            {"baseImage": "'a b'"},
            '6: images.digits.package.baseImage: "a b" is not an image\'s name, such as python:3.11-slim-bookworm',
        ),
        ({"packages": "[a]"}, "10: images.digits.package.packages: unknown field; did you mean extraPackages?"),
    ],
    ids=str,
)
def test_an_invalid_package_is_rejected(project: Path, fields: dict[str, Any], problem: str) -> None:
    write(project, {"outside.py": ""})
    (project / "t/link").symlink_to("/etc")
    (project / "t/empty").mkdir()
    (found,) = problems(project, INCLUDING, jobs=declared(**fields))
    assert found == f"jobs.yaml:{problem}".format(root=project.name)


@pytest.mark.parametrize(
    ("ignored", "key"),
    [("trainer", "5: images.digits.package.script"), ("requirements.txt", "4: images.digits.package.path")],
)
def test_a_required_file_that_is_ignored_is_rejected(project: Path, ignored: str, key: str) -> None:
    write(project, {"t/.dockerignore": f"{ignored}\n"})
    (problem,) = problems(project, INCLUDING, jobs=declared())
    path = "trainer/task.py" if ignored == "trainer" else ignored
    assert problem == f'jobs.yaml:{key}: "{path}" is excluded by .dockerignore; include it by a line "!{path}"'


@pytest.mark.parametrize("beside", ["dockerfile: Dockerfile", "target: slim", "buildArgs: {A: '1'}"])
def test_dockerfile_options_are_rejected_beside_a_package(project: Path, beside: str) -> None:
    (problem,) = problems(project, INCLUDING, jobs=declared() + f"    {beside}\n")
    key = beside.partition(":")[0]
    assert problem == (
        f"jobs.yaml:10: images.digits.{key}: is for a Dockerfile of your own; a package's is generated, so leave "
        "this out"
    )


def test_a_valid_package_is_accepted_unchanged(project: Path) -> None:
    settings = load(project, INCLUDING, jobs=declared() + "    platform: linux/arm64\n")
    assert settings.images == {"digits": {"package": PACKAGE, "platform": "linux/arm64"}}
