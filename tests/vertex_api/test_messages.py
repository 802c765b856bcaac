"""Fields of messages, and conversions of their values."""

from typing import Any

import pytest

from vertex_api import types
from vertex_api.messages import int64_as_text, message_fields, scalars_as_text, set_at, truncate


def test_a_field_says_what_it_holds() -> None:
    known = message_fields(types.CustomJobSpec)
    assert (known["workerPoolSpecs"].message_type, known["workerPoolSpecs"].cardinality) == (
        types.WorkerPoolSpec,
        "list",
    )
    assert (known["scheduling"].message_type, known["scheduling"].cardinality) == (types.Scheduling, "one")
    assert (known["network"].message_type, known["network"].is_int64) == (None, False)
    assert message_fields(types.CustomJob)["labels"].cardinality == "map"
    assert message_fields(types.WorkerPoolSpec)["replicaCount"].is_int64
    assert not message_fields(types.MachineSpec)["acceleratorCount"].is_int64


def test_only_int64_values_become_strings() -> None:
    job = {
        "displayName": "x",
        "labels": {"replicaCount": "many"},
        "jobSpec": {"workerPoolSpecs": [{"replicaCount": 2, "machineSpec": {"acceleratorCount": 1}}, {}]},
    }
    assert int64_as_text(types.CustomJob, job) == {
        "displayName": "x",
        "labels": {"replicaCount": "many"},
        "jobSpec": {"workerPoolSpecs": [{"replicaCount": "2", "machineSpec": {"acceleratorCount": 1}}, {}]},
    }
    assert job["jobSpec"]["workerPoolSpecs"][0]["replicaCount"] == 2  # type: ignore[index]


def test_nested_and_repeated_int64_values_become_strings() -> None:
    integer = {"parameterId": "n", "integerValueSpec": {"minValue": 1, "maxValue": 9}}
    child = {"parentIntValues": {"values": [1, 2]}, "parameterSpec": integer}
    study = {
        "parameters": [
            integer,
            {"parameterId": "x", "doubleValueSpec": {"minValue": 1.0}},
            {"parameterId": "p", "discreteValueSpec": {"values": [1.0]}, "conditionalParameterSpecs": [child]},
        ]
    }
    shown = int64_as_text(types.StudySpec, study)["parameters"]
    assert shown[0]["integerValueSpec"] == {"minValue": "1", "maxValue": "9"}
    assert shown[1]["doubleValueSpec"] == {"minValue": 1.0}
    assert shown[2]["discreteValueSpec"] == {"values": [1.0]}
    written = shown[2]["conditionalParameterSpecs"][0]
    assert written["parentIntValues"] == {"values": ["1", "2"]}
    assert written["parameterSpec"] == shown[0]


def test_int64_values_of_output_fields_become_strings() -> None:
    trial = {"finalMeasurement": {"stepCount": 3}, "measurements": [{"stepCount": 1}]}
    assert int64_as_text(types.Trial, trial) == {
        "finalMeasurement": {"stepCount": "3"},
        "measurements": [{"stepCount": "1"}],
    }


def test_scalars_become_texts_where_the_message_has_texts() -> None:
    env = [{"name": "WANDB_DISABLED", "value": True}, {"name": "EPOCHS", "value": 7}]
    pool = {"replica_count": 1.0, "containerSpec": {"imageUri": "a", "args": [7, 0.5, "x", None], "env": env}}
    spec = {"worker_pool_specs": [pool], "enableWebAccess": True, "scheduling": {"timeout": 5}, "unknown": 1}
    found = scalars_as_text(types.CustomJobSpec, spec)
    converted = [{"name": "WANDB_DISABLED", "value": "true"}, {"name": "EPOCHS", "value": "7.0"}]
    container = {"imageUri": "a", "args": ["7.0", "0.5", "x", None], "env": converted}
    assert found == {**spec, "worker_pool_specs": [{"replica_count": 1.0, "containerSpec": container}]}
    assert spec["enableWebAccess"] is True and scalars_as_text(types.CustomJobSpec, 3) == 3


def test_a_path_makes_objects_and_lists_on_its_way() -> None:
    value: dict[str, Any] = {"pools": [{"replicas": 1}]}
    set_at(value, "spec.args[0]", "--a")
    set_at(value, "spec.args[1]", "--b")
    set_at(value, "pools[0].machine.type", "n1-standard-4")
    set_at(value, "pools[0].replicas", None)
    assert value == {"pools": [{"machine": {"type": "n1-standard-4"}}], "spec": {"args": ["--a", "--b"]}}
    with pytest.raises(IndexError):
        set_at(value, "pools[1].replicas", 2)


def test_names_are_shown_by_200_characters() -> None:
    assert truncate("x" * 200) == "x" * 200
    assert truncate("x" * 201) == f"{'x' * 197}..."
