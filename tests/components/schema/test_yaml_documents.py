"""A problem of a value is told by what stands in the document, not by what YAML has made of it."""

from typing import Any

import pytest
from typing_extensions import TypedDict
from vertex_training.schema.yaml_documents import (
    compose_root_node_or_none,
    find_deepest_line_or_none,
    improve_message_if_misread,
    parse_document_value,
)

from vertex_api.scalar_types import String
from vertex_api.validation.shape_validation import canonicalize_and_find_shape_problems


class Texts(TypedDict, total=False):
    """Texts in a list and behind a name."""

    args: list[String]
    env: dict[str, String]


def said(text: str) -> list[str]:
    """What is wrong with a document of texts, as its writer is told."""
    content = text.encode()
    _, problems = canonicalize_and_find_shape_problems(Texts, parse_document_value(content))
    return [
        improve_message_if_misread(compose_root_node_or_none(content), each.path, each.message) for each in problems
    ]


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("3.10", '3.10 is read as the number 3.1; write "3.10" in quotes'),
        ("no", 'no is read as false; write "no" in quotes'),
        ("Yes", 'Yes is read as true; write "Yes" in quotes'),
        ("off", 'off is read as false; write "off" in quotes'),
        ("12:30", '12:30 is read as the number 750; write "12:30" in quotes'),
        ("010", '010 is read as the number 8; write "010" in quotes'),
        ("1_000", '1_000 is read as the number 1000; write "1_000" in quotes'),
        ("0x1F", '0x1F is read as the number 31; write "0x1F" in quotes'),
        (
            "2026-01-31 12:00:00",
            '2026-01-31 12:00:00 is not a string; write "2026-01-31 12:00:00" in quotes',
        ),
        (
            "2026-01-31T12:00:00Z",
            '2026-01-31T12:00:00Z is read as 2026-01-31 12:00:00+00:00; write "2026-01-31T12:00:00Z" in quotes',
        ),
        ("2026-01-31", '2026-01-31 is not a string; write "2026-01-31" in quotes'),
        ("~", '~ is read as null; write "~" in quotes'),
        ("", 'is empty, which is read as null; write "" for an empty text, or take it out'),
        ("null", 'null is not a string; write "" for an empty text, or "null" in quotes'),
        ("5", '5 is not a string; write "5" in quotes'),
        ("true", 'true is not a string; write "true" in quotes'),
        ("{a: 1}", '{"a": 1} is not a string'),
    ],
)
def test_values_that_are_not_text_are_quoted_unchanged(written: str, problem: str) -> None:
    assert said(f"args:\n  - a\n  - {written}\n") == [problem]


@pytest.mark.parametrize("written", ["3.10", "no", "12:30", "010", "1_000", "2026-01-31T12:00:00Z", "~"])
def test_the_advice_makes_the_text_that_was_written(written: str) -> None:
    (problem,) = said(f"args:\n  - {written}\n")
    advice = problem.partition("write ")[2].removesuffix(" in quotes")
    value: Any = parse_document_value(f"args: [{advice}]\n".encode())
    assert value == {"args": [written]}


def test_other_messages_are_left_unchanged() -> None:
    nodes = compose_root_node_or_none(b"args: [3.10, '3.10']\n")
    assert improve_message_if_misread(nodes, ("args", 0), "is odd") == "is odd"
    assert improve_message_if_misread(nodes, ("args", 1), '3.1 is not a string; write "3.1" in quotes').startswith(
        "3.1 is not"
    )
    assert improve_message_if_misread(nodes, ("args", 7), '3.1 is not a string; write "3.1" in quotes').startswith(
        "3.1 is not"
    )
    assert improve_message_if_misread(None, ("args",), "is odd") == "is odd"


def test_merged_keys_are_found_at_their_source() -> None:
    text = "a: &a {A: 3.10}\nb: &b {B: 1}\nenv:\n  C: x\n  <<: [*a, *b]\n"
    nodes = compose_root_node_or_none(text.encode())
    assert [find_deepest_line_or_none(nodes, ("env", name)) for name in ("A", "B", "C", "D")] == [1, 2, 4, 3]
    message = '3.1 is not a string; write "3.1" in quotes'
    assert (
        improve_message_if_misread(nodes, ("env", "A"), message)
        == '3.10 is read as the number 3.1; write "3.10" in quotes'
    )
