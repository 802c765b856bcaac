"""States: the ones that end a job are states of the API."""

import typing

from vertex_api import names, types


def test_terminal_states_are_states_of_the_api() -> None:
    enums = [typing.get_args(enum)[0] for enum in (types.JobState, types.PipelineState)]
    assert {state for enum in enums for state in typing.get_args(enum)} >= names.TERMINAL_STATES


def test_job_and_pipeline_states_share_short_names() -> None:
    assert {names.short_state(f"{kind}_STATE_RUNNING") for kind in ("JOB", "PIPELINE")} == {"RUNNING"}


def test_a_job_that_succeeded_has_ended() -> None:
    assert names.SUCCEEDED_STATES < names.TERMINAL_STATES


def test_paused_and_cancelling_are_not_terminal() -> None:
    assert not names.TERMINAL_STATES & {
        *("JOB_STATE_PAUSED", "JOB_STATE_CANCELLING", "JOB_STATE_UPDATING"),
        *("PIPELINE_STATE_PAUSED", "PIPELINE_STATE_CANCELLING"),
    }
