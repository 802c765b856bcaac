"""States: the ones that end a job are states of the API."""

import typing

from vertex import states, types


def test_the_states_that_end_a_job_are_states_of_the_api() -> None:
    (known,) = (typing.get_args(part) for part in typing.get_args(types.JobState)[:1])
    assert set(known) >= states.TERMINAL


def test_a_job_that_succeeded_has_ended() -> None:
    assert states.SUCCEEDED < states.TERMINAL


def test_a_job_that_is_stopped_for_a_while_or_being_stopped_has_not_ended() -> None:
    assert not states.TERMINAL & {"JOB_STATE_PAUSED", "JOB_STATE_CANCELLING", "JOB_STATE_UPDATING"}
