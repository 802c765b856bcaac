"""Good requests with one thing wrong are refused by its name: none is a server's error, none leaves a job behind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, Required, get_origin, get_type_hints

import pytest
import requests
from typing_extensions import is_typeddict

from tests.vertex_api.jobs import ABSENT, edited
from tests.vertex_emulator.api.requests import (
    ACCOUNT,
    DURATION,
    GOOD,
    KEY,
    LOCATION,
    TIMESTAMP,
    Names,
    custom_job,
    fields_of,
    is_set,
    of_data,
    of_parameter,
    of_spec,
    of_study,
    package,
    pipeline,
    pool,
    tuning_job,
)
from tests.vertex_emulator.running import PARENT, RunningEmulator
from vertex_api.messages import show_path, split_hint
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, KINDS, TRAINING_PIPELINE, Kind
from vertex_emulator.http.responses import to_snake_case

Path = tuple[str | int, ...]
MODEL_LEVELS = 2  # the fields below are description, of which each would be the same again
WRONG: dict[Any, tuple[Any, ...]] = {
    str: (5, {"a": "b"}),
    bool: ("yes", 1),
    int: ("one", 1.5, 2**63, "9" * 5000),
    float: ("fast", [1], 10**400),
    Literal: ("NO_SUCH_VALUE", 999),
    list: ("text", [None], {"a": 1}),
    dict: (["a"], {"a": 5}),
    DURATION: ("1h", 3600, "999999999999999s"),
    TIMESTAMP: ("yesterday", "2026-02-30T00:00:00Z"),
    "message": ("text", [1], 7),
}


class Mutation(NamedTuple):
    """A request for a job with something wrong in it, and the field that the refusal must name."""

    kind: Kind
    what: str
    body: Any
    field: str


def mutations() -> Iterator[Mutation]:
    """Every mutation, field by field."""
    for kind, bodies in GOOD.items():
        yield Mutation(kind, "unknown field of the whole", {**bodies[0], "zzz": 1}, "zzz")
        for names, hint in fields_of(kind):
            if names[0] != "modelToUpload" or len(names) <= MODEL_LEVELS:
                body = next((each for each in bodies if is_set(each, names)), None)
                assert body is not None, f"no good {kind.type} sets {names}"
                yield from _of_field(kind, body, place(body, names), hint)


def place(body: Any, names: Names) -> Path:
    """Where the first value of a field stands in a body, with the indices of lists and the keys of maps."""
    if not names:
        return ()
    if isinstance(body, list):
        index = next(index for index, each in enumerate(body) if is_set(each, names))
        return (index, *place(body[index], names))
    if names[0] in body and is_set(body[names[0]], names[1:]):
        return (names[0], *place(body[names[0]], names[1:]))
    key = next(key for key, each in body.items() if is_set(each, names))
    return (key, *place(body[key], names))


def _of_field(kind: Kind, body: Any, at: Path, hint: Any) -> Iterator[Mutation]:
    inner, _ = split_hint(hint)
    field = to_snake_case(show_path(at))
    for value in WRONG.get(_type_of(hint), ()):
        yield Mutation(kind, f"{field} = {str(value)[:20]}", edited(body, *at, to=value), field)
    if get_origin(hint) is Required:
        yield Mutation(kind, f"{field} absent", edited(body, *at, to=ABSENT), field)
        yield Mutation(kind, f"{field} null", edited(body, *at, to=None), field)
    if field.rpartition(".")[2] != str(at[-1]) and isinstance(at[-1], str):
        twice = edited(body, *at[:-1], to_snake_case(at[-1]), to=_value_at(body, at))
        yield Mutation(kind, f"{field} twice", twice, field)
    if is_typeddict(inner) and set(get_type_hints(inner)) and isinstance(_value_at(body, at), dict):
        yield Mutation(kind, f"unknown field of {field}", edited(body, *at, "zzz", to=1), f"{field}.zzz")


def _type_of(hint: Any) -> Any:
    inner, marks = split_hint(hint)
    if is_typeddict(inner):
        return "message"
    return next((mark for mark in marks if mark in (DURATION, TIMESTAMP)), get_origin(inner) or inner)


def _value_at(body: Any, at: Path) -> Any:
    for part in at:
        body = body[part]
    return body


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
    (of_spec(scheduling={"maxWaitDuration": "-1s"}), "job_spec.scheduling.max_wait_duration"),
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
    (tuning_job(parallelTrialCount=0), "parallel_trial_count"),
    (of_study(metrics=[]), "study_spec.metrics"),
    (of_study(metrics=[{"metricId": "a b"}]), "study_spec.metrics[0].metric_id"),
    (of_study(parameters=[]), "study_spec.parameters"),
    (of_study(algorithm="GRID_SEARCH"), f"{PARAMETER}.double_value_spec"),
    (of_study(medianAutomatedStoppingSpec={}, decayCurveStoppingSpec={}), "study_spec.median_automated_stopping_spec"),
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


def test_mutated_requests_are_rejected_by_field_name(empty: RunningEmulator) -> None:
    against = (Mutation(kind_of(body), f"{field} against a rule", body, field) for body, field in AGAINST_THE_RULES)
    tried = [*mutations(), *against]
    assert len(tried) > 800
    wrong = {}
    for mutation in tried:
        reply = empty.http.post(f"{empty.url}/v1/{PARENT}/{mutation.kind.collection}", json=mutation.body)
        if not is_refused_by_name(reply, mutation.field):
            wrong[f"{mutation.kind.collection}: {mutation.what}"] = reply.text
    assert wrong == {}


def is_refused_by_name(reply: requests.Response, field: str) -> bool:
    """Whether a field, or one below it, is refused with a description; the message names all that are."""
    if reply.status_code != 400:
        return False
    error = reply.json()["error"]
    violations = error["details"][0]["fieldViolations"]
    at_or_below = re.compile(rf"{re.escape(field)}([.[].*)?", re.DOTALL)
    return any(at_or_below.fullmatch(each["field"]) for each in violations) and all(
        each["description"] and each["field"] in error["message"] for each in violations
    )


@pytest.mark.parametrize(("what", "raw", "status", "text"), NO_JSON, ids=lambda value: str(value)[:20])
def test_malformed_body_is_rejected_with_reason(
    empty: RunningEmulator, what: str, raw: bytes, status: int, text: str
) -> None:
    headers = {"Content-Type": "application/json"}
    reply = empty.http.post(f"{empty.url}/v1/{PARENT}/customJobs", data=raw, headers=headers)
    assert reply.status_code == status, reply.text
    assert text in reply.json()["error"]["message"]


@pytest.mark.parametrize(("name", "value"), BAD_QUERIES, ids=lambda value: str(value)[:20])
def test_bad_query_is_rejected_by_parameter_name(empty: RunningEmulator, name: str, value: str) -> None:
    reply = empty.http.get(f"{empty.url}/v1/{PARENT}/customJobs", params={name: value})
    assert reply.status_code == 400, reply.text
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    assert [each["field"] for each in reply.json()["error"]["details"][0]["fieldViolations"]] == [snake]


def test_none_of_them_left_a_job_behind(empty: RunningEmulator) -> None:
    assert [empty.call("GET", f"v1/{PARENT}/{collection}") for collection in KINDS] == [{}, {}, {}]
