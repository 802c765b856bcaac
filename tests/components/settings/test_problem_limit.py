"""A preview stops at a hundred problems, however many files and keys have them, and says so once."""

from collections.abc import Callable
from pathlib import Path

import pytest
from vertex_training.errors import DeclarationErrors
from vertex_training.settings.settings import Settings

from vertex_api.errors import MAX_PROBLEMS, MORE_PROBLEMS

COUNT = 4_000
JOB = """\
customJobs:
  {name}:
    jobSpec:
      workerPoolSpecs:
      - machineSpec: {{machineType: n1-standard-4}}
"""


def unknown_keys(number: int) -> str:
    return JOB.format(name=f"job{number}") + "".join(f"        key{i}: 1\n" for i in range(COUNT))


def bad_names(number: int) -> str:
    return "images:\n" + "".join(f"  BAD_{number}_{i}: {{uri: x}}\n" for i in range(COUNT))


def unknown_sections(number: int) -> str:
    return "".join(f"section{number}x{i}: {{}}\n" for i in range(COUNT))


def unknown_references(number: int) -> str:
    args = "\n".join(f"          - ${{vars.a{i}}}" for i in range(COUNT))
    return f"{JOB.format(name=f'job{number}')}        containerSpec:\n          imageUri: x\n          args:\n{args}\n"


def bad_labels(number: int) -> str:
    labels = "".join(f"      K{i}: V\n" for i in range(COUNT))
    return f"{JOB.format(name=f'job{number}')}        containerSpec: {{imageUri: x}}\n    labels:\n{labels}"


def forbidden_vars(number: int) -> str:
    return "vars:\n" + "".join(f"  v{number}x{i}: ${{vars.other}}\n" for i in range(COUNT))


@pytest.mark.parametrize(
    "write", [unknown_keys, bad_names, unknown_sections, unknown_references, bad_labels, forbidden_vars]
)
def test_a_preview_stops_at_a_hundred_problems(tmp_path: Path, write: Callable[[int], str]) -> None:
    for number in range(2):
        (tmp_path / f"{number}.yaml").write_text(write(number))
    config = {"vertex-training:target": "local", "vertex-training:include": '["0.yaml", "1.yaml"]'}
    with pytest.raises(DeclarationErrors) as caught:
        Settings.load_from_config("vertex-training", "dev", tmp_path, config)
    heading, *lines, last = str(caught.value).splitlines()
    assert heading == f"{MAX_PROBLEMS} problems in what is declared:"
    assert len(lines) == MAX_PROBLEMS == len(set(lines))
    assert last == f"  {MORE_PROBLEMS}"
    assert all(line.startswith("  0.yaml:") for line in lines)


def test_a_hundred_problems_of_several_files_are_all(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"{number}.yaml").write_text("".join(f"section{number}x{i}: {{}}\n" for i in range(25)))
    config = {"vertex-training:target": "local", "vertex-training:include": '["."]'}
    with pytest.raises(DeclarationErrors) as caught:
        Settings.load_from_config("vertex-training", "dev", tmp_path, config)
    assert len(str(caught.value).splitlines()) == 1 + MAX_PROBLEMS
