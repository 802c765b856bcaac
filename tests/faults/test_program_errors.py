"""Errors of a program by Pulumi's engine and one SDK, a few: `python -m tests.faults.program_errors` has more."""

from tests.faults import program_errors


def test_errors_leave_the_state_whole() -> None:
    assert program_errors.check(program_errors.OWN_SDK, program_errors.some_cases(), ["up"]) == []
