"""States: the ones that end a job are states of the API."""

import typing

from vertex_api import job_states, types


def test_terminal_states_are_states_of_the_api() -> None:
    enums = [typing.get_args(enum)[0] for enum in (types.JobState, types.PipelineState)]
    assert {state for enum in enums for state in typing.get_args(enum)} >= job_states.TERMINAL_STATES


def test_job_and_pipeline_states_share_short_names() -> None:
    assert {job_states.strip_state_prefix(f"{kind}_STATE_RUNNING") for kind in ("JOB", "PIPELINE")} == {"RUNNING"}


def test_a_job_that_succeeded_has_ended() -> None:
    assert job_states.SUCCEEDED_STATES < job_states.TERMINAL_STATES


def test_paused_and_cancelling_are_not_terminal() -> None:
    assert not job_states.TERMINAL_STATES & {
        *("JOB_STATE_PAUSED", "JOB_STATE_CANCELLING", "JOB_STATE_UPDATING"),
        *("PIPELINE_STATE_PAUSED", "PIPELINE_STATE_CANCELLING"),
    }
