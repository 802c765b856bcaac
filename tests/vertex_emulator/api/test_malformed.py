"""Malformed requests are refused by name: none is answered with a server's error, none leaves a job behind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.vertex_emulator.api.good_requests import (
    ACCOUNT,
    KEY,
    LOCATION,
    custom_job,
    of_data,
    of_parameter,
    of_spec,
    of_study,
    package,
    pipeline,
    pool,
    tuning_job,
)
from tests.vertex_emulator.api.mutations import Mutation, mutations
from tests.vertex_emulator.running import PARENT, RunningEmulator
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, KINDS, TRAINING_PIPELINE

POOL = "job_spec.worker_pool_specs[0]"
INPUT = "input_data_config"
PARAMETER = "study_spec.parameters[0]"
GPU = {"machineType": "n1-standard-4", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 1}
V5E = {"machineType": "ct5lp-hightpu-1t", "tpuTopology": "1x1"}
# Of the right types, and against the rules: (body, field).
AGAINST_THE_RULES: list[tuple[Any, str]] = [
    (custom_job(displayName="x" * 129), "display_name"),
    (custom_job(displayName=""), "display_name"),
    (custom_job(labels={"Team": "a"}), "labels"),
    (custom_job(labels={"team": "A B"}), "labels.team"),
    (custom_job(labels={f"k{index}": "" for index in range(65)}), "labels"),
    (custom_job(encryptionSpec={"kmsKeyName": KEY.replace("us-central1", "global")}), "encryption_spec.kms_key_name"),
    (of_spec({}, pool()), POOL),
    (of_spec(*[pool()] * 5), "job_spec.worker_pool_specs"),
    (of_spec(pool(replicaCount=2)), f"{POOL}.replica_count"),
    (of_spec(pool(replicaCount=-(2**62))), f"{POOL}.replica_count"),
    (of_spec(pool(), pool(replicaCount=2**62)), "job_spec.worker_pool_specs[1].replica_count"),
    (of_spec({**pool(), **package()}), POOL),
    (of_spec({"machineSpec": GPU}), POOL),
    (of_spec(pool(containerSpec={"imageUri": ""})), f"{POOL}.container_spec.image_uri"),
    (of_spec(pool(containerSpec={"imageUri": "i", "args": ["x" * 100_001]})), f"{POOL}.container_spec.args"),
    (
        of_spec(pool(containerSpec={"imageUri": "i", "env": [{"name": "1"}]})),
        f"{POOL}.container_spec.env[0].name",
    ),
    (of_spec(package(packageUris=["file:///etc/passwd"])), f"{POOL}.python_package_spec.package_uris[0]"),
    (of_spec(package(packageUris=["gs://b/p"] * 101)), f"{POOL}.python_package_spec.package_uris"),
    (of_spec(pool(machineSpec={})), f"{POOL}.machine_spec.machine_type"),
    (of_spec(pool(machineSpec={"machineType": "n1-standard-2"})), f"{POOL}.machine_spec.machine_type"),
    (of_spec(pool(machineSpec=GPU)), f"{POOL}.machine_spec.accelerator_type"),
    (of_spec(pool(machineSpec={**GPU, "acceleratorCount": 0})), f"{POOL}.machine_spec.accelerator_type"),
    (of_spec(pool(machineSpec={**GPU, "acceleratorCount": -1})), f"{POOL}.machine_spec.accelerator_count"),
    (
        of_spec(pool(machineSpec={**GPU, "acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 3})),
        f"{POOL}.machine_spec.accelerator_count",
    ),
    (of_spec(pool(machineSpec=V5E), pool()), f"{POOL}.machine_spec.machine_type"),
    (of_spec(pool(machineSpec={**V5E, "tpuTopology": "9x9"})), f"{POOL}.machine_spec.tpu_topology"),
    (of_spec(pool(diskSpec={"bootDiskSizeGb": 99})), f"{POOL}.disk_spec.boot_disk_size_gb"),
    (of_spec(pool(diskSpec={"bootDiskType": "floppy"})), f"{POOL}.disk_spec.boot_disk_type"),
    (of_spec(scheduling={"timeout": "-1s"}), "job_spec.scheduling.timeout"),
    (of_spec(scheduling={"maxWaitDuration": "1s"}), "job_spec.scheduling.max_wait_duration"),
    (of_spec(scheduling={"strategy": "FLEX_START"}), f"{POOL}.machine_spec.accelerator_type"),
    (of_spec(serviceAccount="nobody"), "job_spec.service_account"),
    (of_spec(tensorboard=f"{LOCATION}/tensorboards/1"), "job_spec.service_account"),
    (of_spec(tensorboard="board", serviceAccount=ACCOUNT), "job_spec.tensorboard"),
    (of_spec(network="default"), "job_spec.network"),
    (of_spec(reservedIpRanges=["a"]), "job_spec.reserved_ip_ranges"),
    (of_spec(persistentResourceId="A"), "job_spec.persistent_resource_id"),
    (of_spec(experiment="e"), "job_spec.experiment"),
    (
        of_spec(baseOutputDirectory={"outputUriPrefix": "gs://bucket/../../etc"}),
        "job_spec.base_output_directory.output_uri_prefix",
    ),
    (of_spec(baseOutputDirectory={"outputUriPrefix": "/tmp"}), "job_spec.base_output_directory.output_uri_prefix"),
    (tuning_job(maxTrialCount=0), "max_trial_count"),
    (tuning_job(parallelTrialCount=3), "parallel_trial_count"),
    (tuning_job(maxFailedTrialCount=-1), "max_failed_trial_count"),
    (of_study(metrics=[]), "study_spec.metrics"),
    (of_study(metrics=[{"metricId": "a b"}]), "study_spec.metrics[0].metric_id"),
    (of_study(parameters=[]), "study_spec.parameters"),
    (of_study(algorithm="GRID_SEARCH"), f"{PARAMETER}.double_value_spec"),
    (of_study(medianAutomatedStoppingSpec={}, decayCurveStoppingSpec={}), "study_spec.median_automated_stopping_spec"),
    (of_study(studyStoppingConfig={"minNumTrials": 2, "maxNumTrials": 1}), "study_spec.study_stopping_config"),
    (of_parameter(), PARAMETER),
    (of_parameter(doubleValueSpec={"minValue": 1}), f"{PARAMETER}.double_value_spec"),
    (of_parameter(integerValueSpec={}, scaleType="UNIT_LOG_SCALE"), f"{PARAMETER}.scale_type"),
    (of_parameter(discreteValueSpec={"values": [1, 1]}), f"{PARAMETER}.discrete_value_spec.values"),
    (pipeline(trainingTaskDefinition="gs://b/automl.yaml"), "training_task_definition"),
    (pipeline(trainingTaskInputs=None), "training_task_inputs"),
    (pipeline(trainingTaskInputs={"worker_pool_specs": []}), "training_task_inputs.worker_pool_specs"),
    (pipeline(modelId="model"), "model_id"),
    (
        of_data(bigqueryDestination={"outputUri": "bq://p"}),
        f"{INPUT}.bigquery_destination",
    ),
    (
        of_data(predefinedSplit={"key": "a"}, fractionSplit={}),
        f"{INPUT}.predefined_split",
    ),
    (
        of_data(fractionSplit={"testFraction": 1.5}),
        f"{INPUT}.fraction_split.test_fraction",
    ),
    (of_data(datasetId=""), f"{INPUT}.dataset_id"),
    (of_data(gcsDestination={"outputUriPrefix": "/tmp"}), f"{INPUT}.gcs_destination"),
]
# What is no request for a job at all: (what, raw body, status, text in the message).
NO_JSON: list[tuple[str, bytes, int, str]] = [
    ("text", b"hello", 400, "Invalid JSON payload received"),
    ("nothing", b"", 400, "display_name"),
    ("cut short", b'{"displayName": "a', 400, "Invalid JSON payload received"),
    ("no UTF-8", b'{"displayName": "\xff\xfe"}', 400, "Invalid JSON payload received"),
    ("half a character", b'{"displayName": "\\ud800"}', 400, "Invalid JSON payload received"),
    ("not a number", b'{"displayName": NaN}', 400, "Invalid JSON payload received"),
    ("infinity", b'{"maxTrialCount": Infinity}', 400, "Invalid JSON payload received"),
    ("a list", b"[]", 400, "Invalid JSON payload received"),
    ("a number", b"5", 400, "Invalid JSON payload received"),
    ("null", b"null", 400, "Invalid JSON payload received"),
    ("two values", b"{}{}", 400, "Invalid JSON payload received"),
    ("endless digits", b'{"maxTrialCount": ' + b"9" * 5000 + b"}", 400, "Invalid JSON payload received"),
    ("endless lists", b'{"displayName": ' + b"[" * 100_000, 400, "Invalid JSON payload received"),
    ("deep lists", b'{"labels": ' + b"[" * 400 + b"]" * 400 + b"}", 400, "nests more than 100 deep"),
    ("deep objects", b'{"jobSpec": ' + b'{"a":' * 300 + b"1" + b"}" * 301, 400, "nests more than 100 deep"),
    ("too large", b'{"displayName": "' + b"x" * (4 << 20) + b'"}', 413, "payload size exceeds the limit"),
]
BAD_QUERIES = [
    ("pageSize", "many"),
    ("pageSize", "-1"),
    ("pageSize", "1.5"),
    ("pageSize", "²"),
    ("pageSize", "9" * 5000),
    ("pageToken", "nonsense"),
    ("pageToken", "é"),
    ("pageToken", "W10="),
    ("readMask", "no_such_field"),
    ("filter", "state="),
    ("filter", "("),
    ("filter", 'color="red"'),
    ("filter", 'create_time>"soon"'),
    ("filter", "NOT " * 3000 + "state=x"),
    ("zzz", "1"),
]


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEmulator]:
    """An emulator without a job."""
    emulator = RunningEmulator(tmp_path_factory.mktemp("malformed") / "data")
    yield emulator
    emulator.close()


def kind_of(body: Any) -> Any:
    if "jobSpec" in body:
        return CUSTOM_JOB
    return HYPERPARAMETER_TUNING_JOB if "studySpec" in body else TRAINING_PIPELINE


MUTATIONS = [
    *mutations(),
    *(Mutation(kind_of(body), f"{field} against a rule", body, field) for body, field in AGAINST_THE_RULES),
]


def test_there_are_enough_of_them_to_mean_something() -> None:
    assert len(MUTATIONS) + len(NO_JSON) + len(BAD_QUERIES) >= 300


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: f"{mutation.kind.collection}: {mutation.what}")
def test_mutated_request_is_rejected_by_field_name(empty: RunningEmulator, mutation: Mutation) -> None:
    url = f"{empty.url}/v1/{PARENT}/{mutation.kind.collection}"
    reply = empty.http.post(url, json=mutation.body, timeout=30)
    assert reply.status_code == 400, reply.text
    error = reply.json()["error"]
    named = [violation["field"] for violation in error["details"][0]["fieldViolations"]]
    at_or_below = re.compile(rf"{re.escape(mutation.field)}([.[].*)?", re.DOTALL)
    assert any(at_or_below.fullmatch(each) for each in named), named
    assert all(violation["description"] for violation in error["details"][0]["fieldViolations"])
    assert all(each in error["message"] for each in named)


@pytest.mark.parametrize(("what", "raw", "status", "text"), NO_JSON, ids=lambda value: str(value)[:20])
def test_malformed_body_is_rejected_with_reason(
    empty: RunningEmulator, what: str, raw: bytes, status: int, text: str
) -> None:
    headers = {"Content-Type": "application/json"}
    reply = empty.http.post(f"{empty.url}/v1/{PARENT}/customJobs", data=raw, headers=headers, timeout=30)
    assert reply.status_code == status, reply.text
    assert text in reply.json()["error"]["message"]


@pytest.mark.parametrize(("name", "value"), BAD_QUERIES, ids=lambda value: str(value)[:20])
def test_bad_query_is_rejected_by_parameter_name(empty: RunningEmulator, name: str, value: str) -> None:
    reply = empty.http.get(f"{empty.url}/v1/{PARENT}/customJobs", params={name: value}, timeout=30)
    assert reply.status_code == 400, reply.text
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    assert [each["field"] for each in reply.json()["error"]["details"][0]["fieldViolations"]] == [snake]


def test_none_of_them_left_a_job_behind(empty: RunningEmulator) -> None:
    assert [empty.call("GET", f"v1/{PARENT}/{collection}") for collection in KINDS] == [{}, {}, {}]
