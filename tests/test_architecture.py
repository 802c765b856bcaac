"""The rooms and their folders: which may import which, what a preview loads, and what each room exports."""

import ast
import functools
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
import vertex_training

ROOT = Path(__file__).parents[1]

PAGE = ROOT / "docs" / "contributing.md"


def _floors() -> dict[str, list[list[str]]]:
    """The modules at a room's top and its folders, by floor, from the page; `""` is the room's `__init__`."""
    rooms = re.split(r"^### (\w+)$", PAGE.read_text(), flags=re.MULTILINE)[1:]
    return {
        room: [
            [name.replace("__init__", "") for name in re.findall("`([^`]+)`", line)]
            for line in re.findall(r"^\d+\. .*", text, re.MULTILINE)
        ]
        for room, text in zip(rooms[::2], rooms[1::2], strict=True)
    }


LAYERS = _floors()
MAX_FLOORS = {"components": 8, "vertex_api": 7, "vertex_emulator": 9}


@functools.cache
def trees(room: str) -> list[tuple[Path, ast.Module]]:
    files = sorted((ROOT / room).rglob("*.py"))
    return [(file.relative_to(ROOT), ast.parse(file.read_text(), str(file))) for file in files]


@functools.cache
def find_imports(tree: ast.AST) -> list[ast.Import | ast.ImportFrom]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]


def imports(file: Path, tree: ast.AST) -> Iterator[str]:
    """Every module that is imported, at the top or inside a function, and names imported from it."""
    for node in find_imports(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            above = file.parent.parts[: len(file.parent.parts) - node.level + 1] if node.level else ()
            origin = ".".join((*above, *([node.module] if node.module else [])))
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def importing(room: str, *forbidden: str) -> list[str]:
    """`file: module` for each import of a forbidden package."""
    return [
        f"{file}: {name}"
        for file, tree in trees(room)
        for name in imports(file, tree)
        if name.partition(".")[0] in forbidden
    ]


def test_the_page_names_what_is_there() -> None:
    """Each place where it says that a change goes: the file, and what is named in it."""
    table = PAGE.read_text().partition("## Where a change goes")[2].partition("## Floors")[0]
    named = re.findall(r"`((?:components|vertex_api|vertex_emulator|tools)/[\w/.]+)`(?:: `(\w+)`)?", table)
    assert len(named) > 20
    assert [place for place, _ in named if not (ROOT / place).exists()] == []
    assert [each for each in named if each[1] and each[1] not in (ROOT / each[0]).read_text()] == []


def test_every_room_has_files() -> None:
    assert all(len(trees(room)) > 3 for room in LAYERS)
    assert importing("components", "vertex_api") and importing("vertex_emulator", "vertex_api")


@pytest.mark.parametrize(
    ("room", "forbidden"),
    [
        ("components", ("vertex_emulator", "tests", "tools")),
        ("vertex_emulator", ("components", "pulumi", "pulumi_gcp", "tests", "tools")),
        ("vertex_api", ("components", "vertex_emulator", "pulumi", "pulumi_gcp", "docker", "yaml", "tests", "tools")),
    ],
)
def test_rooms_import_in_one_direction(room: str, forbidden: tuple[str, ...]) -> None:
    assert importing(room, *forbidden) == []


def test_one_module_locks_files() -> None:
    rooms = ("components", "vertex_api", "vertex_emulator", "tools")
    named = [str(file) for room in rooms for file, _ in trees(room) if ".flock(" in (ROOT / file).read_text()]
    assert named == ["vertex_api/locks.py"]


def test_imports_inside_components_are_relative() -> None:
    """So the same files are `components` in a checkout and `vertex_training` where the package is installed."""
    absolute = [
        f"{file}:{node.lineno}"
        for file, tree in trees("components")
        for node in find_imports(tree)
        if isinstance(node, ast.ImportFrom)
        if not node.level and (node.module or "").partition(".")[0] == "components"
    ]
    assert absolute == []


def folder_of(room: str, file: Path) -> str:
    """The folder that a file belongs to, dotted, or the module itself where it lies at the room's top."""
    inner = file.relative_to(room).with_suffix("").parts
    folder = inner[:-1] if len(inner) > 1 else inner
    return ".".join(folder).removesuffix("__init__")


def folder_graph(room: str) -> dict[str, dict[str, str]]:
    """By folder, the folders that it imports, each with one import as an example."""
    files = {str(file.with_suffix("")).replace("/", ".").removesuffix(".__init__"): file for file, _ in trees(room)}
    graph: dict[str, dict[str, str]] = {folder_of(room, file): {} for file in files.values()}
    for file, tree in trees(room):
        for name in imports(file, tree):
            imported = files.get(name) or files.get(name.rpartition(".")[0])
            if imported and folder_of(room, imported) != folder_of(room, file):
                graph[folder_of(room, file)].setdefault(folder_of(room, imported), f"{file} imports {name}")
    return graph


@pytest.mark.parametrize("room", LAYERS)
def test_folders_import_from_lower_floors_only(room: str) -> None:
    floors = {folder: floor for floor, folders in enumerate(LAYERS[room]) for folder in folders}
    graph = folder_graph(room)
    assert sorted(graph) == sorted(floors)
    upwards = [
        example for folder in graph for other, example in graph[folder].items() if floors[other] >= floors[folder]
    ]
    assert upwards == []


@pytest.mark.parametrize("room", LAYERS)
def test_the_longest_chain_of_folders_is_short(room: str) -> None:
    graph = folder_graph(room)
    floor: dict[str, int] = {}
    for folder in TopologicalSorter(graph).static_order():
        floor[folder] = 1 + max((floor[other] for other in graph[folder]), default=0)
    assert max(floor.values()) <= MAX_FLOORS[room]


def test_the_program_imports_components_only() -> None:
    program = ast.parse((ROOT / "__main__.py").read_text())
    imported = {name.partition(".")[0] for name in imports(Path("__main__.py"), program)}
    assert imported - set(sys.stdlib_module_names) == {"vertex_training"}


PREVIEW = """
import json, pathlib, sys
from vertex_training import Settings, TrainingStack
from vertex_training.images.image import build_context

root = pathlib.Path(sys.argv[1])
included = '["training/images.yaml", "training/digits.yaml"]'
config = {"vertex-training:target": "local", "vertex-training:include": included}
settings = Settings.load_from_config("vertex-training", "local", root, config)
assert settings.jobs
plain, ignoring = sys.argv[2:]
loaded = []
for folder in (plain, ignoring):
    assert build_context(pathlib.Path(folder), {"context": "."}).tag
    loaded.append(sorted(sys.modules))
print(json.dumps(loaded))
"""


def test_preview_loads_no_google_client_docker_or_emulator(tmp_path: Path) -> None:
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
    # Most stacks have no schedules.
    heavy = ("cronsim", "google.auth", "google.api_core", "uvicorn", "starlette", "egobox")
    assert loaded(ignoring, *heavy) == []
    assert [name for name in ignoring if name.startswith("google.cloud.")] == []
    assert loaded(ignoring, "vertex_emulator") == []
    assert loaded(plain, "docker", "requests") == []
    assert loaded(ignoring, "docker", "requests") == []


def exported_by(room: str) -> list[str]:
    """What a room's `__init__` imports, assigns and defines."""
    names: set[str] = set()
    body = ast.parse((ROOT / room / "__init__.py").read_text()).body
    for node in [*body, *(inner for block in body if isinstance(block, ast.If) for inner in block.body)]:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
    return sorted(name for name in names if name == "__version__" or not name.startswith("_"))


@pytest.mark.parametrize("room", LAYERS)
def test_a_room_exports_what_its_all_lists(room: str) -> None:
    exported = getattr(importlib.import_module({"components": "vertex_training"}.get(room, room)), "__all__", [])
    assert exported == sorted(exported)
    assert exported_by(room) == exported


def test_components_export_what_type_checkers_see() -> None:
    """An export is imported when it is first used, from where the block for type checkers imports it."""
    body = ast.parse((ROOT / "components" / "__init__.py").read_text()).body
    (block,) = (node for node in body if isinstance(node, ast.If))
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        module = importlib.import_module("." * node.level + (node.module or ""), "vertex_training")
        for alias in node.names:
            assert getattr(vertex_training, alias.asname or alias.name) is getattr(module, alias.name)


def test_a_module_of_components_loads_without_the_others() -> None:
    """The process of a stack's providers starts the sooner."""
    program = "import sys, vertex_training.jobs.provider; print('vertex_training.stack' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_exports_of_components_are_these() -> None:
    assert vertex_training.__all__ == [
        "Completion",
        "CustomJob",
        "CustomJobArgs",
        "Foundation",
        "HyperparameterTuningJob",
        "HyperparameterTuningJobArgs",
        "JobTemplate",
        "PythonPackage",
        "PythonPackageArgs",
        "Schedule",
        "ScheduleArgs",
        "Settings",
        "TrainingImage",
        "TrainingImageArgs",
        "TrainingPipeline",
        "TrainingPipelineArgs",
        "TrainingStack",
        "TrainingStackArgs",
        "run",
    ]


@pytest.mark.parametrize("room", LAYERS)
def test_every_file_has_a_docstring(room: str) -> None:
    assert [str(file) for file, tree in trees(room) if not ast.get_docstring(tree)] == []
