"""Kinds: each is known by its collection and has its messages."""

import typing

from vertex_api.job_kinds import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, KINDS, TRAINING_PIPELINE
from vertex_api.types import CustomJob, HyperparameterTuningJob, TrainingPipeline


def test_every_kind_is_found_by_the_name_of_its_collection() -> None:
    assert {
        "customJobs": CUSTOM_JOB,
        "hyperparameterTuningJobs": HYPERPARAMETER_TUNING_JOB,
        "trainingPipelines": TRAINING_PIPELINE,
    } == KINDS


def test_the_message_of_a_kind_is_the_one_that_bears_its_type() -> None:
    assert CUSTOM_JOB.message is CustomJob
    assert HYPERPARAMETER_TUNING_JOB.message is HyperparameterTuningJob
    assert TRAINING_PIPELINE.message is TrainingPipeline


def test_what_a_kind_runs_stands_in_one_of_its_fields() -> None:
    for kind in KINDS.values():
        assert kind.spec_field in typing.get_type_hints(kind.message)


def test_every_kind_has_a_state_that_only_the_service_sets() -> None:
    for kind in KINDS.values():
        assert "state" in typing.get_type_hints(kind.message)
