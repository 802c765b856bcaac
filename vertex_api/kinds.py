"""The kinds of training job that the API has, and the pipelines around them."""

from dataclasses import dataclass
from typing import Any

from vertex_api import types


@dataclass(frozen=True)
class Kind:
    """One kind of job: `collection` as in its URL and in a declaration, `type` as the API names the message.

    `spec_field` is the field that says what to run: a CustomJobSpec, or a pipeline's inputs for its task.
    """

    collection: str
    type: str
    spec_field: str

    @property
    def message(self) -> Any:
        """The TypedDict of `vertex_api.types` that describes the kind."""
        return getattr(types, self.type)


CUSTOM_JOB = Kind("customJobs", "CustomJob", "jobSpec")
HYPERPARAMETER_TUNING_JOB = Kind("hyperparameterTuningJobs", "HyperparameterTuningJob", "trialJobSpec")
TRAINING_PIPELINE = Kind("trainingPipelines", "TrainingPipeline", "trainingTaskInputs")

KINDS = {kind.collection: kind for kind in (CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE)}
"""Whatever can be declared, has a state and can be cancelled: jobs, and pipelines that run one."""
