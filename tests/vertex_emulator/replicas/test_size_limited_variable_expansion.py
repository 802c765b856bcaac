import tracemalloc
from typing import Any

import pytest

from vertex_emulator.errors import ReplicaCannotStart
from vertex_emulator.replicas.size_limited_variable_expansion import (
    MAX_TEXT_BYTES,
    ContainerTexts,
    escape_references,
    expand_references,
)


def expand_environment(service_variables: dict[str, str], user_env: list[tuple[str, str]]) -> dict[str, str]:
    env = [{"name": name, "value": value} for name, value in user_env]
    return ContainerTexts.expand({"env": env}, service_variables).environment


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(A)/model", "one/model"),
        ("$(A)$(B)", "onetwo"),
        ("$(UNKNOWN)", "$(UNKNOWN)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$one"),
        ("$$$$(A)", "$$(A)"),
        ("$A ${A} $", "$A ${A} $"),
        ("$(A", "$(A"),
        ("$(A B)", "$(A B)"),
    ],
)
def test_references_expand_as_kubernetes_expands_them(text: str, expanded: str) -> None:
    assert expand_references(text, {"A": "one", "B": "two"}) == expanded


def test_a_variable_sees_only_those_before_it() -> None:
    environment = expand_environment(
        {"AIP_MODEL_DIR": "gs://b/model/"},
        [("HERE", "$(AIP_MODEL_DIR)x"), ("EARLY", "$(LATE)"), ("LATE", "$(HERE)!")],
    )
    assert environment["HERE"] == "gs://b/model/x"
    assert environment["EARLY"] == "$(LATE)"
    assert environment["LATE"] == "gs://b/model/x!"


def test_an_expanded_value_is_not_expanded_again() -> None:
    assert expand_environment({}, [("A", "$$(B)"), ("B", "b"), ("C", "$(A)")])["C"] == "$(B)"


@pytest.mark.parametrize("text", ["plain", "$(A)", "$$(A)", "$", "a $(B", "$$$(A)"])
def test_escaped_text_is_what_its_expansion_gives(text: str) -> None:
    assert expand_references(escape_references(text), {"A": "one"}) == text


def tenfold(count: int) -> list[dict[str, str]]:
    """Variables that each hold the last one ten times."""
    first = {"name": "V0", "value": "x" * 10}
    return [first, *({"name": f"V{i}", "value": f"$(V{i - 1})" * 10} for i in range(1, count))]


@pytest.mark.parametrize(
    ("container", "place"),
    [
        ({"env": tenfold(9)}, "the variable V5"),
        ({"env": [{"name": "A", "value": "x" * MAX_TEXT_BYTES}]}, "the variable A"),
        ({"env": tenfold(5), "args": ["ok", "--x=$(V4)$(V4)"]}, 'the argument "--x=$(V4)$(V4)"'),
        ({"env": tenfold(5), "command": ["$(V4)" * 800_000]}, 'the argument "$(V4)$(V4)'),
        ({"args": ["ä" * (MAX_TEXT_BYTES // 2)]}, 'the argument "ää'),
        ({"env": tenfold(5), "args": ["$(V4)"] * 800_000}, "env, command and args are together"),
        ({"args": ["x" * 99] * 800_000}, "env, command and args are together"),
    ],
)
def test_texts_too_long_for_linux_are_rejected(container: dict[str, Any], place: str) -> None:
    tracemalloc.start()
    with pytest.raises(ReplicaCannotStart) as caught:
        ContainerTexts.expand(container, {"RANK": "0"})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert str(caught.value).startswith(place)
    assert "longer than" in str(caught.value)
    assert str(caught.value).count("\n") == 0
    assert len(str(caught.value)) < 300
    assert peak < 60 << 20


def test_texts_as_long_as_linux_takes_are_expanded() -> None:
    value = "x" * (MAX_TEXT_BYTES - len("A=") - 1)
    env = [{"name": "A", "value": value}, {"name": "B", "value": "$(A)"}]
    assert ContainerTexts.expand({"env": env, "args": ["$(A)yy"]}, {}).environment["B"] == value
