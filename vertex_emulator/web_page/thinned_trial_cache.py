"""Trials with as many of their measurements as a curve shows; of those that have ended, read once."""

from dataclasses import dataclass, replace

from vertex_emulator.database import Transaction
from vertex_emulator.database.records import Trial

_MAX_POINTS = 20_000  # of all curves together, so that a long study does not outgrow a browser
# Of a curve. The most is more than a plot has room for. Few levels, so that a study that grows is seldom read anew.
_LEVELS = (300, 150, 80, 40, 20)


@dataclass(frozen=True)
class ThinnedTrial:
    """A trial with as many of its measurements as a curve shows, and `measured`, the number of all."""

    trial: Trial
    measured: int


def compute_max_points_per_trial(trial_count: int) -> int:
    """Return how many measurements a curve shows in a study of `trial_count` trials."""
    return next((level for level in _LEVELS if level * trial_count <= _MAX_POINTS), _LEVELS[-1])


def build_thinned_trial(trial: Trial, max_points: int) -> ThinnedTrial:
    """Keep evenly spaced measurements of a trial, the last among them."""
    stride = -(-len(trial.measurements) // max_points) or 1
    # Counted from the end, so that the last one is always there.
    points = trial.measurements[::-1][::stride][::-1]
    return ThinnedTrial(replace(trial, measurements=points), len(trial.measurements))


class ThinnedTrials:
    """The trials of the study that was read last: the measurements of 2,000 trials take seconds to read."""

    def __init__(self) -> None:
        self._latest: tuple[tuple[str, int], dict[int, ThinnedTrial]] = (("", 0), {})

    def list_thinned_trials(self, transaction: Transaction, study_id: str) -> list[ThinnedTrial]:
        """Return the trials of a study by number, thinned as their number demands."""
        trials = transaction.trials.summaries(study_id)
        key = (study_id, compute_max_points_per_trial(len(trials)))
        known_key, ended = self._latest
        if known_key != key:
            ended = {}
            self._latest = (key, ended)
        thinned: list[ThinnedTrial] = []
        for trial in trials:
            shown = ended.get(trial.number)
            if shown is None:
                measurements = transaction.trials.measurements(study_id, trial.number)
                shown = build_thinned_trial(replace(trial, measurements=measurements), key[1])
                if trial.has_ended:
                    ended[trial.number] = shown
            thinned.append(shown)
        return thinned
