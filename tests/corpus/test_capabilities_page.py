"""docs/capabilities.md: every row of the list of capabilities has a declaration that is there, and a test that is."""

import re
from pathlib import Path

import pytest

from tests.corpus.specs import FOLDER, specs

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "capabilities.md").read_text()
ROWS = re.findall(r"^\| (\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", PAGE, re.MULTILINE)
CAPABILITIES = 20
HERE = FOLDER.parent / "capabilities"
RUN = "corpus/test_accepted.py::test_requests_follow_the_discovery_document"
RUN_HERE = "engine/test_capabilities.py::test_every_declaration_runs_and_prints_what_it_says"


def declared(cell: str) -> set[Path]:
    """The files that a cell links to."""
    return {(ROOT / "docs" / link).resolve() for link in re.findall(r"\]\(([^)]+)\)", cell)}


def test_every_capability_has_a_row_in_order() -> None:
    numbers = [int(number) for number, *_ in ROWS]
    assert sorted(set(numbers)) == list(range(1, CAPABILITIES + 1))
    assert numbers == sorted(numbers) and len(numbers) == PAGE.count("\n| ") - 1


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}-{row[1][:40]}")
def test_a_row_names_declarations_and_tests_that_exist(row: tuple[str, str, str, str]) -> None:
    _, _, declarations, tests = row
    assert declared(declarations) and [file for file in declared(declarations) if not file.is_file()] == []
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", tests)
    assert len(named) == tests.count("`") // 2 > 0
    assert [(file, name) for file, name in named if f"def {name}(" not in (ROOT / "tests" / file).read_text()] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}-{row[1][:40]}")
def test_rows_name_the_test_that_runs_them(row: tuple[str, str, str, str]) -> None:
    _, _, declarations, tests = row
    clean = {spec.file for spec in specs() if not spec.refused}
    corpus = {file for file in declared(declarations) if file.is_relative_to(FOLDER)}
    assert corpus <= clean
    assert (RUN in tests) == bool(corpus)
    here = {file for file in declared(declarations) if file.is_relative_to(HERE) and file.parent.name != "stacks"}
    assert (RUN_HERE in tests) == bool(here)


def test_the_page_shows_every_declaration_run_here() -> None:
    shown = {file for _, _, declarations, _ in ROWS for file in declared(declarations)}
    assert {file for file in HERE.glob("*.yaml") if file not in shown} == set()


def test_links_of_the_page_lead_somewhere() -> None:
    assert [link for link in re.findall(r"\]\(([^)#]+)", PAGE) if not (ROOT / "docs" / link).exists()] == []
