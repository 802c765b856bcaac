"""References: found with their place, replaced with their type, and left alone where they are none."""

from typing import Any

import pytest
from vertex_training.schema.interpolation import expand, references, resolve, unclosed

VARS = {"vars": {"epochs": 20, "rate": 0.5, "deep": True, "name": "digits", "list": ["a", 1], "nothing": None}}


@pytest.mark.parametrize("name", VARS["vars"])
def test_a_lone_reference_keeps_the_value_type(name: str) -> None:
    value = resolve(f"${{vars.{name}}}", VARS)
    assert value == VARS["vars"][name]
    assert type(value) is type(VARS["vars"][name])


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("--epochs=${vars.epochs}", "--epochs=20"),
        ("${vars.rate} ", "0.5 "),
        ("--deep=${vars.deep}", "--deep=true"),
        ("a-${vars.name}-b", "a-digits-b"),
        ("--list=${vars.list}", '--list=["a", 1]'),
    ],
)
def test_references_inside_text_become_json_text(text: str, result: str) -> None:
    assert resolve(text, VARS) == result


def test_several_references_in_one_text_are_all_replaced() -> None:
    text = "${vars.name}/${vars.epochs}${vars.epochs}:${vars.rate}"
    assert resolve(text, VARS) == "digits/2020:0.5"
    assert list(references(text)) == [
        ((), "vars.name"),
        ((), "vars.epochs"),
        ((), "vars.epochs"),
        ((), "vars.rate"),
    ]


def test_space_within_the_braces_plays_no_part() -> None:
    assert resolve("${ vars.epochs }", VARS) == 20
    assert list(references("${ vars.epochs }")) == [((), "vars.epochs")]


def test_references_in_all_values_are_replaced() -> None:
    value = {"a": [{"${vars.name}": "${vars.epochs}"}, 3], "b": None}
    assert resolve(value, VARS) == {"a": [{"${vars.name}": 20}, 3], "b": None}


def test_a_reference_to_an_unknown_table_stays() -> None:
    value = ["${secrets.token}", "x${secrets.token}${vars.epochs}", "${vars.unknown}"]
    assert resolve(value, VARS) == ["${secrets.token}", "x${secrets.token}20", "${vars.unknown}"]


def test_inserted_values_are_not_resolved_again() -> None:
    secrets = {"secrets": {"a": "${secrets.b}", "b": "hidden"}}
    assert resolve("${secrets.a} ${secrets.a}", secrets) == "${secrets.b} ${secrets.b}"


def test_every_reference_is_found_with_its_path() -> None:
    value = {"spec": {"args": ["x", "--a=${vars.a}"], "uri": "${images.b}"}, "n": 1}
    assert list(references(value)) == [(("spec", "args", 1), "vars.a"), (("spec", "uri"), "images.b")]


def test_an_escaped_reference_is_only_unescaped() -> None:
    text = "echo $${vars.epochs} ${vars.epochs}"
    assert list(references(text)) == [((), "vars.epochs")]
    assert resolve(text, VARS) == "echo $${vars.epochs} 20"
    assert expand({"args": [resolve(text, VARS), 1]}, {}) == {"args": ["echo ${vars.epochs} 20", 1]}


@pytest.mark.parametrize("text", ["$(MODEL_DIR)/out", "$HOME", "100$", "{x}", "$ {vars.name}", "", "$$(X)"])
def test_what_is_no_reference_passes_through(text: str) -> None:
    assert list(references(text)) == []
    assert expand(resolve(text, VARS), {}) == text


@pytest.mark.parametrize("value", [1, 1.5, True, None])
def test_values_that_are_no_text_pass_through(value: Any) -> None:
    assert list(references(value)) == []
    assert expand(resolve(value, VARS), {}) is value


@pytest.mark.parametrize(
    ("text", "begun"),
    [
        ("--epochs=${vars.epochs", "${vars.epochs"),
        ("${ images.trainer \n", "${ images.trainer"),
        ("${vars.a}${vars.b", "${vars.b"),
        ("${vars.a ${vars.b}", "${vars.a"),
        ("${a.b ${c.d ${e.f}", "${a.b"),
        ("${var.epochs", "${var.epochs"),
    ],
)
def test_an_unclosed_reference_is_found(text: str, begun: str) -> None:
    said = f'"{begun}" is a `${{` without `}}`; close it, or write `$${{` for a literal `${{`'
    assert list(unclosed({"args": ["x", text]})) == [(("args", 1), said)]


@pytest.mark.parametrize(
    "text", ["${vars.a}", "${vars.a} ${vars.b}", "$${vars.a", "${HOME", "${", "US${5.00", "$(vars.a"]
)
def test_other_text_is_no_unclosed_reference(text: str) -> None:
    assert list(unclosed([text])) == []
