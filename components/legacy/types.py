"""The messages of AI Platform Training's API that describe a training job: its discovery document, ml v1, 20251213."""

from typing import Any, Literal, Required

from vertex_api.scalars import Boolean, Double, Duration, Int32, Int64, OutputOnly, String
from vertex_api.types import Message


class AcceleratorConfig(Message, total=False):
    """Accelerators of each machine."""

    count: Int64
    type: Literal[
        "ACCELERATOR_TYPE_UNSPECIFIED",
        "NVIDIA_TESLA_K80",
        "NVIDIA_TESLA_P100",
        "NVIDIA_TESLA_V100",
        "NVIDIA_TESLA_P4",
        "NVIDIA_TESLA_T4",
        "NVIDIA_TESLA_A100",
        "TPU_V2",
        "TPU_V3",
        "TPU_V2_POD",
        "TPU_V3_POD",
        "TPU_V4_POD",
    ]


class DiskConfig(Message, total=False):
    """The boot disk of each machine."""

    bootDiskSizeGb: Int32
    bootDiskType: String


class ReplicaConfig(Message, total=False):
    """What the replicas of one role run, and on what."""

    acceleratorConfig: AcceleratorConfig
    containerArgs: list[String]
    containerCommand: list[String]
    diskConfig: DiskConfig
    imageUri: String
    tpuTfVersion: String


class EncryptionConfig(Message, total=False):
    """The customer's key."""

    kmsKeyName: String


class Scheduling(Message, total=False):
    """How long a job may run and wait."""

    maxRunningTime: Duration
    maxWaitTime: Duration
    priority: Int32


class ParameterSpec(Message, total=False):
    """One parameter to tune."""

    categoricalValues: list[String]
    discreteValues: list[Double]
    maxValue: Double
    minValue: Double
    parameterName: Required[String]
    scaleType: Literal["NONE", "UNIT_LINEAR_SCALE", "UNIT_LOG_SCALE", "UNIT_REVERSE_LOG_SCALE"]
    type: Required[Literal["PARAMETER_TYPE_UNSPECIFIED", "DOUBLE", "INTEGER", "CATEGORICAL", "DISCRETE"]]


class HyperparameterSpec(Message, total=False):
    """A search for the best parameters."""

    algorithm: Literal["ALGORITHM_UNSPECIFIED", "GRID_SEARCH", "RANDOM_SEARCH"]
    enableTrialEarlyStopping: Boolean
    goal: Literal["GOAL_TYPE_UNSPECIFIED", "MAXIMIZE", "MINIMIZE"]
    hyperparameterMetricTag: String
    maxFailedTrials: Int32
    maxParallelTrials: Int32
    maxTrials: Int32
    params: Required[list[ParameterSpec]]
    resumePreviousJobId: String


class TrainingInput(Message, total=False):
    """What a training job does."""

    args: list[String]
    enableWebAccess: Boolean
    encryptionConfig: EncryptionConfig
    evaluatorConfig: ReplicaConfig
    evaluatorCount: Int64
    evaluatorType: String
    hyperparameters: HyperparameterSpec
    jobDir: String
    masterConfig: ReplicaConfig
    masterType: String
    network: String
    packageUris: list[String]
    parameterServerConfig: ReplicaConfig
    parameterServerCount: Int64
    parameterServerType: String
    pythonModule: String
    pythonVersion: String
    region: String
    runtimeVersion: String
    scaleTier: Literal["BASIC", "STANDARD_1", "PREMIUM_1", "BASIC_GPU", "BASIC_TPU", "CUSTOM"]
    scheduling: Scheduling
    serviceAccount: String
    useChiefInTfConfig: Boolean
    workerConfig: ReplicaConfig
    workerCount: Int64
    workerType: String


class Job(Message, total=False):
    """A job as a request holds it, and as `gcloud ai-platform jobs describe` shows it."""

    createTime: OutputOnly[Any]
    endTime: OutputOnly[Any]
    errorMessage: OutputOnly[Any]
    etag: OutputOnly[Any]
    jobId: String
    jobPosition: OutputOnly[Any]
    labels: dict[str, String]
    predictionInput: Any
    predictionOutput: Any
    startTime: OutputOnly[Any]
    state: OutputOnly[Any]
    trainingInput: TrainingInput
    trainingOutput: OutputOnly[Any]
