"""The files that a stack includes."""

from pathlib import Path

import pytest
from vertex_training.schema.source import SourceFile
from vertex_training.settings.entries import included

STACK = SourceFile("stacks/Pulumi.dev.yaml")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for name in ("training/b.yaml", "training/a.yml", "training/c.json", "training/notes.md", "training/deep/d.yaml"):
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{}")
    return root


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (["training/b.yaml"], ["training/b.yaml"]),
        (["training"], ["training/a.yml", "training/b.yaml", "training/c.json"]),
        (["training/*.yaml"], ["training/b.yaml"]),
        (["training/**/*"], ["training/a.yml", "training/b.yaml", "training/c.json", "training/deep/d.yaml"]),
        (["training/notes.md"], ["training/notes.md"]),
        (["training/b.yaml", "training", "training/b.yaml"], ["training/b.yaml", "training/a.yml", "training/c.json"]),
        ([], []),
    ],
)
def test_include_takes_files_folders_and_globs(project: Path, patterns: list[str], names: list[str]) -> None:
    files, problems = included(project, STACK, patterns)
    assert (list(files), problems) == (names, [])
    assert all(file == project / name for name, file in files.items())


@pytest.mark.parametrize("pattern", ["training/x.yaml", "training/*.md", "nowhere"])
def test_a_pattern_that_matches_no_file_is_told(project: Path, pattern: str) -> None:
    files, (problem,) = included(project, STACK, ["training/b.yaml", pattern])
    assert list(files) == ["training/b.yaml"]
    assert str(problem) == f'stacks/Pulumi.dev.yaml: include[1]: "{pattern}" matches no file in project/'


def test_absolute_paths_of_the_project_are_shown_as_relative_ones(project: Path) -> None:
    files, _ = included(project, STACK, [str(project / "training/b.yaml")])
    assert files == {"training/b.yaml": project / "training/b.yaml"}
