"""Files that a user writes: read strictly, and every problem has its line."""

from pathlib import Path

import pytest
from vertex_training.schema.source_file import SourceFile, load_source_file_content_and_problems


def source(text: str | bytes, name: str = "jobs.yaml") -> SourceFile:
    return SourceFile(name, text if isinstance(text, bytes) else text.encode())


def stack(text: str) -> SourceFile:
    return SourceFile("stacks/Pulumi.dev.yaml", text.encode(), "vertex-training:")


def problem_of(source: SourceFile) -> str:
    content, problems = source.parse_content_and_problems()
    assert content == {}
    (problem,) = problems
    return str(problem)


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "---\n", "null\n"])
def test_an_empty_file_holds_nothing(text: str) -> None:
    assert source(text).parse_content_and_problems() == ({}, [])


def test_json_is_read_as_yaml_is() -> None:
    assert source('{"vars": {"a": [1, true, null, "x"]}}').parse_content_and_problems() == (
        {"vars": {"a": [1, True, None, "x"]}},
        [],
    )


def test_a_duplicate_key_names_both_lines() -> None:
    text = "images:\n  digits: {uri: a}\n  other: {uri: b}\n  digits: {uri: c}\n"
    assert problem_of(source(text)) == 'jobs.yaml:4: "digits" is there twice, lines 2 and 4'


def test_keys_are_equal_in_mappings_of_their_own() -> None:
    content, problems = source("images:\n  a: {uri: x}\n  b: {uri: x}\n").parse_content_and_problems()
    assert (content, problems) == ({"images": {"a": {"uri": "x"}, "b": {"uri": "x"}}}, [])


def test_merged_keys_can_be_overridden() -> None:
    text = "vars:\n  base: &base {cpu: 1, gpu: 0}\n  big: {<<: *base, gpu: 2}\n"
    assert source(text).parse_content_and_problems() == (
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


@pytest.mark.parametrize("text", [b"\x80\x81", b"a: \xe9\n", b"a: \x01\n"])
def test_undecodable_bytes_are_reported_in_one_line(text: bytes) -> None:
    problem = problem_of(source(text))
    assert problem.startswith("jobs.yaml")
    assert "is not valid YAML" in problem
    assert len(problem.splitlines()) == 1


def test_two_documents_in_one_file_are_refused() -> None:
    assert problem_of(source("a: 1\n---\nb: 2\n")).startswith("jobs.yaml:2: ")


@pytest.mark.parametrize("text", ["- a\n", "word\n", "3\n"])
def test_a_file_that_holds_no_object_is_refused(text: str) -> None:
    assert problem_of(source(text)) == "jobs.yaml: must be an object with named fields"


def test_an_alias_to_itself_is_rejected() -> None:
    assert problem_of(source("vars:\n  loop: &loop [*loop]\n")).startswith("jobs.yaml")


def test_a_file_that_is_gone_is_reported(tmp_path: Path) -> None:
    _, content, (problem,) = load_source_file_content_and_problems(tmp_path / "x.yaml", "x.yaml")
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
    assert source(TEXT).format_file_and_line(path) == f"jobs.yaml:{line}"


def test_the_place_of_missing_keys_is_the_file() -> None:
    assert source(TEXT).format_file_and_line(("images", "a")) == "jobs.yaml"
    assert SourceFile("gone.yaml").format_file_and_line(("images",)) == "gone.yaml"


def test_stack_keys_are_shown_with_their_namespace() -> None:
    text = "config:\n  gcp:region: a\n  vertex-training:vars:\n    epochs: 5\n"
    problem = stack(text).create_problem(("vars", "epochs"), "is odd")
    assert str(problem) == "stacks/Pulumi.dev.yaml:4: vertex-training:vars.epochs: is odd"
    assert stack(text).format_file_and_line(("region",)) == "stacks/Pulumi.dev.yaml:1"


def test_stack_values_are_quoted_as_written() -> None:
    text = "config:\n  vertex-training:labels:\n    python: 3.10\n"
    problem = stack(text).create_problem(("labels", "python"), '3.1 is not a string; write "3.1" in quotes')
    assert problem.place == "stacks/Pulumi.dev.yaml:3"
    assert problem.message == '3.10 is read as the number 3.1; write "3.10" in quotes'
