"""Spelling: what is meant is found, and what can be chosen is listed."""

from vertex_api.name_suggestions import find_closest_name_or_none, join_with_or, suggestion_or_known_names_text


def test_the_nearest_name_ignores_case_and_underscores() -> None:
    assert (
        suggestion_or_known_names_text("WORKER_POOL_SPECS", ["scheduling", "workerPoolSpecs"])
        == "; did you mean workerPoolSpecs?"
    )
    assert suggestion_or_known_names_text("qqq", ["b", "a"]) == "; known: a, b"
    assert suggestion_or_known_names_text("qqq", []) == ""


def test_a_name_without_similar_names_has_no_closest() -> None:
    assert find_closest_name_or_none("n1-standrad-4", ["n1-standard-4", "n2-standard-4"]) == "n1-standard-4"
    assert find_closest_name_or_none("qqq", ["n1-standard-4"]) is None


def test_choices_are_listed_as_one_says_them() -> None:
    assert join_with_or(["a"]) == "a"
    assert join_with_or([1, 2]) == "1 or 2"
    assert join_with_or(["a", "b", "c"]) == "a, b or c"
