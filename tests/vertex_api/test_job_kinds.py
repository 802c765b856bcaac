"""Kinds: each is known by its collection and has its messages."""

import typing

from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, KINDS, TRAINING_PIPELINE
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
