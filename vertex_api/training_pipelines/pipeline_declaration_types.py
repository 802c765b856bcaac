"""The shape of a training pipeline as it is declared: the API's own, with the inputs of its task spelled out.

The API calls these inputs free JSON; what they hold is `CustomJobSpec` for a custom task, and for a tuning task the
fields of a HyperparameterTuningJob that its pipeline does not have itself (Google's pages on creating pipelines).
"""

from typing import Required

from typing_extensions import TypedDict

from vertex_api.scalar_types import Int32, String
from vertex_api.types import CustomJobSpec, EncryptionSpec, InputDataConfig, Model, StudySpec


class TuningTaskInputs(TypedDict, total=False):
    """What a tuning task takes: a study, and the job of each of its trials."""

    studySpec: Required[StudySpec]
    trialJobSpec: Required[CustomJobSpec]
    maxTrialCount: Required[Int32]
    parallelTrialCount: Required[Int32]
    maxFailedTrialCount: Int32


class TrainingPipeline(TypedDict, total=False):
    """A pipeline that runs a custom or a tuning job, and may upload its model.

    Without a `trainingTaskDefinition` the inputs say which of the two; a `modelToUpload` without a display name has the
    pipeline's.
    """

    displayName: Required[String]
    labels: dict[str, String]
    encryptionSpec: EncryptionSpec
    inputDataConfig: InputDataConfig
    trainingTaskDefinition: String
    trainingTaskInputs: Required[CustomJobSpec | TuningTaskInputs]
    modelToUpload: Model
    modelId: String
    parentModel: String
