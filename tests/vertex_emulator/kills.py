"""A process that is killed at every one of its steps, one after the other."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.vertex_emulator.fakes import Clock, Emulator, Killed, Machine, use_clock

T = TypeVar("T")
Outcome = Callable[[], Any]


def beginning(
    scenario: Callable[[Emulator], T],
    outcome: Callable[[Emulator, T], Any],
    monkeypatch: pytest.MonkeyPatch,
    **machine: Any,
) -> Callable[[Path], tuple[Emulator, Outcome]]:
    """Return what begins a scenario on a `machine` in memory; the outcome is of what the scenario has submitted."""

    def begin(folder: Path) -> tuple[Emulator, Outcome]:
        clock = Clock()
        use_clock(clock, monkeypatch)
        emulator = Emulator(folder, Machine(clock, **machine))
        submitted = scenario(emulator)
        return emulator, lambda: outcome(emulator, submitted)

    return begin


def assert_that_no_kill_changes_the_end(folder: Path, begin: Callable[[Path], tuple[Emulator, Outcome]]) -> None:
    """Run to the end undisturbed, then killed at step 0, 1, 2 … and started again; the outcome is always the same.

    `begin` makes an emulator in a folder of its own and submits what it is to do; the outcome is all that must not
    depend on when the process was killed.
    """
    undisturbed, _ = _run(folder / "undisturbed", begin, None)
    steps, was_killed = 0, True
    while was_killed:
        outcome, was_killed = _run(folder / str(steps), begin, steps)
        assert outcome == undisturbed, f"killed at step {steps}"
        steps += 1
    assert steps > 2


def _run(folder: Path, begin: Callable[[Path], tuple[Emulator, Outcome]], steps: int | None) -> tuple[Any, bool]:
    emulator, outcome = begin(folder)
    emulator.machine.fuse.left = steps
    was_killed = False
    try:
        emulator.run()
        emulator.run_ready_steps()
    except Killed:
        was_killed = True
        emulator.machine.fuse.left = None
        emulator.database.close()
        emulator.start()
        emulator.run()
        emulator.run_ready_steps()
    found = outcome()
    emulator.database.close()
    return found, was_killed
