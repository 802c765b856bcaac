"""The kinds of training job that the API has, and the pipelines around them."""

from dataclasses import dataclass
from typing import Any

from vertex import types


@dataclass(frozen=True)
class Kind:
    """One kind of job: `collection` as in its URL and in a declaration, `type` as the API names the message."""

    collection: str
    type: str

    @property
    def message(self) -> Any:
        """The TypedDict of `vertex.types` that describes the kind."""
        return getattr(types, self.type)


CUSTOM_JOB = Kind("customJobs", "CustomJob")
HYPERPARAMETER_TUNING_JOB = Kind("hyperparameterTuningJobs", "HyperparameterTuningJob")
TRAINING_PIPELINE = Kind("trainingPipelines", "TrainingPipeline")

KINDS = {kind.collection: kind for kind in (CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB)}
"""The jobs that run training code; these can be declared."""

ALL_KINDS = {**KINDS, TRAINING_PIPELINE.collection: TRAINING_PIPELINE}
"""Whatever has a state and can be cancelled: jobs, and pipelines that run one."""
