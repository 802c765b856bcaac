import pytest

from vertex_emulator.search import EndedTrial
from vertex_emulator.search.study_stopping import find_study_stopping_reason

SECOND = 10**9
CREATED = 1_700_000_000 * SECOND


def study(*extra_metrics, **config):
    metrics = [{"metricId": "acc", "goal": "MAXIMIZE"}, *extra_metrics]
    return {"metrics": metrics, "parameters": [], "studyStoppingConfig": config}


def ended(*values):
    """Trials that ended one a minute with `acc`; None is an infeasible one."""
    return [
        EndedTrial(CREATED + minute * 60 * SECOND, None if value is None else {"acc": value})
        for minute, value in enumerate(values, 1)
    ]


def reason(study_spec, trials=(), seconds=0.0, count=None):
    found = list(trials)
    now = CREATED + int(seconds * SECOND)
    return find_study_stopping_reason(study_spec, len(found) if count is None else count, found, CREATED, now)


def test_a_study_without_conditions_goes_on():
    assert reason({"metrics": [{"metricId": "acc"}], "parameters": []}, ended(*[0.5] * 99), 1e9) is None
    assert reason(study(shouldStopAsap=True), ended(*[0.5] * 99), 1e9) is None


@pytest.mark.parametrize(("trials", "stopped"), [(4, False), (5, True), (6, True)])
def test_max_num_trials_counts_running_and_failed_trials(trials, stopped):
    found = reason(study(maxNumTrials=5), ended(0.5, None), count=trials)
    assert (found is not None and "maxNumTrials" in found) is stopped


@pytest.mark.parametrize(("seconds", "stopped"), [(59, False), (60, True)])
@pytest.mark.parametrize("constraint", [{"maxDuration": "60s"}, {"endTime": "2023-11-14T22:14:20Z"}])
def test_maximum_runtime_is_a_duration_or_a_time(constraint, seconds, stopped):
    # 1,700,000,000 seconds are 2023-11-14T22:13:20Z.
    assert (reason(study(maximumRuntimeConstraint=constraint), seconds=seconds) is not None) is stopped


@pytest.mark.parametrize(("seconds", "stopped"), [(59, False), (60, True)])
def test_the_minimum_runtime_blocks_every_other_condition(seconds, stopped):
    config = study(minimumRuntimeConstraint={"maxDuration": "60s"}, maxNumTrials=1)
    assert (reason(config, ended(0.5), seconds) is not None) is stopped


@pytest.mark.parametrize(("values", "stopped"), [((0.5, None, None), False), ((0.5, 0.4, None), True)])
def test_min_num_trials_blocks_every_other_condition(values, stopped):
    config = study(minNumTrials=2, maxNumTrials=1, maximumRuntimeConstraint={"maxDuration": "1s"})
    assert (reason(config, ended(*values), 1e6) is not None) is stopped


@pytest.mark.parametrize(
    ("values", "stopped"),
    [
        ((0.5, 0.4, 0.5), False),  # two without a better value
        ((0.5, 0.4, 0.5, None), True),  # an infeasible one is the third
        ((0.5, 0.4, 0.3, 0.6), False),  # the last is better
        ((None, None), False),
        ((None, None, None), True),
    ],
)
def test_no_progress_for_three_trials_in_a_row(values, stopped):
    assert (reason(study(maxNumTrialsNoProgress=3), ended(*values)) is not None) is stopped


@pytest.mark.parametrize(("seconds", "stopped"), [(219, False), (220, True)])
def test_duration_without_progress_starts_at_the_best_trial(seconds, stopped):
    # The best ended after 2 minutes: 120 + 100 = 220 seconds.
    config = study(maxDurationNoProgress="100s")
    assert (reason(config, ended(0.5, 0.6, 0.4), seconds) is not None) is stopped


def test_without_values_duration_without_progress_starts_at_creation():
    assert reason(study(maxDurationNoProgress="100s"), ended(None), 99) is None
    assert reason(study(maxDurationNoProgress="100s"), ended(None), 100) is not None


def test_only_a_single_objective_can_lack_progress():
    cost = {"metricId": "cost", "goal": "MINIMIZE"}
    values = ended(0.5, 0.4, 0.4)
    assert reason(study(cost, maxNumTrialsNoProgress=2), values) is None
    safe = study(cost | {"safetyConfig": {"safetyThreshold": 1.0}}, maxNumTrialsNoProgress=2)
    # None of them reported the safety metric, so none is a best one: three in a row.
    assert reason(safe, values) == "maxNumTrialsNoProgress: the last 3 trials were not better"


def test_progress_follows_the_order_of_trial_ends():
    late, early = ended(0.5, 0.6)[1], ended(0.5, 0.6)[0]
    assert reason(study(maxNumTrialsNoProgress=1), [late, early]) is None
