"""Shortages of quota: which jobs need more than is granted."""

from vertex_api.estimates.quota import UNLIMITED, Shortage, find_shortages

NEEDED = {"large": {"cpus": 96, "l4": 8}, "small": {"cpus": 4}, "search": {"cpus": 48, "l4": 4}}


def test_a_job_above_the_grant_is_named() -> None:
    assert find_shortages(NEEDED, {"cpus": 2200, "l4": 4}) == [Shortage("l4", 4, 12, {"large": 8}, True)]


def test_jobs_that_fit_only_one_by_one_are_told_apart() -> None:
    (shortage,) = find_shortages(NEEDED, {"cpus": 100, "l4": UNLIMITED})
    assert shortage == Shortage("cpus", 100, 148, {"large": 96, "search": 48, "small": 4}, False)
    assert list(shortage.needed_by_job) == ["large", "search", "small"]


def test_a_grant_of_zero_is_a_shortage_for_all() -> None:
    (shortage,) = find_shortages(NEEDED, {"l4": 0})
    assert (shortage.needed_by_job, shortage.is_by_job) == ({"large": 8, "search": 4}, True)


def test_enough_or_unknown_grants_are_no_shortage() -> None:
    assert find_shortages(NEEDED, {"cpus": 148, "tpu_v3": 0}) == []
