"""Texts of users in Markdown, and messages without paths of the machine."""

import pytest
from vertex_training.review.document import Diagnostic, errors, shorten_paths, warnings
from vertex_training.review.markdown import code, codes, render_markdown
from vertex_training.review.review import build_review

from tests.components.review.recorded_previews import find_step, parse, read_recorded


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("train", "`train`"),
        ("", "` (empty) `"),
        ("a`b", "``a`b``"),
        ("`", "`` ` ``"),
        ("``x```", "```` ``x``` ````"),
        ("@team <b>&amp; [x](y) #1 !2", "`@team <b>&amp; [x](y) #1 !2`"),
        ("two\nlines\r", "`two\\nlines\\u000d`"),
        ("\u202egnp.exe", "`\\u202egnp.exe`"),
        (" x ", "`  x  `"),
    ],
)
def test_code_spans_hold_any_text(text: str, expected: str) -> None:
    assert code(text) == expected


def test_long_lists_are_cut_with_a_count() -> None:
    assert codes(["a", "b", "c"], 2) == "`a`, `b` and 1 more"


def test_names_of_users_inject_nothing_into_a_review() -> None:
    fields = read_recorded("code-edit")
    hostile = "x`\n</details>\n@everyone <img src=x onerror=alert(1)>\n/close\n| a | b"
    step = find_step(fields, "trainer")
    step["newState"]["inputs"]["files"][hostile] = "0" * 12
    find_step(fields, "train")["newState"]["inputs"]["spec"]["displayName"] = hostile
    step["urn"] += hostile
    fields["diagnostics"].append({"severity": "warning", "message": hostile})
    text = render_markdown(build_review(parse(fields)))
    assert text.count("</details>\n") == text.count("<details>")
    own = ("<!--", "###", "**", "- ", "| ", "|--", "Quota", "<details>", "</details>")
    assert [line for line in text.splitlines() if line and not line.startswith(own) and not line[0].isdigit()] == []
    for line in text.splitlines():
        outside = "".join(part for index, part in enumerate(line.split("``")) if index % 2 == 0)
        assert "@everyone" not in outside and "onerror" not in outside


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cannot read /home/jo/team/train.py", "cannot read …/train.py"),
        ("File '/tmp/x-1/__main__.py' is", "File '…/__main__.py' is"),
        (r"C:\Users\jo\train.py is missing", "…/train.py is missing"),
        ("see https://cloud.google.com/vertex-ai/docs", "see https://cloud.google.com/vertex-ai/docs"),
        ("gs://bucket/a/b and projects/1/locations/x", "gs://bucket/a/b and projects/1/locations/x"),
        ("training/jobs.yaml:4: is", "training/jobs.yaml:4: is"),
        ("reads /gcs/bucket/data", "reads /gcs/bucket/data"),
        ("2 / 3 and /", "2 / 3 and /"),
    ],
)
def test_paths_of_the_machine_lose_their_folders(text: str, shown: str) -> None:
    assert shorten_paths(text) == shown


def test_problems_are_listed_one_by_one() -> None:
    messages = [
        "error: 2 problems in what is declared:\n  a.yaml:1: x: is wrong\n  a.yaml:2: y: is wrong\n",
        "error: an unhandled error occurred: program exited with non-zero exit code: 1\n",
        "\x1b[31merror: train: not submitted\x1b[0m",
        'error: Traceback (most recent call last):\n  File "/home/jo/x.py", line 3, in f\n    f()\nValueError: no\n',
    ]
    diagnostics = [Diagnostic("error", message, "") for message in messages]
    assert errors([*diagnostics, *diagnostics, Diagnostic("info", "Cost", "")]) == [
        "a.yaml:1: x: is wrong",
        "a.yaml:2: y: is wrong",
        "train: not submitted",
        "ValueError: no",
    ]
    assert errors(diagnostics[1:2]) == [messages[1].removeprefix("error: ").strip()]
    assert warnings([Diagnostic("warning", "warning: old\n", "train")]) == ["train: old"]
