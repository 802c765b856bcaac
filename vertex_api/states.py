"""States of jobs and training pipelines, as the API names them: a pipeline's are a job's under names of its own."""

_JOB, _PIPELINE = "JOB_STATE_", "PIPELINE_STATE_"
_JOBS_SUCCEEDED = ("SUCCEEDED", "PARTIALLY_SUCCEEDED")
_JOBS_ENDED = (*_JOBS_SUCCEEDED, "FAILED", "CANCELLED", "EXPIRED")

TERMINAL_STATES = frozenset(
    [_JOB + state for state in _JOBS_ENDED] + [_PIPELINE + state for state in ("SUCCEEDED", "FAILED", "CANCELLED")]
)
"""No further change comes. PAUSED is left out: such a job can be resumed."""

SUCCEEDED_STATES = frozenset([*(_JOB + state for state in _JOBS_SUCCEEDED), f"{_PIPELINE}SUCCEEDED"])


def strip_state_prefix(state: str) -> str:
    """A state without what begins its name: `RUNNING`, whether of a job or of a pipeline."""
    return state.removeprefix(_JOB).removeprefix(_PIPELINE)
