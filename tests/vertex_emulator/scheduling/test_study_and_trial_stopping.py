import pytest

from tests.vertex_emulator.jobs import tuning_job, tuning_job_spec
from vertex_emulator.database.records import FAILED, SUCCEEDED, Trial
from vertex_emulator.scheduling.study_and_trial_stopping import decide_study_ending_or_none


def trials(states: str) -> list[Trial]:
    """One trial per letter: s(ucceeded), i(nfeasible), a(ctive)."""
    names = {"s": "SUCCEEDED", "i": "INFEASIBLE", "a": "ACTIVE"}
    return [Trial("7", i, names[state], {"x": 0.5}, str(i)) for i, state in enumerate(states, 1)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("states", "allowed", "state"),
    [
        ("", 0, None),
        ("aa", 0, None),
        ("ss", 0, None),
        ("sss", 0, SUCCEEDED),
        ("i", 0, FAILED),
        ("ai", 0, FAILED),
        ("si", 0, None),
        ("sii", 0, FAILED),
        ("ssi", 0, SUCCEEDED),
        ("ia", 2, None),
        ("ii", 2, FAILED),
        ("iss", 2, SUCCEEDED),
    ],
)
def test_a_study_s_end_follows_from_its_trials(states: str, allowed: int, state: str | None) -> None:
    study = tuning_job(tuning_job_spec(trials=3, **({"maxFailedTrialCount": allowed} if allowed else {})))
    found = decide_study_ending_or_none(study, trials(states), 1)
    assert (found.state if found else None) == state
