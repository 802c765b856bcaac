"""Documents of few bytes that stand for much: refused in no time, with file, line and anchor."""

import pytest
from vertex_training.schema.source_file import SourceFile
from vertex_training.schema.yaml_documents import compose_root_node_or_none, find_deepest_line_or_none

LIST, MERGED = "[{}]", "{{<<: [{}]}}"


def nested_aliases(form: str, levels: int) -> str:
    """Anchors that each hold the last one ten times."""
    lines = ["x-0: &a0 {k: v}"]
    lines += [f"x-{i}: &a{i} {form.format(', '.join([f'*a{i - 1}'] * 10))}" for i in range(1, levels)]
    return "\n".join(lines)


def problem_of(text: str) -> str:
    content, (problem,) = SourceFile("jobs.yaml", text.encode()).parse_content_and_problems()
    assert content == {}
    return str(problem)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (nested_aliases(LIST, 9), 'jobs.yaml:5: the aliases *a4 repeat what the anchor "&a4" marks'),
        (nested_aliases(MERGED, 9), 'jobs.yaml:5: the aliases *a4 repeat what the anchor "&a4" marks'),
        ("vars:\n  a: &a [x, x]\n  b: [" + "*a, " * 100_000 + "]", "jobs.yaml:2: the aliases *a repeat"),
    ],
)
def test_aliases_that_repeat_too_much_are_rejected(text: str, place: str) -> None:
    problem = problem_of(text)
    assert problem.startswith(place)
    assert problem.endswith("more than 100000 values; write out what differs, or use fewer aliases")


def test_lines_are_not_sought_through_excessive_aliases() -> None:
    file = SourceFile("stacks/Pulumi.dev.yaml", nested_aliases(MERGED, 9).encode(), "vertex-training:")
    assert (
        str(file.create_problem(("target",), "is required"))
        == "stacks/Pulumi.dev.yaml: vertex-training:target: is required"
    )


def test_aliases_within_the_limit_are_read() -> None:
    content, problems = SourceFile("jobs.yaml", nested_aliases(LIST, 4).encode()).parse_content_and_problems()
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
    assert "nests more than 100 deep; write it with fewer levels" in problem_of(text)


def test_lines_of_many_keys_are_found() -> None:
    root = compose_root_node_or_none("\n".join(f"key_{i}: 1" for i in range(20_000)).encode())
    assert [find_deepest_line_or_none(root, (f"key{i}",)) for i in range(1_000)] == list(range(1, 1_001))
