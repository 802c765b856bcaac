"""Stages: jobs on one level can run at the same time, and none comes after itself."""

from typing import Any

import pytest
from vertex_training.jobs.dependency_graph import compute_level_by_job, find_cycles


@pytest.mark.parametrize(
    ("above", "found"),
    [
        ({}, {}),
        ({"a": [], "b": []}, {"a": 0, "b": 0}),
        ({"c": ["b"], "b": ["a"], "a": []}, {"a": 0, "b": 1, "c": 2}),
        ({"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}, {"a": 0, "b": 1, "c": 1, "d": 2}),
        ({"d": ["a", "c"], "c": ["b"], "b": ["a"], "a": []}, {"a": 0, "b": 1, "c": 2, "d": 3}),
    ],
    ids=["none", "apart", "a chain", "a diamond", "a short cut"],
)
def test_a_level_is_the_longest_path_length(above: dict[str, Any], found: dict[str, int]) -> None:
    assert compute_level_by_job(above) == found


def test_a_chain_of_1000_has_1000_levels() -> None:
    above: dict[str, list[str]] = {str(at): [str(at - 1)] if at else [] for at in reversed(range(1000))}
    assert compute_level_by_job(above)["999"] == 999


@pytest.mark.parametrize(
    ("above", "found"),
    [
        ({"a": [], "b": ["a"]}, []),
        ({"a": ["a"]}, [["a", "a"]]),
        ({"a": ["b"], "b": ["a"]}, [["a", "b", "a"]]),
        ({"b": ["c"], "a": ["b"], "c": ["a"]}, [["b", "c", "a", "b"]]),
        ({"x": ["a"], "a": ["b"], "b": ["a"]}, [["a", "b", "a"]]),
        ({"a": ["b"], "b": ["a"], "c": ["d", "c"], "d": ["c"]}, [["a", "b", "a"], ["c", "c"], ["c", "d", "c"]]),
    ],
    ids=["none", "itself", "two", "three, from the first declared", "with one that is not in it", "several"],
)
def test_each_cycle_is_named_once(above: dict[str, Any], found: Any) -> None:
    assert sorted(find_cycles(above)) == found
