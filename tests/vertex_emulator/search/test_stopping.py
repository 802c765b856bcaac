import pytest

from vertex_emulator.search import EndedTrial, Measurement, stopping


def curve(*values, metric="acc", seconds_per_step=1.0):
    return [Measurement(step, step * seconds_per_step, {metric: value}) for step, value in enumerate(values, 1)]


def study(rule, goal="MAXIMIZE", **spec):
    return {"metrics": [{"metricId": "acc", "goal": goal}], "parameters": [], rule: spec}


def stops(study_spec, running, completed):
    curves, *others = (stopping.learning_curves(study_spec, trial) for trial in (running, *completed))
    return stopping.trial_stopping_reason(study_spec, curves, others) is not None


MEDIAN, DECAY, CONVEX = "medianAutomatedStoppingSpec", "decayCurveStoppingSpec", "convexAutomatedStoppingSpec"


@pytest.mark.parametrize(("best", "stopped"), [(0.39, True), (0.4, False), (0.41, False)])
def test_median_rule_compares_with_running_averages(best, stopped):
    # At step 2 the averages are (0.2 + 0.4) / 2 = 0.3, (0.3 + 0.5) / 2 = 0.4 and (0.8 + 0.8) / 2 = 0.8: median 0.4.
    completed = [curve(0.2, 0.4, 0.9), curve(0.3, 0.5, 0.9), curve(0.8, 0.8, 0.8)]
    assert stops(study(MEDIAN), curve(best, 0.1), completed) is stopped


def test_median_rule_follows_goal():
    completed = [curve(2, 4), curve(3, 5), curve(8, 8)]  # averages 3, 4, 8
    assert stops(study(MEDIAN, "MINIMIZE"), curve(9, 4.5), completed)
    assert not stops(study(MEDIAN, "MINIMIZE"), curve(9, 4), completed)


def test_median_rule_ignores_later_steps():
    # Up to step 1 the completed trial's average is 0.1; over all of it, 0.5.
    assert not stops(study(MEDIAN), curve(0.2), [curve(0.1, 0.9)])
    assert stops(study(MEDIAN), curve(0.2, 0.2), [curve(0.1, 0.9)])


def test_elapsed_duration_counts_seconds_instead_of_steps():
    # At its 1st step the trial is 10 s old; the completed one had two measurements by then: 0.1 and 0.9, average 0.5.
    running = curve(0.3, seconds_per_step=10)
    completed = [curve(0.1, 0.9, seconds_per_step=5)]
    assert stops(study(MEDIAN, useElapsedDuration=True), running, completed)
    assert not stops(study(MEDIAN), running, completed)


@pytest.mark.parametrize("rule", [MEDIAN, DECAY, CONVEX])
def test_without_measurements_or_completed_trials_nothing_is_stopped(rule):
    assert not stops(study(rule), [], [curve(0.9, 0.9)] * 9)
    assert not stops(study(rule), [Measurement(1, 1.0, {"other": 1.0})], [curve(0.9, 0.9)] * 9)
    assert not stops(study(rule), curve(0.1), [])
    assert not stops(study(rule), curve(0.1), [[], []])


def test_without_rule_nothing_is_stopped():
    assert not stops({"metrics": [{"metricId": "acc"}], "parameters": []}, curve(0.0), [curve(0.9)] * 9)


def test_trial_behind_in_every_objective_is_stopped():
    study_spec = study(MEDIAN)
    study_spec["metrics"].append({"metricId": "cost", "goal": "MINIMIZE"})
    done = [[Measurement(1, 1.0, {"acc": 0.5, "cost": 10.0})]]
    assert stops(study_spec, [Measurement(1, 1.0, {"acc": 0.4, "cost": 11.0})], done)
    assert not stops(study_spec, [Measurement(1, 1.0, {"acc": 0.4, "cost": 9.0})], done)
    assert not stops(study_spec, [Measurement(1, 1.0, {"acc": 0.4})], done)


def test_safety_metric_stops_no_trial():
    study_spec = study(MEDIAN)
    study_spec["metrics"].append({"metricId": "cost", "goal": "MINIMIZE", "safetyConfig": {"safetyThreshold": 1.0}})
    done = [[Measurement(1, 1.0, {"acc": 0.5, "cost": 1.0})]]
    assert not stops(study_spec, [Measurement(1, 1.0, {"acc": 0.6, "cost": 99.0})], done)


def learners(*ends):
    """Curves of three steps whose value doubles from the second to the last, with a little noise in the first."""
    return [curve(end / 4, end / 2, end) for end in ends]


@pytest.mark.parametrize(("value", "stopped"), [(0.2, True), (0.35, True), (0.44, False), (0.5, False)])
def test_decay_curve_rule_stops_hopeless_trial(value, stopped):
    # The line through the pairs (value at step 2, end) is end = 2 x, without error; the best end is 0.8. So 0.35 comes
    # to 0.70 and is stopped, and 0.44 comes to 0.88.
    completed = learners(0.4, 0.5, 0.6, 0.7, 0.8)
    assert stops(study(DECAY), curve(0.1, value), completed) is stopped


def test_decay_curve_rule_needs_informative_curves():
    # The value at step 1 says nothing of the end: the slope is 0, the mean end 0.6, the standard error 0.25.
    completed = [curve(0.1, end) for end in (0.3, 0.9, 0.6)] + [curve(0.2, end) for end in (0.3, 0.9, 0.6)]
    assert not stops(study(DECAY), curve(0.1), completed)


def test_decay_curve_rule_needs_five_whole_curves():
    # A curve that was stopped at step 1 of 3 does not say where it would have ended.
    four = learners(0.4, 0.5, 0.6, 0.8)
    assert not stops(study(DECAY), curve(0.1, 0.2), four)
    assert not stops(study(DECAY), curve(0.1, 0.2), [*four, curve(0.1)])
    assert stops(study(DECAY), curve(0.1, 0.2), [*four, *learners(0.7)])


def test_decay_curve_rule_spares_last_step():
    assert not stops(study(DECAY), curve(0.1, 0.2, 0.3), learners(0.4, 0.5, 0.6, 0.7, 0.8))


def completed_at(best, trials=6, steps=20):
    return [curve(*([0.1] * (steps - 1)), best) for _ in range(trials)]


@pytest.mark.parametrize(("slope", "stopped"), [(0.04, True), (0.06, False)])
def test_convex_rule_extrapolates_straight_line(slope, stopped):
    # At step 6 of 20 the value is 6 * slope and 14 steps are left: 20 * 0.04 = 0.8 < 1 and 20 * 0.06 = 1.2 > 1.
    running = curve(*(slope * step for step in range(1, 7)))
    assert stops(study(CONVEX), running, completed_at(1.0)) is stopped


def test_convex_rule_ignores_flat_curve():
    assert not stops(study(CONVEX), curve(*[0.1] * 6), completed_at(1.0))


@pytest.mark.parametrize(
    ("spec", "measurements", "trials", "stopped"),
    [
        ({}, 6, 6, True),
        ({}, 4, 6, False),  # fewer than five measurements
        ({}, 6, 5, False),  # not more than five completed trials
        ({"minMeasurementCount": 3}, 3, 4, True),
        ({"minMeasurementCount": 3}, 2, 4, False),
        ({"minStepCount": 6}, 6, 6, False),  # no step beyond the sixth
        ({"minStepCount": 0}, 6, 6, True),
        ({"maxStepCount": 60}, 6, 6, False),  # a tenth is 6 steps
        ({"maxStepCount": 59}, 6, 6, False),  # 59 * 0.04 = 2.4 is more than 1
        ({"maxStepCount": 24}, 6, 6, True),  # 24 * 0.04 = 0.96
    ],
)
def test_convex_rule_waits_as_its_counts_say(spec, measurements, trials, stopped):
    running = curve(*(0.04 * step for step in range(1, measurements + 1)))
    assert stops(study(CONVEX, **spec), running, completed_at(1.0, trials)) is stopped


SECOND = 10**9
CREATED = 1_700_000_000 * SECOND


def stoppable(*extra_metrics, **config):
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
    return stopping.study_stopping_reason(study_spec, len(found) if count is None else count, found, CREATED, now)


def test_study_without_conditions_goes_on():
    assert reason({"metrics": [{"metricId": "acc"}], "parameters": []}, ended(*[0.5] * 99), 1e9) is None
    assert reason(stoppable(shouldStopAsap=True), ended(*[0.5] * 99), 1e9) is None


@pytest.mark.parametrize(("trials", "stopped"), [(4, False), (5, True), (6, True)])
def test_max_num_trials_counts_running_and_failed_trials(trials, stopped):
    found = reason(stoppable(maxNumTrials=5), ended(0.5, None), count=trials)
    assert (found is not None and "maxNumTrials" in found) is stopped


@pytest.mark.parametrize(("seconds", "stopped"), [(59, False), (60, True)])
@pytest.mark.parametrize("constraint", [{"maxDuration": "60s"}, {"endTime": "2023-11-14T22:14:20Z"}])
def test_maximum_runtime_is_duration_or_time(constraint, seconds, stopped):
    # 1,700,000,000 seconds are 2023-11-14T22:13:20Z.
    assert (reason(stoppable(maximumRuntimeConstraint=constraint), seconds=seconds) is not None) is stopped


@pytest.mark.parametrize(("seconds", "stopped"), [(59, False), (60, True)])
def test_minimum_runtime_blocks_every_other_condition(seconds, stopped):
    config = stoppable(minimumRuntimeConstraint={"maxDuration": "60s"}, maxNumTrials=1)
    assert (reason(config, ended(0.5), seconds) is not None) is stopped


@pytest.mark.parametrize(("values", "stopped"), [((0.5, None, None), False), ((0.5, 0.4, None), True)])
def test_min_num_trials_blocks_every_other_condition(values, stopped):
    config = stoppable(minNumTrials=2, maxNumTrials=1, maximumRuntimeConstraint={"maxDuration": "1s"})
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
def test_no_progress_for_three_trials_in_row(values, stopped):
    assert (reason(stoppable(maxNumTrialsNoProgress=3), ended(*values)) is not None) is stopped


@pytest.mark.parametrize(("seconds", "stopped"), [(219, False), (220, True)])
def test_duration_without_progress_starts_at_best_trial(seconds, stopped):
    # The best ended after 2 minutes: 120 + 100 = 220 seconds.
    config = stoppable(maxDurationNoProgress="100s")
    assert (reason(config, ended(0.5, 0.6, 0.4), seconds) is not None) is stopped


def test_without_values_duration_without_progress_starts_at_creation():
    assert reason(stoppable(maxDurationNoProgress="100s"), ended(None), 99) is None
    assert reason(stoppable(maxDurationNoProgress="100s"), ended(None), 100) is not None


def test_only_single_objective_can_lack_progress():
    cost = {"metricId": "cost", "goal": "MINIMIZE"}
    values = ended(0.5, 0.4, 0.4)
    assert reason(stoppable(cost, maxNumTrialsNoProgress=2), values) is None
    safe = stoppable(cost | {"safetyConfig": {"safetyThreshold": 1.0}}, maxNumTrialsNoProgress=2)
    # None of them reported the safety metric, so none is a best one: three in a row.
    assert reason(safe, values) == "maxNumTrialsNoProgress: the last 3 trials were not better"


def test_progress_follows_order_of_trial_ends():
    late, early = ended(0.5, 0.6)[1], ended(0.5, 0.6)[0]
    assert reason(stoppable(maxNumTrialsNoProgress=1), [late, early]) is None


class CountedReads(tuple):
    """Values that count how many of them are read."""

    reads = 0

    def __iter__(self):
        self.reads += len(self)
        return super().__iter__()

    def __getitem__(self, place):
        self.reads += len(range(*place.indices(len(self)))) if isinstance(place, slice) else 1
        return super().__getitem__(place)


@pytest.mark.parametrize("rule", [MEDIAN, DECAY, CONVEX])
def test_values_of_completed_trials_are_read_once(rule):
    spec, length, decisions = study(rule, maxStepCount=100), 64, 50
    values = [CountedReads(-0.1 * trial / step for step in range(1, length + 1)) for trial in range(1, 10)]
    completed = [{"acc": stopping.LearningCurve(tuple(map(float, range(1, length + 1))), each)} for each in values]
    for last in range(2, 2 + decisions):
        running = curve(*(0.2 / step for step in range(1, last + 1)))
        stopping.trial_stopping_reason(spec, stopping.learning_curves(spec, running), completed)
    assert {each.reads for each in values} == {length}


def test_average_of_equal_values_is_that_value():
    # Ten times 0.1, added one after the other, is 0.9999999999999999.
    assert stopping.LearningCurve(tuple(range(10)), (0.1,) * 10).averages == (0.1,) * 10
