"""`vertex-training docs`: pages that messages name, where a project has no folder of them."""

import pytest
from vertex_training.cli import main


def test_a_page_is_printed_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", "google"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("# Google's APIs in your code\n")
    assert page.count("```") >= 4
    # As messages of earlier versions named it.
    assert main(["docs", "docs/google.md"]) == 0
    assert capsys.readouterr().out == page


def test_a_section_ends_where_the_next_begins(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", "google#services-that-are-not-emulated"]) == 0
    section = capsys.readouterr().out
    assert section.startswith("## Services that are not emulated\n")
    assert section.count("\n## ") == 0 and "Credentials of its own" in section
    assert main(["docs", "google#googles-apis-in-your-code"]) == 0
    assert section in capsys.readouterr().out


def test_without_a_name_all_pages_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "google         Google's APIs in your code" in lines
    assert len(lines) > 30 and lines == sorted(lines)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("googl", "docs has no page googl; did you mean google?"),
        ("../README", "docs has no page ../README; known: "),
        ("google#who-the-jobs-is", "google has no section who-the-jobs-is; did you mean who-the-job-is?"),
    ],
)
def test_an_unknown_page_is_one_line(asked: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", asked]) == 2
    assert capsys.readouterr().err.startswith(f"vertex-training: {said}")
