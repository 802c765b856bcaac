"""Spelling: what is meant is found, and what can be chosen is listed."""

from vertex_api.spelling import choices, closest, nearest


def test_the_nearest_name_ignores_case_and_underscores() -> None:
    assert nearest("WORKER_POOL_SPECS", ["scheduling", "workerPoolSpecs"]) == "; did you mean workerPoolSpecs?"
    assert nearest("qqq", ["b", "a"]) == "; known: a, b"
    assert nearest("qqq", []) == ""


def test_the_closest_name_is_none_where_none_is_like_it() -> None:
    assert closest("n1-standrad-4", ["n1-standard-4", "n2-standard-4"]) == "n1-standard-4"
    assert closest("qqq", ["n1-standard-4"]) is None


def test_choices_are_listed_as_one_says_them() -> None:
    assert choices(["a"]) == "a"
    assert choices([1, 2]) == "1 or 2"
    assert choices(["a", "b", "c"]) == "a, b or c"
