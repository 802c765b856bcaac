"""Declarations of packages: each problem is found before any build, at the line that has it."""

from pathlib import Path
from typing import Any

import pytest

from tests.components.images.test_package_context import FILES, PACKAGE
from tests.components.projects import INCLUDING, load, problems, write


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path, FILES)
    return tmp_path


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
            '9: images.digits.package.extraDirs[0]: "empty" is empty, or excluded by .dockerignore; include it by '
            'a line "!empty"',
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
def test_an_invalid_package_is_rejected_before_any_build(project: Path, fields: dict[str, Any], problem: str) -> None:
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
    assert problem == (
        f'jobs.yaml:{key}: "{path}" is empty, or excluded by .dockerignore; include it by a line "!{path}"'
    )


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
