"""The short form of `python -m tests.faults.kills`, which kills 200 times."""

from tests.faults.kills import compare
from tests.faults.load import items


def test_killing_the_emulator_does_not_change_results() -> None:
    disturbed, undisturbed, differences = compare(kills=7, seed=7, at_least=11)
    assert differences == []
    assert len(disturbed.kills_ready) == 7
    assert {item.kind for item in disturbed.items} == {item.kind for item, _ in zip(items(7), range(11), strict=False)}
    assert undisturbed.traces["outputs"]
    assert disturbed.traces["starts"]
