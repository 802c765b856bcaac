"""Rules for a HyperparameterTuningJob."""

from typing import Any

import pytest

from tests.vertex_api.jobs import ABSENT, edited, tuning_job
from tests.vertex_api.validation.breaking import said_of_study, said_of_tuning_job
from vertex_api.names import HYPERPARAMETER_TUNING_JOB
from vertex_api.validation.check import validate_job


@pytest.mark.parametrize("field", ["maxTrialCount", "parallelTrialCount"])
@pytest.mark.parametrize("count", [ABSENT, 0, -1])
def test_trial_counts_are_at_least_one(field: str, count: Any) -> None:
    assert said_of_tuning_job(field, to=count) == [f"{field}: is required, and at least 1"]


def test_failed_trials_are_counted_from_zero() -> None:
    job = tuning_job() | {"maxFailedTrialCount": 0}
    assert validate_job(HYPERPARAMETER_TUNING_JOB, job)[1] == []


def test_trial_job_specs_follow_the_custom_job_rules() -> None:
    assert said_of_tuning_job("trialJobSpec", "workerPoolSpecs", 0, "replicaCount", to=2) == [
        "trialJobSpec.workerPoolSpecs[0].replicaCount: 2 must be 1: the first pool is the primary replica"
    ]


def test_trials_run_without_tpus() -> None:
    machine = {"machineType": "ct5lp-hightpu-1t", "tpuTopology": "1x1"}
    assert said_of_tuning_job("trialJobSpec", "workerPoolSpecs", 0, "machineSpec", to=machine) == [
        "trialJobSpec.workerPoolSpecs[0].machineSpec.machineType: ct5lp-hightpu-1t has TPUs, "
        "which hyperparameter tuning does not take"
    ]


def test_rules_that_are_broken_together_are_all_named() -> None:
    job = edited(tuning_job(), "studySpec", "parameters", 0, "doubleValueSpec", "minValue", to=5.0)
    job = edited(job, "studySpec", "metrics", 0, "metricId", to="a b") | {"maxTrialCount": 0, "displayName": "x" * 200}
    job = edited(job, "trialJobSpec", "workerPoolSpecs", 0, "machineSpec", "machineType", to="n9")
    fields = [problem.place for problem in validate_job(HYPERPARAMETER_TUNING_JOB, job)[1]]
    assert sorted(fields) == [
        "displayName",
        "maxTrialCount",
        "studySpec.metrics[0].metricId",
        "studySpec.parameters[0].doubleValueSpec",
        "trialJobSpec.workerPoolSpecs[0].machineSpec.machineType",
    ]


@pytest.mark.parametrize(
    "metrics",
    [
        [{"metricId": "accuracy"}, {"metricId": "loss", "goal": "MINIMIZE"}],
        [{"metricId": "a"}, {"metricId": "b", "safetyConfig": {"desiredMinSafeTrialsFraction": 1.0}}],
        [{"metricId": "training/hptuning/metric"}],
    ],
)
def test_metrics_with_ids_of_their_own_are_taken(metrics: Any) -> None:
    assert said_of_study(metrics=metrics) == []


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        ([{"metricId": "top 1"}], 'metrics[0].metricId: "top 1" must not contain white space'),
        ([{"metricId": "a"}, {"metricId": "a"}], 'metrics[1].metricId: "a" is there twice'),
        ([{"metricId": ""}], "metrics[0].metricId: is required"),
        (
            [{"metricId": "a", "safetyConfig": {"safetyThreshold": 1.0}}],
            "metrics: has safety metrics only; a study needs an objective, a metric without safetyConfig",
        ),
        (
            [{"metricId": "a"}, {"metricId": "b", "safetyConfig": {"desiredMinSafeTrialsFraction": 1.1}}],
            "metrics[1].safetyConfig.desiredMinSafeTrialsFraction: 1.1 is not within 0 to 1",
        ),
        (
            [{"metricId": "a"}, {"metricId": "b", "safetyConfig": {"desiredMinSafeTrialsFraction": -0.1}}],
            "metrics[1].safetyConfig.desiredMinSafeTrialsFraction: -0.1 is not within 0 to 1",
        ),
    ],
)
def test_other_metrics_are_refused(metrics: Any, said: str) -> None:
    assert said_of_study(metrics=metrics) == [said]


def test_a_grid_has_no_doubles_at_any_depth() -> None:
    integers = tuning_job()["studySpec"]["parameters"][1:]
    assert said_of_study(algorithm="GRID_SEARCH", parameters=integers) == []
    double = {"parameterId": "x", "doubleValueSpec": {"maxValue": 1.0}}
    child = {"parentIntValues": {"values": [1]}, "parameterSpec": double}
    parent = {"parameterId": "p", "integerValueSpec": {"maxValue": 2}, "conditionalParameterSpecs": [child]}
    message = "GRID_SEARCH takes integer, categorical and discrete parameters only"
    at = "parameters[1].conditionalParameterSpecs[0].parameterSpec.doubleValueSpec"
    assert said_of_study(algorithm="GRID_SEARCH", parameters=[double | {"parameterId": "y"}, parent]) == [
        f"parameters[0].doubleValueSpec: {message}",
        f"{at}: {message}",
    ]
    assert said_of_study(algorithm="RANDOM_SEARCH", parameters=[parent]) == []


ONE_OF = "needs exactly one of doubleValueSpec, integerValueSpec, categoricalValueSpec, discreteValueSpec"


def said_of(**fields: Any) -> list[str]:
    """Problems of the only parameter of a study, whose path is cut off."""
    said = said_of_study(parameters=[{"parameterId": "p", **fields}])
    return [text.removeprefix("parameters[0].") for text in said]


def parent(*children: dict[str, Any], id_: str = "p") -> dict[str, Any]:
    """A categorical parameter `a, b, c` with children."""
    spec: dict[str, Any] = {"parameterId": id_, "categoricalValueSpec": {"values": ["a", "b", "c"]}}
    return {**spec, "conditionalParameterSpecs": list(children)}


def child(id_: str, *values: str, **fields: Any) -> dict[str, Any]:
    """A child that is active for values of its parent."""
    spec = {"parameterId": id_, "integerValueSpec": {"maxValue": 9}, **fields}
    return {"parentCategoricalValues": {"values": list(values)}, "parameterSpec": spec}


@pytest.mark.parametrize(
    "fields",
    [
        {"doubleValueSpec": {"minValue": 0.001, "maxValue": 0.1}, "scaleType": "UNIT_LOG_SCALE"},
        {"doubleValueSpec": {"minValue": 1, "maxValue": 1}},
        {"doubleValueSpec": {}, "scaleType": "UNIT_LINEAR_SCALE"},
        {"integerValueSpec": {"minValue": "-4"}},
        {"integerValueSpec": {"minValue": 2, "maxValue": 2, "defaultValue": 7}},
        {"discreteValueSpec": {"values": [0.5, 1, 2]}, "scaleType": "UNIT_REVERSE_LOG_SCALE"},
        {"discreteValueSpec": {"values": list(range(1000))}},
        {"discreteValueSpec": {"values": [0.0, 1e-10]}},
        {"categoricalValueSpec": {"values": ["a"]}, "scaleType": 0},
    ],
)
def test_parameters_within_the_rules_are_taken(fields: dict[str, Any]) -> None:
    assert said_of(**fields) == []


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"doubleValueSpec": {"minValue": 2, "maxValue": 1}},
            "doubleValueSpec: minValue 2.0 is greater than maxValue 1.0",
        ),
        ({"integerValueSpec": {"minValue": 1}}, "integerValueSpec: minValue 1 is greater than maxValue 0"),
        (
            {"integerValueSpec": {"maxValue": 4}, "scaleType": "UNIT_LOG_SCALE"},
            "scaleType: UNIT_LOG_SCALE needs a range above zero; its least value is 0",
        ),
        (
            {"doubleValueSpec": {"minValue": -1, "maxValue": 4}, "scaleType": "UNIT_REVERSE_LOG_SCALE"},
            "scaleType: UNIT_REVERSE_LOG_SCALE needs a range above zero; its least value is -1.0",
        ),
        (
            {"discreteValueSpec": {"values": [0, 4]}, "scaleType": "UNIT_LOG_SCALE"},
            "scaleType: UNIT_LOG_SCALE needs a range above zero; its least value is 0.0",
        ),
        (
            {"categoricalValueSpec": {"values": ["a"]}, "scaleType": "UNIT_LINEAR_SCALE"},
            "scaleType: UNIT_LINEAR_SCALE is for numbers; leave it out for categories",
        ),
        ({"discreteValueSpec": {"values": [2, 1]}}, "discreteValueSpec.values: must increase: 1.0 stands after 2.0"),
        ({"discreteValueSpec": {"values": [1, 1]}}, "discreteValueSpec.values: must increase: 1.0 stands after 1.0"),
        (
            {"discreteValueSpec": {"values": [0, 1e-11]}},
            "discreteValueSpec.values: 0.0 and 1e-11 are less than 1e-10 apart",
        ),
        (
            {"discreteValueSpec": {"values": list(range(1001))}},
            "discreteValueSpec.values: has 1001 values; at most 1000 are allowed",
        ),
        ({"discreteValueSpec": {"values": []}}, "discreteValueSpec.values: is required"),
        ({"categoricalValueSpec": {"values": []}}, "categoricalValueSpec.values: is required"),
    ],
)
def test_parameters_against_the_rules_are_refused(fields: dict[str, Any], said: str) -> None:
    assert said_of(**fields) == [said]


@pytest.mark.parametrize("fields", [{}, {"integerValueSpec": {}, "doubleValueSpec": {}}])
def test_a_parameter_has_one_kind_of_values(fields: dict[str, Any]) -> None:
    assert said_of_study(parameters=[{"parameterId": "p", **fields}]) == [f"parameters[0]: {ONE_OF}"]


@pytest.mark.parametrize(("name", "said"), [("a\tb", '"a\tb" must not contain white space'), ("", "is required")])
def test_a_parameter_has_an_id_without_white_space(name: str, said: str) -> None:
    parameters = [{"parameterId": name, "integerValueSpec": {}}]
    assert said_of_study(parameters=parameters) == [f"parameters[0].parameterId: {said}"]


def test_an_id_stands_once() -> None:
    twice = '"{}" is there twice; only children with disjoint conditions may share an id'
    spec = {"parameterId": "q", "integerValueSpec": {}}
    assert said_of_study(parameters=[spec, spec]) == [f"parameters[1].parameterId: {twice.format('q')}"]
    at = "parameters[1].conditionalParameterSpecs[0].parameterSpec.parameterId"
    assert said_of_study(parameters=[spec, parent(child("q", "a"))]) == [f"{at}: {twice.format('q')}"]
    assert said_of_study(parameters=[parent(child("p", "a"))]) == [f"{at.replace('[1]', '[0]')}: {twice.format('p')}"]


def test_only_mutually_exclusive_children_share_an_id() -> None:
    assert said_of_study(parameters=[parent(child("x", "a"), child("x", "b", "c"))]) == []
    (said,) = said_of_study(parameters=[parent(child("x", "a", "b"), child("x", "b"))])
    assert said.startswith("parameters[0].conditionalParameterSpecs[1].parameterSpec.parameterId: ")
    assert len(said_of_study(parameters=[parent(child("x", "a")), parent(child("x", "b"), id_="q")])) == 1


def test_grandchildren_below_exclusive_children_share_an_id() -> None:
    def branch(id_: str, value: str) -> dict[str, Any]:
        below = {"parentIntValues": {"values": [1]}, "parameterSpec": {"parameterId": "x", "integerValueSpec": {}}}
        return child(id_, value, conditionalParameterSpecs=[below])

    assert said_of_study(parameters=[parent(branch("y", "a"), branch("z", "b"))]) == []
    assert len(said_of_study(parameters=[parent(branch("y", "a"), branch("z", "a"))])) == 1


def test_rules_hold_at_any_depth() -> None:
    below = child("x", "a", integerValueSpec={"minValue": 2, "maxValue": 1})
    assert said_of_study(parameters=[parent(below)]) == [
        "parameters[0].conditionalParameterSpecs[0].parameterSpec.integerValueSpec: "
        "minValue 2 is greater than maxValue 1"
    ]


INTEGER = {"integerValueSpec": {"minValue": 1, "maxValue": 3}}
DISCRETE = {"discreteValueSpec": {"values": [0.1, 0.5, 2.0]}}
CATEGORICAL = {"categoricalValueSpec": {"values": ["relu", "tanh"]}}
AT = "parameters[0].conditionalParameterSpecs"


def said_of_child(parent: dict[str, Any], **condition: Any) -> list[str]:
    """Problems of a study in which a child hangs on the only parameter."""
    child = {**condition, "parameterSpec": {"parameterId": "child", "integerValueSpec": {}}}
    return said_of_study(parameters=[{"parameterId": "p", **parent, "conditionalParameterSpecs": [child]}])


@pytest.mark.parametrize(
    ("parent", "condition"),
    [
        (INTEGER, {"parentIntValues": {"values": ["1", 3]}}),
        (DISCRETE, {"parentDiscreteValues": {"values": [0.5 + 5e-11, 2.0]}}),
        (CATEGORICAL, {"parentCategoricalValues": {"values": ["tanh"]}}),
    ],
)
def test_values_of_the_parent_are_conditions(parent: dict[str, Any], condition: dict[str, Any]) -> None:
    assert said_of_child(parent, **condition) == []


@pytest.mark.parametrize(
    ("parent", "name", "value", "shown"),
    [
        (INTEGER, "parentIntValues", 4, "4"),
        (INTEGER, "parentIntValues", 0, "0"),
        (DISCRETE, "parentDiscreteValues", 0.5001, "0.5001"),
        (DISCRETE, "parentDiscreteValues", 3, "3.0"),
        (CATEGORICAL, "parentCategoricalValues", "gelu", '"gelu"'),
    ],
)
def test_other_values_are_not(parent: dict[str, Any], name: str, value: Any, shown: str) -> None:
    assert said_of_child(parent, **{name: {"values": [value]}}) == [
        f"{AT}[0].{name}.values[0]: {shown} is not a value of the parent"
    ]


def test_a_child_hangs_on_one_condition() -> None:
    expected = [f"{AT}[0]: needs exactly one of parentIntValues, parentDiscreteValues, parentCategoricalValues"]
    assert said_of_child(INTEGER) == expected
    both = {"parentIntValues": {"values": [1]}, "parentDiscreteValues": {"values": [1]}}
    assert said_of_child(INTEGER, **both) == expected


def test_a_condition_is_of_the_parents_type() -> None:
    assert said_of_child(INTEGER, parentCategoricalValues={"values": ["1"]}) == [
        f"{AT}[0].parentCategoricalValues: is not for a parent with integerValueSpec; use parentIntValues"
    ]


def test_a_condition_names_values() -> None:
    assert said_of_child(INTEGER, parentIntValues={"values": []}) == [f"{AT}[0].parentIntValues.values: is required"]


def test_a_double_is_no_parent() -> None:
    said = said_of_child({"doubleValueSpec": {"maxValue": 1.0}}, parentDiscreteValues={"values": [0.5]})
    assert said == [
        f"{AT}: a DOUBLE parameter has no conditional parameters; use integer, discrete or categorical values"
    ]


LATER = {"endTime": "2027-01-01T00:00:00Z"}
SOONER = {"endTime": "2026-12-31T22:00:00.5-01:00"}


def said_of_config(**fields: Any) -> list[str]:
    return [text.removeprefix("studyStoppingConfig.") for text in said_of_study(studyStoppingConfig=fields)]


def said_of_convex(**fields: Any) -> list[str]:
    said = said_of_study(convexAutomatedStoppingSpec=fields)
    return [text.removeprefix("convexAutomatedStoppingSpec.") for text in said]


def test_trials_are_stopped_in_one_way() -> None:
    ways: dict[str, Any] = {"decayCurveStoppingSpec": {"useElapsedDuration": True}, "convexAutomatedStoppingSpec": {}}
    assert [said_of_study(**{name: way}) for name, way in ways.items()] == [[], []]
    assert said_of_study(**ways) == [
        "convexAutomatedStoppingSpec: cannot stand beside decayCurveStoppingSpec: at most one of "
        "decayCurveStoppingSpec, medianAutomatedStoppingSpec, convexAutomatedStoppingSpec"
    ]


def test_convex_stopping_within_the_rules_is_taken() -> None:
    assert said_of_convex(minStepCount=5, maxStepCount=5, minMeasurementCount=0) == []
    assert said_of_convex(minStepCount=5) == []
    assert said_of_convex(learningRateParameterName="rate", updateAllStoppedTrials=True) == []


def test_a_study_may_be_stopped_within_the_rules() -> None:
    assert said_of_config(shouldStopAsap=True, minNumTrials=3, maxNumTrials=3, maxNumTrialsNoProgress=2) == []
    assert said_of_config(minNumTrials=3, maxDurationNoProgress="60s") == []
    assert said_of_config(minimumRuntimeConstraint=SOONER, maximumRuntimeConstraint=LATER) == []
    assert said_of_config(minimumRuntimeConstraint={"maxDuration": "1s"}, maximumRuntimeConstraint=LATER) == []


@pytest.mark.parametrize("constraint", [{}, {"maxDuration": "1s", **LATER}])
@pytest.mark.parametrize("name", ["minimumRuntimeConstraint", "maximumRuntimeConstraint"])
def test_runtime_constraints_are_a_duration_or_a_time(name: str, constraint: Any) -> None:
    assert said_of_config(**{name: constraint}) == [f"{name}: needs exactly one of maxDuration and endTime"]
