"""Validation: what the API's clients may send becomes canonical, and every problem is reported at once."""

from typing import Any

import pytest

from tests.vertex_api.jobs import ABSENT, custom_job, edited, job_of, tuning_job
from vertex_api.job import Job, parse_job
from vertex_api.messages import show_path
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, KINDS, Kind
from vertex_api.validation.check import validate_job
from vertex_api.validation.shape import FieldProblem, canonicalize

POOL = ("jobSpec", "workerPoolSpecs", 0)


def canonical(kind: Kind, job: dict[str, Any]) -> Any:
    value, problems = validate_job(kind, job)
    assert problems == []
    return value


def problems(kind: Kind, job: dict[str, Any]) -> list[str]:
    return [str(problem) for problem in validate_job(kind, job)[1]]


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
def test_a_canonical_job_stays_as_it_is(kind: Kind) -> None:
    assert parse_job(kind, job_of(kind)) == (Job(kind, job_of(kind)), [])


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
def test_the_given_job_is_not_changed(kind: Kind) -> None:
    given = job_of(kind) | {"labels": None}
    parse_job(kind, given)
    assert given == job_of(kind) | {"labels": None}


def test_snake_case_names_become_the_api_s_own() -> None:
    given = {
        "display_name": "digits",
        "job_spec": {
            "worker_pool_specs": [
                {
                    "machine_spec": {"machine_type": "n1-standard-4"},
                    "replica_count": 1,
                    "container_spec": {"image_uri": "trainer:1", "args": ["--epochs=3"]},
                }
            ]
        },
    }
    assert canonical(CUSTOM_JOB, given) == custom_job()


def test_label_keys_are_kept_as_written() -> None:
    labels = {"teamName": "a", "team_name": "b"}
    assert canonicalize(CUSTOM_JOB.typed_dict, custom_job() | {"labels": labels})[0]["labels"] == labels


def test_an_enum_given_by_number_becomes_its_name() -> None:
    given = edited(tuning_job(), "studySpec", "metrics", 0, "goal", to=1)
    assert canonical(HYPERPARAMETER_TUNING_JOB, given) == tuning_job()
    given = edited(
        custom_job(),
        *POOL,
        "machineSpec",
        to={"machineType": "n1-standard-4", "acceleratorType": 5.0, "acceleratorCount": 1},
    )
    machine = canonical(CUSTOM_JOB, given)["jobSpec"]["workerPoolSpecs"][0]["machineSpec"]
    assert machine == {"machineType": "n1-standard-4", "acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 1}


@pytest.mark.parametrize("given", ["1", 1.0, 1])
def test_int64_values_become_ints(given: object) -> None:
    value = canonical(CUSTOM_JOB, edited(custom_job(), *POOL, "replicaCount", to=given))
    count = value["jobSpec"]["workerPoolSpecs"][0]["replicaCount"]
    assert (count, type(count)) == (1, int)


def test_whole_numbers_of_double_fields_become_floats() -> None:
    given = edited(tuning_job(), "studySpec", "parameters", 0, "doubleValueSpec", to={"minValue": 1, "maxValue": "2"})
    value = canonical(HYPERPARAMETER_TUNING_JOB, given)["studySpec"]["parameters"][0]["doubleValueSpec"]
    assert value == {"minValue": 1.0, "maxValue": 2.0}
    assert all(isinstance(number, float) for number in value.values())


def test_nulls_and_empty_lists_are_left_out() -> None:
    job = custom_job() | {"labels": None}
    job["jobSpec"] |= {"reservedIpRanges": [], "scheduling": {"timeout": None}}
    job["jobSpec"]["workerPoolSpecs"][0]["containerSpec"] |= {"command": [], "env": None}
    assert canonical(CUSTOM_JOB, job) == custom_job()


def test_zero_durations_and_empty_strings_are_kept() -> None:
    job = edited(custom_job(), "jobSpec", "scheduling", to={"timeout": "0s"})
    job["jobSpec"]["network"] = ""
    assert canonical(CUSTOM_JOB, job) == job


def test_a_job_that_writes_out_defaults_is_the_same() -> None:
    job = edited(custom_job(), "jobSpec", "scheduling", to={"restartJobOnWorkerRestart": False, "strategy": 0})
    job["jobSpec"]["workerPoolSpecs"][0]["machineSpec"] |= {"acceleratorCount": 0, "acceleratorType": 0}
    job["jobSpec"]["workerPoolSpecs"][0]["diskSpec"] = {"bootDiskSizeGb": 0}
    assert canonical(CUSTOM_JOB, job) == custom_job()
    search = canonical(HYPERPARAMETER_TUNING_JOB, tuning_job())
    written = edited(tuning_job() | {"maxFailedTrialCount": 0}, "studySpec", "algorithm", to="ALGORITHM_UNSPECIFIED")
    expected = {**search, "studySpec": {key: each for key, each in search["studySpec"].items() if key != "algorithm"}}
    assert canonical(HYPERPARAMETER_TUNING_JOB, written) == expected


def test_what_has_presence_in_the_protos_is_kept() -> None:
    config = {"minNumTrials": 0, "maxNumTrials": 0, "shouldStopAsap": False}
    job = edited(tuning_job(), "studySpec", "studyStoppingConfig", to=config)
    job["studySpec"]["medianAutomatedStoppingSpec"] = {"useElapsedDuration": False}
    job["studySpec"]["parameters"][1]["integerValueSpec"] = {"minValue": 0, "maxValue": 3, "defaultValue": 0}
    study = canonical(HYPERPARAMETER_TUNING_JOB, job)["studySpec"]
    assert study["studyStoppingConfig"] == config
    assert study["medianAutomatedStoppingSpec"] == {}
    assert study["parameters"][1]["integerValueSpec"] == {"minValue": 0, "maxValue": 3, "defaultValue": 0}


def test_empty_worker_pools_keep_their_place() -> None:
    pool = custom_job()["jobSpec"]["workerPoolSpecs"][0]
    job = edited(custom_job(), "jobSpec", "workerPoolSpecs", to=[pool, {}, pool])
    assert canonical(CUSTOM_JOB, job) == job


def test_unknown_fields_suggest_the_nearest_name() -> None:
    job = custom_job() | {"lables": {}}
    job["jobSpec"]["workerPoolSpecs"][0] |= {"replicas": 1}
    job["jobSpec"]["workerPoolSpecs"][0]["machineSpec"] |= {"machine_typ": "a"}
    assert problems(CUSTOM_JOB, job) == [
        "jobSpec.workerPoolSpecs[0].machineSpec.machine_typ: unknown field; did you mean machineType?",
        "jobSpec.workerPoolSpecs[0].replicas: unknown field; did you mean replicaCount?",
        "lables: unknown field; did you mean labels?",
    ]


def test_unknown_fields_without_a_neighbour_list_all_names() -> None:
    job = edited(custom_job(), *POOL, "containerSpec", "xyz", to=1)
    path = "jobSpec.workerPoolSpecs[0].containerSpec.xyz"
    assert problems(CUSTOM_JOB, job) == [f"{path}: unknown field; known: args, command, env, imageUri"]


@pytest.mark.parametrize("nothing", [None, []])
def test_unknown_fields_without_a_value_are_reported(nothing: object) -> None:
    job = custom_job() | {"lables": nothing, "labels": nothing}
    job["jobSpec"] |= {"schedulng": nothing, "enable_web_access": nothing}
    job["jobSpec"]["workerPoolSpecs"][0]["containerSpec"] |= {"envs": nothing, "env": nothing}
    assert problems(CUSTOM_JOB, job) == [
        "jobSpec.schedulng: unknown field; did you mean scheduling?",
        "jobSpec.workerPoolSpecs[0].containerSpec.envs: unknown field; did you mean env?",
        "lables: unknown field; did you mean labels?",
    ]
    _, found = validate_job(CUSTOM_JOB, job, output_only="drop")
    assert list(map(str, found)) == problems(CUSTOM_JOB, job)


def test_a_misspelt_empty_required_field_is_one_violation() -> None:
    job = {"displayName": "digits", "jobSpc": None}
    assert problems(CUSTOM_JOB, job) == ["jobSpc: unknown field; did you mean jobSpec?"]


def test_a_null_in_snake_case_is_unset() -> None:
    assert canonical(CUSTOM_JOB, custom_job() | {"display_name": None}) == custom_job()


def test_wrong_types_name_the_expected_type() -> None:
    job = custom_job() | {"displayName": 5, "labels": ["a"]}
    job["jobSpec"] |= {"scheduling": "1h", "enableWebAccess": "yes", "reservedIpRanges": {"a": 1}}
    job["jobSpec"]["workerPoolSpecs"][0] |= {"replicaCount": "one"}
    assert problems(CUSTOM_JOB, job) == [
        'displayName: 5 is not a string; write "5" in quotes',
        'jobSpec.enableWebAccess: "yes" is not true or false',
        "jobSpec.reservedIpRanges: must be a list",
        "jobSpec.scheduling: must be an object with named fields",
        'jobSpec.workerPoolSpecs[0].replicaCount: "one" is not a whole number',
        "labels: must be an object with named fields",
    ]


def test_wrong_enum_names_list_the_right_ones() -> None:
    job = edited(tuning_job(), "studySpec", "metrics", 0, "goal", to="MAXIMISE")
    field = "studySpec.metrics[0].goal"
    assert problems(HYPERPARAMETER_TUNING_JOB, job) == [
        f'{field}: "MAXIMISE" is not one of MAXIMIZE, MINIMIZE; did you mean MAXIMIZE?'
    ]


def test_missing_or_empty_required_fields_are_reported() -> None:
    assert problems(CUSTOM_JOB, {}) == ["displayName: is required", "jobSpec: is required"]
    assert problems(CUSTOM_JOB, custom_job() | {"jobSpec": None}) == ["jobSpec: is required"]
    job = edited(custom_job(), "jobSpec", "workerPoolSpecs", to=[])
    assert problems(CUSTOM_JOB, job) == ["jobSpec.workerPoolSpecs: is required"]
    job = edited(custom_job(), *POOL, "containerSpec", "imageUri", to=ABSENT)
    assert problems(CUSTOM_JOB, job) == ["jobSpec.workerPoolSpecs[0].containerSpec.imageUri: is required"]


def test_required_fields_that_may_be_zero_are_optional() -> None:
    job = edited(tuning_job(), "studySpec", "metrics", 0, "goal", to=ABSENT)
    job = edited(job, "studySpec", "parameters", 0, "doubleValueSpec", "minValue", to=ABSENT)
    assert canonical(HYPERPARAMETER_TUNING_JOB, job) == job


def test_output_only_fields_are_rejected_in_declarations() -> None:
    job = tuning_job() | {"state": "JOB_STATE_RUNNING", "trials": [], "name": "projects/p"}
    assert problems(HYPERPARAMETER_TUNING_JOB, job) == [
        "name: is set by the service; remove it",
        "state: is set by the service; remove it",
    ]


def test_output_only_fields_are_ignored_in_requests() -> None:
    job = tuning_job() | {"state": 4, "trials": [{"id": "1"}], "error": "not even a status"}
    assert validate_job(HYPERPARAMETER_TUNING_JOB, job, output_only="drop") == (tuning_job(), [])


def test_shape_and_rule_violations_are_reported_together() -> None:
    job = edited(custom_job(), *POOL, "replicaCount", to=2)
    job["displayName"] = "x" * 129
    wrong = job | {"jobSpce": {}, "labels": 3}
    assert problems(CUSTOM_JOB, wrong) == [
        "jobSpce: unknown field; did you mean jobSpec?",
        "labels: must be an object with named fields",
        "displayName: is longer than 128 characters",
        "jobSpec.workerPoolSpecs[0].replicaCount: 2 must be 1: the first pool is the primary replica",
    ]


def test_all_violations_are_reported_at_once() -> None:
    job = edited(custom_job(), "jobSpec", "scheduling", to={"timeout": "2h"})
    job = edited(job, *POOL, "machineSpec", "machineType", to="n1-standard-2")
    job = edited(job, *POOL, "replicaCount", to=3)
    job = edited(job, *POOL, "containerSpec", "env", to=[{"name": "1A", "value": "b"}])
    job = edited(job, *POOL, "diskSpec", to={"bootDiskSizeGb": 50})
    fields = [problem.place.removeprefix("jobSpec.") for problem in validate_job(CUSTOM_JOB, job)[1]]
    assert fields == [
        "scheduling.timeout",
        "workerPoolSpecs[0].replicaCount",
        "workerPoolSpecs[0].containerSpec.env[0].name",
        "workerPoolSpecs[0].machineSpec.machineType",
        "workerPoolSpecs[0].diskSpec.bootDiskSizeGb",
    ]


@pytest.mark.parametrize(
    ("field", "value", "beside", "other"),
    [
        ("network", 5, "reservedIpRanges", ["range"]),
        ("persistentResourceId", 5, "workerPoolSpecs", [{"containerSpec": {"imageUri": "trainer"}}]),
        ("workerPoolSpecs", "text", "scheduling", {"strategy": "FLEX_START"}),
        ("scheduling", {"strategy": "FLEX"}, "scheduling", {"strategy": "FLEX", "maxWaitDuration": "60s"}),
    ],
)
def test_a_misshapen_field_causes_no_other_violation(field: str, value: object, beside: str, other: object) -> None:
    job = custom_job()
    job["jobSpec"] |= {field: value, beside: other}
    (problem,) = validate_job(CUSTOM_JOB, job)[1]
    assert problem.path[:2] == ("jobSpec", field)


def test_a_misshapen_entry_hides_nothing_of_the_others() -> None:
    first = {**custom_job()["jobSpec"]["workerPoolSpecs"][0], "replicaCount": 2}
    found = problems(CUSTOM_JOB, edited(custom_job(), *POOL[:2], to=[first, 7]))
    assert [problem.partition(":")[0] for problem in found] == [
        "jobSpec.workerPoolSpecs[1]",
        "jobSpec.workerPoolSpecs[0].replicaCount",
    ]


def test_a_non_string_key_is_a_violation() -> None:
    job = edited(custom_job(), *POOL, "replicaCount", to=2) | {"labels": {7: "a", "b": "C"}}
    assert [problem.place for problem in validate_job(CUSTOM_JOB, job)[1]] == [
        "labels[7].[key]",
        "labels.b",
        "jobSpec.workerPoolSpecs[0].replicaCount",
    ]


def test_snake_case_hides_nothing_either() -> None:
    pool = {
        "machine_spec": {"machine_type": 5},
        "replica_count": 3,
        "container_spec": {"image_uri": "trainer", "env": [{"nam": "A", "value": "b"}, {"name": "1A", "value": "b"}]},
    }
    found = validate_job(CUSTOM_JOB, {"display_name": "digits", "job_spec": {"worker_pool_specs": [pool]}})[1]
    assert [problem.place.removeprefix("jobSpec.workerPoolSpecs[0].") for problem in found] == [
        "containerSpec.env[0].nam",
        "machineSpec.machineType",
        "replicaCount",
        "containerSpec.env[1].name",
    ]


def test_both_spellings_of_one_field_are_a_violation() -> None:
    (problem,) = problems(CUSTOM_JOB, custom_job() | {"display_name": "other"})
    assert "did you mean displayName" not in problem
    assert "display_name" in problem


def test_a_body_must_be_an_object() -> None:
    value: Any = [custom_job()]
    (problem,) = canonicalize(CUSTOM_JOB.typed_dict, value)[1]
    assert (problem.path, str(problem)) == ((), "must be an object with named fields")


def test_paths_are_written_as_the_api_writes_them() -> None:
    assert show_path(("jobSpec", "workerPoolSpecs", 0, "env", 12, "name")) == "jobSpec.workerPoolSpecs[0].env[12].name"
    assert str(FieldProblem(("a", 0), "is odd")) == "a[0]: is odd"


def test_rules_skip_unresolved_references() -> None:
    job = edited(custom_job(), "jobSpec", "network", to="${later}") | {"labels": {"a": "${later}", "b": "X"}}
    found = validate_job(CUSTOM_JOB, job)[1]
    assert [problem.place for problem in found] == ["labels.a", "labels.b", "jobSpec.network"]
    found = validate_job(CUSTOM_JOB, job, is_unresolved_value=lambda value: value == "${later}")[1]
    assert [problem.place for problem in found] == ["labels.b"]


def test_a_half_filled_second_task_may_be_taken_out() -> None:
    job = custom_job()
    job["jobSpec"]["workerPoolSpecs"][0]["pythonPackageSpec"] = {"executorImageUri": "i", "pythonModule": "m"}
    (found,) = problems(CUSTOM_JOB, job)
    assert found == (
        "jobSpec.workerPoolSpecs[0].pythonPackageSpec.packageUris: is required; or take pythonPackageSpec out: a pool "
        "has one of it and containerSpec, not both"
    )
