"""The states of jobs and training pipelines, as the API names them. Both have the same states under other prefixes."""

_JOB, _PIPELINE = "JOB_STATE_", "PIPELINE_STATE_"
_JOBS_SUCCEEDED = ("SUCCEEDED", "PARTIALLY_SUCCEEDED")
_JOBS_ENDED = (*_JOBS_SUCCEEDED, "FAILED", "CANCELLED", "EXPIRED")

TERMINAL_STATES = frozenset(
    [_JOB + state for state in _JOBS_ENDED] + [_PIPELINE + state for state in ("SUCCEEDED", "FAILED", "CANCELLED")]
)
"""The states that never change again. PAUSED is not one: such a job can be resumed."""

SUCCEEDED_STATES = frozenset([*(_JOB + state for state in _JOBS_SUCCEEDED), f"{_PIPELINE}SUCCEEDED"])


def strip_state_prefix(state: str) -> str:
    """Return a state of a job or a pipeline without its prefix: `RUNNING`."""
    return state.removeprefix(_JOB).removeprefix(_PIPELINE)
