"""What is no YAML is refused in a sentence that says what its writer did, and how to mend it."""

import pytest
import yaml
from vertex_training.schema.yaml_documents import parse_document_value

INDENTED = "is not indented as the keys from line"
COLON = 'a ":" stands where no key ends; write a text with ": " in quotes, and indent keys alike'
ANCHOR = 'a "*" or "&" begins the name of an anchor; if it is a text, write it in quotes'


def said(text: str) -> tuple[int, str]:
    """The line, and the sentence."""
    with pytest.raises(yaml.MarkedYAMLError) as raised:
        parse_document_value(text.encode())
    error = raised.value
    assert error.problem_mark and error.problem
    return error.problem_mark.line + 1, error.problem


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        ("a:\n\t- x\n", 2, "a tab stands here; indent with spaces"),
        ("a:\n  - b: 1\n\tc: 2\n", 3, "a tab stands here; indent with spaces"),
        ("a: {b: ${images.a}}\n", 1, 'in brackets a reference needs quotes; write "${images.a}"'),
        ("a:\n  b: [x, --x=${vars.a}/y, 1]\n", 2, 'in brackets a reference needs quotes; write "--x=${vars.a}/y"'),
        ("a: [${vars.a\n", 1, 'in brackets a reference needs quotes; write "${…}"'),
        ("a: 1\n---\nb: 2\n", 2, "a second document begins here; write one document a file"),
        ("a: @x\n", 1, '"@" cannot begin a value; write the text in quotes'),
        ("a: %x\n", 1, '"%" cannot begin a value; write the text in quotes'),
        ("a: b: c\n", 1, COLON),
        ("a:\n- 1\n b: 2\n", 3, COLON),
        ("a: -\n", 1, 'a "-" cannot stand here: if it belongs to a text, write it in quotes'),
        ("a: [*]\n", 1, ANCHOR),
        ("a: *.py\n", 1, ANCHOR),
        ("a: *b\n", 1, 'a "*" begins the name of an anchor, and there is none of this name; if it is a text'),
        ('a: "\\d"\n', 1, 'a "\\" in double quotes begins an escape; write the text in single quotes'),
        ("a: 1\nb: 'x\nc: 1\n", 4, "the text in quotes that begins in line 2 has no end"),
        ("a: [1, 2\nb: 3\n", 2, "the bracket that opens in line 1 is not closed, or a comma is missing here"),
        ("a: {\n", 2, "a value is missing here, or a bracket is not closed"),
        ("a: {b: }}\n", 1, 'the "}" closes no bracket'),
        ("a: ]\n", 1, 'the "]" closes no bracket'),
        ("a:\n  b: 1\n c: 2\n", 3, f"{INDENTED} 1 on are"),
        ("x: 1\na:\n  b: 1\n  - c\n", 4, f"{INDENTED} 3 on are"),
        ("- a\nb: 1\n", 2, "is indented as the list from line 1 on is, and is no entry of it"),
        ("a: 1\nb\nc: 2\n", 3, 'the key that begins in line 2 has no ":" behind it'),
        ("a: >x\n", 1, "while scanning a block scalar, did not find expected comment or line break"),
        ("a: !x {}\n", 1, "could not determine a constructor for the tag '!x'"),
        ("a: 2026-02-30\n", 1, '2026-02-30 looks like a date or a number and is not one; write "2026-02-30" in quotes'),
        ("a: 1\nb: [x, 0x_]\n", 2, '0x_ looks like a date or a number and is not one; write "0x_" in quotes'),
    ],
)
def test_syntax_errors_are_explained_with_a_fix(text: str, line: int, sentence: str) -> None:
    found, problem = said(text)
    assert (found, problem.startswith(sentence)) == (line, True), problem
