"""The short form of `python -m tests.faults.kills`, which kills 200 times."""

from tests.faults.kills import compare
from tests.faults.load import items


def test_killed_at_random_moments_under_a_mixed_load_the_results_are_those_of_an_undisturbed_run() -> None:
    disturbed, undisturbed, differences = compare(kills=12, seed=7, at_least=9)
    assert differences == []
    assert len(disturbed.lives) == 12
    assert {item.kind for item in disturbed.items} == {item.kind for item, _ in zip(items(7), range(9), strict=False)}
    assert undisturbed.traces["outputs"]
    assert disturbed.traces["starts"]
