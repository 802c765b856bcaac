"""Files that a user writes: read strictly, within limits, and every problem has its line and says how to mend it."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from typing_extensions import TypedDict
from vertex_training.schema.source import SourceFile, parse

from vertex_api.scalars import String
from vertex_api.validation.shape import canonicalize


def source(text: str | bytes, name: str = "jobs.yaml") -> SourceFile:
    return SourceFile(name, text if isinstance(text, bytes) else text.encode())


def stack(text: str) -> SourceFile:
    return SourceFile("stacks/Pulumi.dev.yaml", text.encode(), "vertex-training:")


def problem_of(source: SourceFile) -> str:
    content, problems = source.parse()
    assert content == {}
    (problem,) = problems
    return str(problem)


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "---\n", "null\n"])
def test_an_empty_file_holds_nothing(text: str) -> None:
    assert source(text).parse() == ({}, [])


def test_json_is_read_as_yaml_is() -> None:
    assert source('{"vars": {"a": [1, true, null, "x"]}}').parse() == (
        {"vars": {"a": [1, True, None, "x"]}},
        [],
    )


def test_a_duplicate_key_names_both_lines() -> None:
    text = "images:\n  digits: {uri: a}\n  other: {uri: b}\n  digits: {uri: c}\n"
    assert problem_of(source(text)) == 'jobs.yaml:4: "digits" is there twice, lines 2 and 4'


def test_keys_are_equal_in_mappings_of_their_own() -> None:
    content, problems = source("images:\n  a: {uri: x}\n  b: {uri: x}\n").parse()
    assert (content, problems) == ({"images": {"a": {"uri": "x"}, "b": {"uri": "x"}}}, [])


def test_merged_keys_can_be_overridden() -> None:
    text = "vars:\n  base: &base {cpu: 1, gpu: 0}\n  big: {<<: *base, gpu: 2}\n"
    assert source(text).parse() == (
        {"vars": {"base": {"cpu": 1, "gpu": 0}, "big": {"cpu": 1, "gpu": 2}}},
        [],
    )


def test_a_duplicate_key_beside_a_merge_is_rejected() -> None:
    text = "vars:\n  base: &base {cpu: 1}\n  big:\n    <<: *base\n    gpu: 2\n    gpu: 3\n"
    assert problem_of(source(text)) == 'jobs.yaml:6: "gpu" is there twice, lines 5 and 6'


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("images:\n  a: b: c\n", 2),
        ("images: {\n", 2),
        ("images:\n\t- x\n", 2),
        ("a: 1\nb: 'unfinished\n", 3),
        ("vars: !unknown {}\n", 1),
        ("a: *nowhere\n", 1),
        ("? [a, b]\n: 1\n", 1),
    ],
)
def test_invalid_yaml_is_reported_with_its_line(text: str, line: int) -> None:
    problem = problem_of(source(text))
    assert problem.startswith(f"jobs.yaml:{line}: ")
    assert len(problem.splitlines()) == 1


def test_undecodable_characters_are_reported_in_one_line() -> None:
    assert problem_of(source(b"a: \x01\n")).startswith("jobs.yaml: is not valid YAML: ")
    assert problem_of(source(b"a: b\nc: caf\xe9\n")) == (
        "jobs.yaml:2: a character is not UTF-8 (the byte 0xe9); save the file as UTF-8"
    )


@pytest.mark.parametrize(
    ("text", "line", "character"),
    [
        ("x: 1\na\u00a0: 1\n", 2, "no-break space"),
        ("a:\u00a0b\n", 1, "no-break space"),
        ("a:\n\u00a0 b: 1\n", 2, "no-break space"),
        ("a:\n  b:\u00a0c\n", 2, "no-break space"),
        ("a:\n  b:\u00a0 {}\n", 2, "no-break space"),
        ("a: \u201cb\u201d\n", 1, "curly quote"),
        ("a: [1, \u201cb\u201d]\n", 1, "curly quote"),
        ("\u201ca\u201d: 1\n", 1, "curly quote"),
        ("a: \u201cb: c\u201d\n", 1, "curly quote"),
        ("a:\u2018b\n", 1, "curly quote"),
        ("a:\u2019b\n", 1, "curly quote"),
        ("a:\u3000b\n", 1, "wide space"),
        ("a\uff1a b\n", 1, "wide colon"),
        ("a\u2028b\n", 1, "line separator"),
    ],
)
def test_a_word_processor_s_character_is_named(text: str, line: int, character: str) -> None:
    problem = problem_of(source(text.encode()))
    assert problem.startswith(f"jobs.yaml:{line}: a {character} (U+")
    assert "; type a " in problem


@pytest.mark.parametrize("text", ["a:\u00a0\n  b: 1\n", "a:\n  b:\u00a0c\n\n  d: 1\n", "a:\n  b:\u202f\n    c: 1\n"])
def test_a_space_that_joins_a_key_to_the_next_line_is_named(text: str) -> None:
    number = next(number for number, line in enumerate(text.splitlines(), 1) if not line.isascii())
    assert f"no-break space (U+{ord(max(text)):04X}) stands in line {number}, as" in problem_of(source(text.encode()))


def test_in_straight_quotes_any_character_is_a_text() -> None:
    text = "a: \"\u201cb\u201d\"\nc: it\u2019s \u201cso\u201d, he said\nd: '\u00a0'\ne: f:\u00a0g\n"
    value, found = source(text.encode()).parse()
    assert (value["a"], value["d"], found) == ("\u201cb\u201d", "\u00a0", [])


def test_json_s_pairs_of_escapes_are_one_character() -> None:
    text = rb'{"a": "\ud83d\ude80", "b": "\\ud83d\\ude80"}'
    assert SourceFile("job.json", text).parse() == ({"a": "\U0001f680", "b": "\\ud83d\\ude80"}, [])


def test_two_documents_in_one_file_are_refused() -> None:
    assert problem_of(source("a: 1\n---\nb: 2\n")).startswith("jobs.yaml:2: ")


@pytest.mark.parametrize("text", ["- a\n", "word\n", "3\n"])
def test_a_file_that_holds_no_object_is_refused(text: str) -> None:
    assert problem_of(source(text)) == "jobs.yaml: must be an object with named fields"


def test_an_alias_to_itself_is_rejected() -> None:
    assert problem_of(source("vars:\n  loop: &loop [*loop]\n")).startswith("jobs.yaml")


def test_a_file_that_is_gone_is_reported(tmp_path: Path) -> None:
    _, content, (problem,) = SourceFile.read(tmp_path / "x.yaml", "x.yaml")
    assert (content, str(problem)) == ({}, "x.yaml: cannot be read: No such file or directory")


TEXT = """\
vars: {epochs: 5}
customJobs:
  digits:
    job_spec:
      workerPoolSpecs:
        - container_spec:
            imageUri: x
            args:
              - a
              - b
"""
POOL = ("customJobs", "digits", "jobSpec", "workerPoolSpecs", 0)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("vars", "epochs"), 1),
        (("customJobs",), 2),
        (("customJobs", "digits"), 3),
        (("customJobs", "digits", "jobSpec"), 4),
        ((*POOL, "containerSpec"), 6),
        ((*POOL, "containerSpec", "imageUri"), 7),
        ((*POOL, "containerSpec", "args", 1), 10),
        ((*POOL, "containerSpec", "args", 7), 8),
        ((*POOL, "replicaCount"), 6),
    ],
)
def test_a_place_is_the_deepest_existing_key(path: tuple[str | int, ...], line: int) -> None:
    assert source(TEXT).line(path) == f"jobs.yaml:{line}"


def test_the_place_of_missing_keys_is_the_file() -> None:
    assert source(TEXT).line(("images", "a")) == "jobs.yaml"
    assert SourceFile("gone.yaml").line(("images",)) == "gone.yaml"


def test_stack_keys_are_shown_with_their_namespace() -> None:
    text = "config:\n  gcp:region: a\n  vertex-training:vars:\n    epochs: 5\n"
    problem = stack(text).problem(("vars", "epochs"), "is odd")
    assert str(problem) == "stacks/Pulumi.dev.yaml:4: vertex-training:vars.epochs: is odd"
    assert stack(text).line(("region",)) == "stacks/Pulumi.dev.yaml:1"


def test_stack_values_are_quoted_as_written() -> None:
    text = "config:\n  vertex-training:labels:\n    python: 3.10\n"
    problem = stack(text).problem(("labels", "python"), '3.1 is not a string; write "3.1" in quotes')
    assert problem.place == "stacks/Pulumi.dev.yaml:3"
    assert problem.message == '3.10 is read as the number 3.1; write "3.10" in quotes'


class Texts(TypedDict, total=False):
    """Texts in a list and behind a name."""

    args: list[String]
    env: dict[str, String]


def misread(text: str) -> list[str]:
    """What is wrong with a document of texts, as its writer is told."""
    _, problems = canonicalize(Texts, parse(text.encode()))
    return [source(text).problem(each.path, each.message).message for each in problems]


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
    assert misread(f"args:\n  - a\n  - {written}\n") == [problem]


@pytest.mark.parametrize("written", ["3.10", "no", "12:30", "010", "1_000", "2026-01-31T12:00:00Z", "~"])
def test_the_advice_makes_the_text_that_was_written(written: str) -> None:
    (problem,) = misread(f"args:\n  - {written}\n")
    advice = problem.partition("write ")[2].removesuffix(" in quotes")
    value: Any = parse(f"args: [{advice}]\n".encode())
    assert value == {"args": [written]}


def test_other_messages_are_left_unchanged() -> None:
    message = '3.1 is not a string; write "3.1" in quotes'
    file = source("args: [3.10, '3.10']\n")
    assert file.problem(("args", 0), "is odd").message == "is odd"
    assert [file.problem(("args", index), message).message for index in (1, 7)] == [message, message]
    assert source("").problem(("args",), "is odd").message == "is odd"


def test_merged_keys_are_found_at_their_source() -> None:
    file = source("a: &a {A: 3.10}\nb: &b {B: 1}\nenv:\n  C: x\n  <<: [*a, *b]\n")
    lines = [file.line(("env", name)) for name in ("A", "B", "C", "D")]
    assert lines == [f"jobs.yaml:{line}" for line in (1, 2, 4, 3)]
    problem = file.problem(("env", "A"), '3.1 is not a string; write "3.1" in quotes')
    assert problem.message == '3.10 is read as the number 3.1; write "3.10" in quotes'


INDENTED = "is not indented as the keys from line"
COLON = 'a ":" stands where no key ends; write a text with ": " in quotes, and indent keys alike'
ANCHOR = 'a "*" or "&" begins the name of an anchor; if it is a text, write it in quotes'


def explained(text: str) -> tuple[int, str]:
    """The line, and the sentence."""
    with pytest.raises(yaml.MarkedYAMLError) as raised:
        parse(text.encode())
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
    found, problem = explained(text)
    assert (found, problem.startswith(sentence)) == (line, True), problem


LIST, MERGED = "[{}]", "{{<<: [{}]}}"


def nested_aliases(form: str, levels: int) -> str:
    """Anchors that each hold the last one ten times."""
    lines = ["x-0: &a0 {k: v}"]
    lines += [f"x-{i}: &a{i} {form.format(', '.join([f'*a{i - 1}'] * 10))}" for i in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (nested_aliases(LIST, 9), 'jobs.yaml:5: the aliases *a4 repeat what the anchor "&a4" marks'),
        (nested_aliases(MERGED, 9), 'jobs.yaml:5: the aliases *a4 repeat what the anchor "&a4" marks'),
        ("vars:\n  a: &a [x, x]\n  b: [" + "*a, " * 100_000 + "]", "jobs.yaml:2: the aliases *a repeat"),
    ],
)
def test_aliases_that_repeat_too_much_are_rejected(text: str, place: str) -> None:
    problem = problem_of(source(text))
    assert problem.startswith(place)
    assert problem.endswith("more than 100000 values; write out what differs, or use fewer aliases")


def test_lines_are_not_sought_through_excessive_aliases() -> None:
    file = stack(nested_aliases(MERGED, 9))
    assert (
        str(file.problem(("target",), "is required")) == "stacks/Pulumi.dev.yaml: vertex-training:target: is required"
    )


def test_aliases_within_the_limit_are_read() -> None:
    content, problems = source(nested_aliases(LIST, 4)).parse()
    assert problems == []
    assert content["x-3"][9][9][9] == {"k": "v"}


@pytest.mark.parametrize(
    "text",
    [
        "vars: " + "[" * 100_000,
        "vars: " + "[" * 100_000 + "]" * 100_000,
        "- " * 100_000 + "x",
        "{a: " * 100_000 + "1" + "}" * 100_000,
        "\n".join(["x-0: &a0 [v]", *(f"x-{i}: &a{i} [*a{i - 1}]" for i in range(1, 200))]),
    ],
)
def test_deep_documents_are_rejected(text: str) -> None:
    assert "nests more than 100 deep; write it with fewer levels" in problem_of(source(text))


def test_lines_of_many_keys_are_found() -> None:
    file = source("\n".join(f"key_{i}: 1" for i in range(20_000)))
    assert [file.line((f"key{i}",)) for i in range(1_000)] == [f"jobs.yaml:{i}" for i in range(1, 1_001)]
