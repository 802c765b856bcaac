import pytest

from vertex_emulator.replicas.variable_expansion import escape_references, expand_environment, expand_references


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
