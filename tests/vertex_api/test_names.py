"""Kinds, resource names and states of jobs, and suggestions for misspelt names."""

import typing

import pytest

from vertex_api import names, types
from vertex_api.machines import MACHINES
from vertex_api.names import (
    CUSTOM_JOB,
    HYPERPARAMETER_TUNING_JOB,
    KINDS,
    TRAINING_PIPELINE,
    ResourceName,
    closest_name,
    did_you_mean,
    either,
    location_name,
)
from vertex_api.types import CustomJob, HyperparameterTuningJob, TrainingPipeline


def test_kinds_are_found_by_collection_name() -> None:
    assert {
        "customJobs": CUSTOM_JOB,
        "hyperparameterTuningJobs": HYPERPARAMETER_TUNING_JOB,
        "trainingPipelines": TRAINING_PIPELINE,
    } == KINDS


def test_a_kind_s_message_bears_its_type() -> None:
    assert CUSTOM_JOB.typed_dict is CustomJob
    assert HYPERPARAMETER_TUNING_JOB.typed_dict is HyperparameterTuningJob
    assert TRAINING_PIPELINE.typed_dict is TrainingPipeline


def test_every_kind_has_its_spec_field() -> None:
    for kind in KINDS.values():
        assert kind.spec_field in typing.get_type_hints(kind.typed_dict)


def test_every_kind_has_an_output_only_state() -> None:
    for kind in KINDS.values():
        assert "state" in typing.get_type_hints(kind.typed_dict)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("projects/p/locations/us-central1/customJobs/123", CUSTOM_JOB),
        ("projects/1234/locations/europe-west4/hyperparameterTuningJobs/9", HYPERPARAMETER_TUNING_JOB),
        ("projects/p/locations/us-central1/trainingPipelines/5", TRAINING_PIPELINE),
    ],
)
def test_a_parsed_name_is_written_unchanged(text: str, kind: object) -> None:
    name = ResourceName.parse(text)
    assert str(name) == text
    assert name.kind == kind
    assert text.startswith(f"{location_name(name.project, name.region)}/{name.kind.collection}/")
    assert text.endswith(f"/{name.id}")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "123",
        "projects/p/locations/r/customJobs/",
        "projects/p/locations/r/customJobs/1/operations/2",
        "projects/p/locations/r/trainingJobs/1",
        "project/p/locations/r/customJobs/1",
        "projects/p/regions/r/customJobs/1",
        "/projects/p/locations/r/customJobs/1",
    ],
)
def test_invalid_names_are_rejected_with_the_expected_form(text: str) -> None:
    with pytest.raises(ValueError) as failure:
        ResourceName.parse(text)
    form = "projects/P/locations/R/{customJobs,hyperparameterTuningJobs,trainingPipelines}/ID"
    assert str(failure.value) == f'"{text}" is not {form}'


def test_terminal_states_are_states_of_the_api() -> None:
    enums = [typing.get_args(enum)[0] for enum in (types.JobState, types.PipelineState)]
    assert {state for enum in enums for state in typing.get_args(enum)} >= names.TERMINAL_STATES


def test_job_and_pipeline_states_share_short_names() -> None:
    assert {names.short_state(f"{kind}_STATE_RUNNING") for kind in ("JOB", "PIPELINE")} == {"RUNNING"}


def test_a_job_that_succeeded_has_ended() -> None:
    assert names.SUCCEEDED_STATES < names.TERMINAL_STATES


def test_paused_and_cancelling_are_not_terminal() -> None:
    assert not names.TERMINAL_STATES & {
        *("JOB_STATE_PAUSED", "JOB_STATE_CANCELLING", "JOB_STATE_UPDATING"),
        *("PIPELINE_STATE_PAUSED", "PIPELINE_STATE_CANCELLING"),
    }


def test_the_nearest_name_ignores_case_and_underscores() -> None:
    assert did_you_mean("WORKER_POOL_SPECS", ["scheduling", "workerPoolSpecs"]) == "; did you mean workerPoolSpecs?"
    assert did_you_mean("qqq", ["b", "a"]) == "; known: a, b"
    assert did_you_mean("qqq", []) == ""


def test_a_name_without_similar_names_has_no_closest() -> None:
    assert closest_name("n1-standrad-4", ["n1-standard-4", "n2-standard-4"]) == "n1-standard-4"
    assert closest_name("qqq", ["n1-standard-4"]) is None


def test_choices_are_listed_as_one_says_them() -> None:
    assert either(["a"]) == "a"
    assert either([1, 2]) == "1 or 2"
    assert either(["a", "b", "c"]) == "a, b or c"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("n1-standard-2", "n1-standard-4"),
        ("g2-standard-6", "g2-standard-8"),
        ("n1-standard-400", "n1-standard-96"),
        ("a2-highgpu-3g", "a2-highgpu-4g"),
        ("m1-ultramem-41", "m1-ultramem-80"),
    ],
)
def test_of_sizes_the_next_one_up_is_meant(name: str, meant: str) -> None:
    assert closest_name(name, MACHINES) == meant


def test_the_beginning_of_a_name_means_that_name() -> None:
    accelerators = ["NVIDIA_L4", "NVIDIA_TESLA_T4", "NVIDIA_TESLA_V100", "NVIDIA_B200", "NVIDIA_H100_80GB"]
    assert closest_name("NVIDIA_TESLA_L4", accelerators) == closest_name("L4", accelerators) == "NVIDIA_L4"
    assert closest_name("NVIDIA_T4", accelerators) == "NVIDIA_TESLA_T4"
    assert closest_name("NVIDIA_V100", accelerators) == "NVIDIA_TESLA_V100"
    assert closest_name("NVIDIA_TESLA_H100", accelerators) == "NVIDIA_H100_80GB"
    assert closest_name("TPU_V4", ["TPU_V2", "TPU_V3", "TPU_V4_POD", "TPU_V5_LITEPOD"]) == "TPU_V4_POD"
