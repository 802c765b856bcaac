"""The kinds of training job in the API, and training pipelines."""

from dataclasses import dataclass
from typing import Any

from vertex_api import types


@dataclass(frozen=True)
class Kind:
    """A kind of job: `collection` as in its URL and in a declaration, and `type`, the name of its message.

    `spec_field` is the field with what to run: a CustomJobSpec, or the inputs of a pipeline's task.
    """

    collection: str
    type: str
    spec_field: str

    @property
    def typed_dict(self) -> Any:
        """The TypedDict of `vertex_api.types` that describes the kind."""
        return getattr(types, self.type)


CUSTOM_JOB = Kind("customJobs", "CustomJob", "jobSpec")
HYPERPARAMETER_TUNING_JOB = Kind("hyperparameterTuningJobs", "HyperparameterTuningJob", "trialJobSpec")
TRAINING_PIPELINE = Kind("trainingPipelines", "TrainingPipeline", "trainingTaskInputs")

KINDS = {kind.collection: kind for kind in (CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE)}
"""All resources that run: jobs, and pipelines that run one."""
