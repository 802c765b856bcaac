"""Spelling: what is meant is found, and what can be chosen is listed."""

from vertex_api.names import closest_name, did_you_mean, either


def test_the_nearest_name_ignores_case_and_underscores() -> None:
    assert did_you_mean("WORKER_POOL_SPECS", ["scheduling", "workerPoolSpecs"]) == "; did you mean workerPoolSpecs?"
    assert did_you_mean("qqq", ["b", "a"]) == "; known: a, b"
    assert did_you_mean("qqq", []) == ""


def test_a_name_without_similar_names_has_no_closest() -> None:
    assert closest_name("n1-standrad-4", ["n1-standard-4", "n2-standard-4"]) == "n1-standard-4"
    assert closest_name("qqq", ["n1-standard-4"]) is None


def test_choices_are_listed_as_one_says_them() -> None:
    assert either(["a"]) == "a"
    assert either([1, 2]) == "1 or 2"
    assert either(["a", "b", "c"]) == "a, b or c"
