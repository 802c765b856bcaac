"""The rooms: which may import which, what a preview loads, and what each shows to the others."""

import ast
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import components

ROOT = Path(__file__).parents[1]
ROOMS = ("components", "vertex_emulator", "vertex_api")


def trees(room: str) -> Iterator[tuple[Path, ast.Module]]:
    for file in sorted((ROOT / room).rglob("*.py")):
        yield file.relative_to(ROOT), ast.parse(file.read_text(), str(file))


def imports(tree: ast.AST) -> Iterator[str]:
    """Every module that is imported, at the top or inside a function, and names imported from it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def importing(room: str, *forbidden: str) -> list[str]:
    """`file: module` for each import of a forbidden package."""
    return [
        f"{file}: {name}" for file, tree in trees(room) for name in imports(tree) if name.partition(".")[0] in forbidden
    ]


def test_files_of_every_room_are_looked_at() -> None:
    assert all(len(list(trees(room))) > 3 for room in ROOMS)
    assert importing("components", "vertex_api") and importing("vertex_emulator", "vertex_api")


@pytest.mark.parametrize(
    ("room", "forbidden"),
    [
        ("components", ("vertex_emulator", "tests", "tools")),
        ("vertex_emulator", ("components", "pulumi", "pulumi_gcp", "tests", "tools")),
        ("vertex_api", ("components", "vertex_emulator", "pulumi", "pulumi_gcp", "docker", "tests", "tools")),
    ],
)
def test_arrows_between_the_rooms_go_one_way(room: str, forbidden: tuple[str, ...]) -> None:
    assert importing(room, *forbidden) == []


def test_the_program_imports_components_only() -> None:
    program = ast.parse((ROOT / "__main__.py").read_text())
    known = {name.partition(".")[0] for name in imports(program)} - set(sys.stdlib_module_names)
    assert known == {"components"}


PREVIEW = """
import json, pathlib, sys
from components import Settings
from components.images.training_image import build_context

root = pathlib.Path(sys.argv[1])
included = '["training/images.yaml", "training/digits.yaml"]'
config = {"vertex-training:target": "local", "vertex-training:include": included}
settings = Settings.parse("vertex-training", "local", root, config)
assert settings.jobs
plain, ignoring = sys.argv[2:]
loaded = []
for folder in (plain, ignoring):
    assert build_context(pathlib.Path(folder), {"context": "."}).tag
    loaded.append(sorted(sys.modules))
print(json.dumps(loaded))
"""


def test_a_preview_loads_neither_google_s_client_nor_docker_nor_the_emulator(tmp_path: Path) -> None:
    for name, ignored in [("plain", None), ("ignoring", "*.md\n")]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "Dockerfile").write_text("FROM scratch\n")
        if ignored:
            (tmp_path / name / ".dockerignore").write_text(ignored)
    command = [sys.executable, "-c", PREVIEW, str(ROOT), str(tmp_path / "plain"), str(tmp_path / "ignoring")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    plain, ignoring = json.loads(done.stdout)

    def loaded(modules: list[str], *packages: str) -> list[str]:
        return [name for name in modules if f"{name}.".startswith(tuple(f"{package}." for package in packages))]

    # google.cloud itself is a namespace that packages share; what counts is what lies in it.
    heavy = ("google.auth", "google.api_core", "uvicorn", "starlette", "egobox")
    assert loaded(ignoring, *heavy) == []
    assert [name for name in ignoring if name.startswith("google.cloud.")] == []
    assert loaded(ignoring, "vertex_emulator") == []
    assert loaded(plain, "docker", "requests") == []
    assert loaded(ignoring, "docker", "requests") == []


def shown_by(room: str) -> list[str]:
    """What a room's `__init__` imports, assigns and defines."""
    names: set[str] = set()
    for node in ast.parse((ROOT / room / "__init__.py").read_text()).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
    return sorted(names - {"__all__"})


@pytest.mark.parametrize("room", ROOMS)
def test_what_a_room_exports_is_what_it_says_and_nothing_else(room: str) -> None:
    exported = getattr(importlib.import_module(room), "__all__", [])
    assert exported == sorted(exported)
    assert shown_by(room) == exported


def test_the_exports_of_components_change_on_purpose_only() -> None:
    assert components.__all__ == [
        "Completion",
        "CustomJob",
        "CustomJobArgs",
        "Foundation",
        "HyperparameterTuningJob",
        "HyperparameterTuningJobArgs",
        "Images",
        "Jobs",
        "LocalFoundation",
        "Packages",
        "PythonPackage",
        "Settings",
        "TrainingImage",
        "TrainingPipeline",
        "TrainingPipelineArgs",
        "export",
        "foundation",
        "run",
        "show_availability",
        "show_cost",
    ]


@pytest.mark.parametrize("room", ROOMS)
def test_every_file_says_what_it_is(room: str) -> None:
    assert [str(file) for file, tree in trees(room) if not ast.get_docstring(tree)] == []
