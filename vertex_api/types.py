"""The training API's messages: generated from its discovery document, do not edit.

aiplatform v1, revision 20261106; written by `python -m tools.generate_types`.
Field names and meanings: the API's own reference. `OutputOnly` fields are set by the service.
"""

from typing import Annotated, Any, Literal, Required

from pydantic import ConfigDict, with_config
from pydantic.alias_generators import to_snake
from typing_extensions import TypedDict

from vertex_api.scalars import Boolean, Double, Duration, Int32, Int64, Numbered, OutputOnly, String, Timestamp

REVISION = "20261106"

_message = with_config(
    ConfigDict(
        extra="forbid", alias_generator=to_snake, validate_by_name=True, validate_by_alias=True, loc_by_alias=False
    )
)

AcceleratorType = Annotated[
    Literal[
        "ACCELERATOR_TYPE_UNSPECIFIED",
        "NVIDIA_TESLA_K80",
        "NVIDIA_TESLA_P100",
        "NVIDIA_TESLA_V100",
        "NVIDIA_TESLA_P4",
        "NVIDIA_TESLA_T4",
        "NVIDIA_TESLA_A100",
        "NVIDIA_A100_80GB",
        "NVIDIA_L4",
        "NVIDIA_H100_80GB",
        "NVIDIA_H100_MEGA_80GB",
        "NVIDIA_H200_141GB",
        "NVIDIA_B200",
        "NVIDIA_GB200",
        "NVIDIA_RTX_PRO_6000",
        "TPU_V2",
        "TPU_V3",
        "TPU_V4_POD",
        "TPU_V5_LITEPOD",
    ],
    Numbered(
        {
            "ACCELERATOR_TYPE_UNSPECIFIED": 0,
            "NVIDIA_TESLA_K80": 1,
            "NVIDIA_TESLA_P100": 2,
            "NVIDIA_TESLA_V100": 3,
            "NVIDIA_TESLA_P4": 4,
            "NVIDIA_TESLA_T4": 5,
            "NVIDIA_TESLA_A100": 8,
            "NVIDIA_A100_80GB": 9,
            "NVIDIA_L4": 11,
            "NVIDIA_H100_80GB": 13,
            "NVIDIA_H100_MEGA_80GB": 14,
            "NVIDIA_H200_141GB": 15,
            "NVIDIA_B200": 16,
            "NVIDIA_GB200": 17,
            "NVIDIA_RTX_PRO_6000": 18,
            "TPU_V2": 6,
            "TPU_V3": 7,
            "TPU_V4_POD": 10,
            "TPU_V5_LITEPOD": 12,
        }
    ),
]
ExamplesExampleGcsSourceDataFormat = Annotated[
    Literal["DATA_FORMAT_UNSPECIFIED", "JSONL"], Numbered({"DATA_FORMAT_UNSPECIFIED": 0, "JSONL": 1})
]
ExplanationMetadataInputMetadataEncoding = Annotated[
    Literal[
        "ENCODING_UNSPECIFIED",
        "IDENTITY",
        "BAG_OF_FEATURES",
        "BAG_OF_FEATURES_SPARSE",
        "INDICATOR",
        "COMBINED_EMBEDDING",
        "CONCAT_EMBEDDING",
    ],
    Numbered(
        {
            "ENCODING_UNSPECIFIED": 0,
            "IDENTITY": 1,
            "BAG_OF_FEATURES": 2,
            "BAG_OF_FEATURES_SPARSE": 3,
            "INDICATOR": 4,
            "COMBINED_EMBEDDING": 5,
            "CONCAT_EMBEDDING": 6,
        }
    ),
]
ExplanationMetadataInputMetadataVisualizationColorMap = Annotated[
    Literal["COLOR_MAP_UNSPECIFIED", "PINK_GREEN", "VIRIDIS", "RED", "GREEN", "RED_GREEN", "PINK_WHITE_GREEN"],
    Numbered(
        {
            "COLOR_MAP_UNSPECIFIED": 0,
            "PINK_GREEN": 1,
            "VIRIDIS": 2,
            "RED": 3,
            "GREEN": 4,
            "RED_GREEN": 6,
            "PINK_WHITE_GREEN": 5,
        }
    ),
]
ExplanationMetadataInputMetadataVisualizationOverlayType = Annotated[
    Literal["OVERLAY_TYPE_UNSPECIFIED", "NONE", "ORIGINAL", "GRAYSCALE", "MASK_BLACK"],
    Numbered({"OVERLAY_TYPE_UNSPECIFIED": 0, "NONE": 1, "ORIGINAL": 2, "GRAYSCALE": 3, "MASK_BLACK": 4}),
]
ExplanationMetadataInputMetadataVisualizationPolarity = Annotated[
    Literal["POLARITY_UNSPECIFIED", "POSITIVE", "NEGATIVE", "BOTH"],
    Numbered({"POLARITY_UNSPECIFIED": 0, "POSITIVE": 1, "NEGATIVE": 2, "BOTH": 3}),
]
ExplanationMetadataInputMetadataVisualizationType = Annotated[
    Literal["TYPE_UNSPECIFIED", "PIXELS", "OUTLINES"], Numbered({"TYPE_UNSPECIFIED": 0, "PIXELS": 1, "OUTLINES": 2})
]
JobState = Annotated[
    Literal[
        "JOB_STATE_UNSPECIFIED",
        "JOB_STATE_QUEUED",
        "JOB_STATE_PENDING",
        "JOB_STATE_RUNNING",
        "JOB_STATE_SUCCEEDED",
        "JOB_STATE_FAILED",
        "JOB_STATE_CANCELLING",
        "JOB_STATE_CANCELLED",
        "JOB_STATE_PAUSED",
        "JOB_STATE_EXPIRED",
        "JOB_STATE_UPDATING",
        "JOB_STATE_PARTIALLY_SUCCEEDED",
    ],
    Numbered(
        {
            "JOB_STATE_UNSPECIFIED": 0,
            "JOB_STATE_QUEUED": 1,
            "JOB_STATE_PENDING": 2,
            "JOB_STATE_RUNNING": 3,
            "JOB_STATE_SUCCEEDED": 4,
            "JOB_STATE_FAILED": 5,
            "JOB_STATE_CANCELLING": 6,
            "JOB_STATE_CANCELLED": 7,
            "JOB_STATE_PAUSED": 8,
            "JOB_STATE_EXPIRED": 9,
            "JOB_STATE_UPDATING": 10,
            "JOB_STATE_PARTIALLY_SUCCEEDED": 11,
        }
    ),
]
ModelDeploymentResourcesType = Annotated[
    Literal["DEPLOYMENT_RESOURCES_TYPE_UNSPECIFIED", "DEDICATED_RESOURCES", "AUTOMATIC_RESOURCES", "SHARED_RESOURCES"],
    Numbered(
        {
            "DEPLOYMENT_RESOURCES_TYPE_UNSPECIFIED": 0,
            "DEDICATED_RESOURCES": 1,
            "AUTOMATIC_RESOURCES": 2,
            "SHARED_RESOURCES": 3,
        }
    ),
]
ModelExportFormatExportableContent = Annotated[
    Literal["EXPORTABLE_CONTENT_UNSPECIFIED", "ARTIFACT", "IMAGE"],
    Numbered({"EXPORTABLE_CONTENT_UNSPECIFIED": 0, "ARTIFACT": 1, "IMAGE": 2}),
]
ModelSourceInfoModelSourceType = Annotated[
    Literal[
        "MODEL_SOURCE_TYPE_UNSPECIFIED",
        "AUTOML",
        "CUSTOM",
        "BQML",
        "MODEL_GARDEN",
        "GENIE",
        "CUSTOM_TEXT_EMBEDDING",
        "MARKETPLACE",
    ],
    Numbered(
        {
            "MODEL_SOURCE_TYPE_UNSPECIFIED": 0,
            "AUTOML": 1,
            "CUSTOM": 2,
            "BQML": 3,
            "MODEL_GARDEN": 4,
            "GENIE": 5,
            "CUSTOM_TEXT_EMBEDDING": 6,
            "MARKETPLACE": 7,
        }
    ),
]
PipelineState = Annotated[
    Literal[
        "PIPELINE_STATE_UNSPECIFIED",
        "PIPELINE_STATE_QUEUED",
        "PIPELINE_STATE_PENDING",
        "PIPELINE_STATE_RUNNING",
        "PIPELINE_STATE_SUCCEEDED",
        "PIPELINE_STATE_FAILED",
        "PIPELINE_STATE_CANCELLING",
        "PIPELINE_STATE_CANCELLED",
        "PIPELINE_STATE_PAUSED",
    ],
    Numbered(
        {
            "PIPELINE_STATE_UNSPECIFIED": 0,
            "PIPELINE_STATE_QUEUED": 1,
            "PIPELINE_STATE_PENDING": 2,
            "PIPELINE_STATE_RUNNING": 3,
            "PIPELINE_STATE_SUCCEEDED": 4,
            "PIPELINE_STATE_FAILED": 5,
            "PIPELINE_STATE_CANCELLING": 6,
            "PIPELINE_STATE_CANCELLED": 7,
            "PIPELINE_STATE_PAUSED": 8,
        }
    ),
]
PresetsModality = Annotated[
    Literal["MODALITY_UNSPECIFIED", "IMAGE", "TEXT", "TABULAR"],
    Numbered({"MODALITY_UNSPECIFIED": 0, "IMAGE": 1, "TEXT": 2, "TABULAR": 3}),
]
PresetsQuery = Annotated[Literal["PRECISE", "FAST"], Numbered({"PRECISE": 0, "FAST": 1})]
ReservationAffinityType = Annotated[
    Literal["TYPE_UNSPECIFIED", "NO_RESERVATION", "ANY_RESERVATION", "SPECIFIC_RESERVATION"],
    Numbered({"TYPE_UNSPECIFIED": 0, "NO_RESERVATION": 1, "ANY_RESERVATION": 2, "SPECIFIC_RESERVATION": 3}),
]
SchedulingStrategy = Annotated[
    Literal["STRATEGY_UNSPECIFIED", "ON_DEMAND", "LOW_COST", "STANDARD", "SPOT", "FLEX_START"],
    Numbered({"STRATEGY_UNSPECIFIED": 0, "ON_DEMAND": 1, "LOW_COST": 2, "STANDARD": 3, "SPOT": 4, "FLEX_START": 6}),
]
StudySpecAlgorithm = Annotated[
    Literal["ALGORITHM_UNSPECIFIED", "GRID_SEARCH", "RANDOM_SEARCH"],
    Numbered({"ALGORITHM_UNSPECIFIED": 0, "GRID_SEARCH": 2, "RANDOM_SEARCH": 3}),
]
StudySpecMeasurementSelectionType = Annotated[
    Literal["MEASUREMENT_SELECTION_TYPE_UNSPECIFIED", "LAST_MEASUREMENT", "BEST_MEASUREMENT"],
    Numbered({"MEASUREMENT_SELECTION_TYPE_UNSPECIFIED": 0, "LAST_MEASUREMENT": 1, "BEST_MEASUREMENT": 2}),
]
StudySpecMetricSpecGoalType = Annotated[
    Literal["GOAL_TYPE_UNSPECIFIED", "MAXIMIZE", "MINIMIZE"],
    Numbered({"GOAL_TYPE_UNSPECIFIED": 0, "MAXIMIZE": 1, "MINIMIZE": 2}),
]
StudySpecObservationNoise = Annotated[
    Literal["OBSERVATION_NOISE_UNSPECIFIED", "LOW", "HIGH"],
    Numbered({"OBSERVATION_NOISE_UNSPECIFIED": 0, "LOW": 1, "HIGH": 2}),
]
StudySpecParameterSpecScaleType = Annotated[
    Literal["SCALE_TYPE_UNSPECIFIED", "UNIT_LINEAR_SCALE", "UNIT_LOG_SCALE", "UNIT_REVERSE_LOG_SCALE"],
    Numbered({"SCALE_TYPE_UNSPECIFIED": 0, "UNIT_LINEAR_SCALE": 1, "UNIT_LOG_SCALE": 2, "UNIT_REVERSE_LOG_SCALE": 3}),
]
TrialState = Annotated[
    Literal["STATE_UNSPECIFIED", "REQUESTED", "ACTIVE", "STOPPING", "SUCCEEDED", "INFEASIBLE"],
    Numbered({"STATE_UNSPECIFIED": 0, "REQUESTED": 1, "ACTIVE": 2, "STOPPING": 3, "SUCCEEDED": 4, "INFEASIBLE": 5}),
]


@_message
class CustomJob(TypedDict, total=False):
    """Represents a job that runs custom workloads such as a Docker container or a Python package."""

    createTime: OutputOnly[Timestamp]
    displayName: Required[String]
    encryptionSpec: "EncryptionSpec"
    endTime: OutputOnly[Timestamp]
    error: OutputOnly["Status"]
    jobSpec: Required["CustomJobSpec"]
    labels: dict[str, String]
    name: OutputOnly[String]
    satisfiesPzi: OutputOnly[Boolean]
    satisfiesPzs: OutputOnly[Boolean]
    startTime: OutputOnly[Timestamp]
    state: OutputOnly[JobState]
    updateTime: OutputOnly[Timestamp]
    webAccessUris: OutputOnly[dict[str, String]]


@_message
class HyperparameterTuningJob(TypedDict, total=False):
    """Represents a HyperparameterTuningJob."""

    createTime: OutputOnly[Timestamp]
    displayName: Required[String]
    encryptionSpec: "EncryptionSpec"
    endTime: OutputOnly[Timestamp]
    error: OutputOnly["Status"]
    labels: dict[str, String]
    maxFailedTrialCount: Int32
    maxTrialCount: Int32
    name: OutputOnly[String]
    parallelTrialCount: Int32
    satisfiesPzi: OutputOnly[Boolean]
    satisfiesPzs: OutputOnly[Boolean]
    startTime: OutputOnly[Timestamp]
    state: OutputOnly[JobState]
    studySpec: Required["StudySpec"]
    trialJobSpec: Required["CustomJobSpec"]
    trials: OutputOnly[list["Trial"]]
    updateTime: OutputOnly[Timestamp]


@_message
class TrainingPipeline(TypedDict, total=False):
    """The TrainingPipeline orchestrates tasks associated with training a Model."""

    createTime: OutputOnly[Timestamp]
    displayName: Required[String]
    encryptionSpec: "EncryptionSpec"
    endTime: OutputOnly[Timestamp]
    error: OutputOnly["Status"]
    inputDataConfig: "InputDataConfig"
    labels: dict[str, String]
    modelId: String
    modelToUpload: "Model"
    name: OutputOnly[String]
    parentModel: String
    startTime: OutputOnly[Timestamp]
    state: OutputOnly[PipelineState]
    trainingTaskDefinition: Required[String]
    trainingTaskInputs: Any
    trainingTaskMetadata: OutputOnly[Any]
    updateTime: OutputOnly[Timestamp]


@_message
class UploadModelRequest(TypedDict, total=False):
    """Request message for ModelService.UploadModel."""

    model: Required["Model"]
    modelId: String
    parentModel: String
    serviceAccount: String


@_message
class EncryptionSpec(TypedDict, total=False):
    """Represents a customer-managed encryption key specification that can be applied to a Vertex AI
    resource."""

    kmsKeyName: Required[String]


@_message
class Status(TypedDict, total=False):
    """The `Status` type defines a logical error model that is suitable for different programming
    environments, including REST APIs and RPC APIs."""

    code: Int32
    details: list[dict[str, Any]]
    message: String


@_message
class CustomJobSpec(TypedDict, total=False):
    """Represents the spec of a CustomJob."""

    baseOutputDirectory: "GcsDestination"
    enableDashboardAccess: Boolean
    enableWebAccess: Boolean
    experiment: String
    experimentRun: String
    models: list[String]
    network: String
    persistentResourceId: String
    protectedArtifactLocationId: String
    pscInterfaceConfig: "PscInterfaceConfig"
    reservedIpRanges: list[String]
    scheduling: "Scheduling"
    serviceAccount: String
    tensorboard: String
    workerPoolSpecs: Required[list["WorkerPoolSpec"]]


@_message
class StudySpec(TypedDict, total=False):
    """Represents specification of a Study."""

    algorithm: StudySpecAlgorithm
    convexAutomatedStoppingSpec: "StudySpecConvexAutomatedStoppingSpec"
    decayCurveStoppingSpec: "StudySpecDecayCurveAutomatedStoppingSpec"
    measurementSelectionType: StudySpecMeasurementSelectionType
    medianAutomatedStoppingSpec: "StudySpecMedianAutomatedStoppingSpec"
    metrics: Required[list["StudySpecMetricSpec"]]
    observationNoise: StudySpecObservationNoise
    parameters: Required[list["StudySpecParameterSpec"]]
    studyStoppingConfig: "StudySpecStudyStoppingConfig"


@_message
class Trial(TypedDict, total=False):
    """A message representing a Trial."""

    clientId: OutputOnly[String]
    customJob: OutputOnly[String]
    endTime: OutputOnly[Timestamp]
    finalMeasurement: OutputOnly["Measurement"]
    id: OutputOnly[String]
    infeasibleReason: OutputOnly[String]
    measurements: OutputOnly[list["Measurement"]]
    name: OutputOnly[String]
    parameters: OutputOnly[list["TrialParameter"]]
    startTime: OutputOnly[Timestamp]
    state: OutputOnly[TrialState]
    webAccessUris: OutputOnly[dict[str, String]]


@_message
class InputDataConfig(TypedDict, total=False):
    """Specifies Vertex AI owned input data to be used for training, and possibly evaluating, the Model."""

    annotationSchemaUri: String
    annotationsFilter: String
    bigqueryDestination: "BigQueryDestination"
    datasetId: Required[String]
    filterSplit: "FilterSplit"
    fractionSplit: "FractionSplit"
    gcsDestination: "GcsDestination"
    persistMlUseAssignment: Boolean
    predefinedSplit: "PredefinedSplit"
    savedQueryId: String
    stratifiedSplit: "StratifiedSplit"
    timestampSplit: "TimestampSplit"


@_message
class Model(TypedDict, total=False):
    """A trained machine learning Model."""

    artifactUri: String
    baseModelSource: "ModelBaseModelSource"
    checkpoints: OutputOnly[list["Checkpoint"]]
    containerSpec: "ModelContainerSpec"
    createTime: OutputOnly[Timestamp]
    dataStats: "ModelDataStats"
    defaultCheckpointId: String
    deployedModels: OutputOnly[list["DeployedModelRef"]]
    description: String
    displayName: Required[String]
    encryptionSpec: "EncryptionSpec"
    etag: String
    explanationSpec: "ExplanationSpec"
    labels: dict[str, String]
    metadata: Any
    metadataArtifact: OutputOnly[String]
    metadataSchemaUri: String
    modelSourceInfo: OutputOnly["ModelSourceInfo"]
    name: String
    originalModelInfo: OutputOnly["ModelOriginalModelInfo"]
    pipelineJob: String
    predictSchemata: "PredictSchemata"
    satisfiesPzi: OutputOnly[Boolean]
    satisfiesPzs: OutputOnly[Boolean]
    supportedDeploymentResourcesTypes: OutputOnly[list[ModelDeploymentResourcesType]]
    supportedExportFormats: OutputOnly[list["ModelExportFormat"]]
    supportedInputStorageFormats: OutputOnly[list[String]]
    supportedOutputStorageFormats: OutputOnly[list[String]]
    trainingPipeline: OutputOnly[String]
    updateTime: OutputOnly[Timestamp]
    versionAliases: list[String]
    versionCreateTime: OutputOnly[Timestamp]
    versionDescription: String
    versionId: OutputOnly[String]
    versionUpdateTime: OutputOnly[Timestamp]


@_message
class GcsDestination(TypedDict, total=False):
    """The Google Cloud Storage location where the output is to be written to."""

    outputUriPrefix: Required[String]


@_message
class PscInterfaceConfig(TypedDict, total=False):
    """Configuration for PSC-I."""

    dnsPeeringConfigs: list["DnsPeeringConfig"]
    networkAttachment: String


@_message
class Scheduling(TypedDict, total=False):
    """All parameters related to queuing and scheduling of custom jobs."""

    disableRetries: Boolean
    maxWaitDuration: Duration
    restartJobOnWorkerRestart: Boolean
    strategy: SchedulingStrategy
    timeout: Duration


@_message
class WorkerPoolSpec(TypedDict, total=False):
    """Represents the spec of a worker pool in a job."""

    containerSpec: "ContainerSpec"
    diskSpec: "DiskSpec"
    lustreMounts: list["LustreMount"]
    machineSpec: "MachineSpec"
    nfsMounts: list["NfsMount"]
    pythonPackageSpec: "PythonPackageSpec"
    replicaCount: Int64


@_message
class StudySpecConvexAutomatedStoppingSpec(TypedDict, total=False):
    """Configuration for ConvexAutomatedStoppingSpec."""

    learningRateParameterName: String
    maxStepCount: Int64
    minMeasurementCount: Int64
    minStepCount: Int64
    updateAllStoppedTrials: Boolean
    useElapsedDuration: Boolean


@_message
class StudySpecDecayCurveAutomatedStoppingSpec(TypedDict, total=False):
    """The decay curve automated stopping rule builds a Gaussian Process Regressor to predict the final
    objective value of a Trial based on the already completed Trials and the intermediate measurements of
    the current Trial."""

    useElapsedDuration: Boolean


@_message
class StudySpecMedianAutomatedStoppingSpec(TypedDict, total=False):
    """The median automated stopping rule stops a pending Trial if the Trial's best objective_value is
    strictly below the median 'performance' of all completed Trials reported up to the Trial's last
    measurement."""

    useElapsedDuration: Boolean


@_message
class StudySpecMetricSpec(TypedDict, total=False):
    """Represents a metric to optimize."""

    goal: StudySpecMetricSpecGoalType
    metricId: Required[String]
    safetyConfig: "StudySpecMetricSpecSafetyMetricConfig"


@_message
class StudySpecParameterSpec(TypedDict, total=False):
    """Represents a single parameter to optimize."""

    categoricalValueSpec: "StudySpecParameterSpecCategoricalValueSpec"
    conditionalParameterSpecs: list["StudySpecParameterSpecConditionalParameterSpec"]
    discreteValueSpec: "StudySpecParameterSpecDiscreteValueSpec"
    doubleValueSpec: "StudySpecParameterSpecDoubleValueSpec"
    integerValueSpec: "StudySpecParameterSpecIntegerValueSpec"
    parameterId: Required[String]
    scaleType: StudySpecParameterSpecScaleType


@_message
class StudySpecStudyStoppingConfig(TypedDict, total=False):
    """The configuration (stopping conditions) for automated stopping of a Study."""

    maxDurationNoProgress: Duration
    maxNumTrials: Int32
    maxNumTrialsNoProgress: Int32
    maximumRuntimeConstraint: "StudyTimeConstraint"
    minNumTrials: Int32
    minimumRuntimeConstraint: "StudyTimeConstraint"
    shouldStopAsap: Boolean


@_message
class Measurement(TypedDict, total=False):
    """A message representing a Measurement of a Trial."""

    elapsedDuration: OutputOnly[Duration]
    metrics: OutputOnly[list["MeasurementMetric"]]
    stepCount: OutputOnly[Int64]


@_message
class TrialParameter(TypedDict, total=False):
    """A message representing a parameter to be tuned."""

    parameterId: OutputOnly[String]
    value: OutputOnly[Any]


@_message
class BigQueryDestination(TypedDict, total=False):
    """The BigQuery location for the output content."""

    outputUri: Required[String]


@_message
class FilterSplit(TypedDict, total=False):
    """Assigns input data to training, validation, and test sets based on the given filters, data pieces not
    matched by any filter are ignored."""

    testFilter: Required[String]
    trainingFilter: Required[String]
    validationFilter: Required[String]


@_message
class FractionSplit(TypedDict, total=False):
    """Assigns the input data to training, validation, and test sets as per the given fractions."""

    testFraction: Double
    trainingFraction: Double
    validationFraction: Double


@_message
class PredefinedSplit(TypedDict, total=False):
    """Assigns input data to training, validation, and test sets based on the value of a provided key."""

    key: Required[String]


@_message
class StratifiedSplit(TypedDict, total=False):
    """Assigns input data to the training, validation, and test sets so that the distribution of values
    found in the categorical column (as specified by the `key` field) is mirrored within each split."""

    key: Required[String]
    testFraction: Double
    trainingFraction: Double
    validationFraction: Double


@_message
class TimestampSplit(TypedDict, total=False):
    """Assigns input data to training, validation, and test sets based on a provided timestamps."""

    key: Required[String]
    testFraction: Double
    trainingFraction: Double
    validationFraction: Double


@_message
class ModelBaseModelSource(TypedDict, total=False):
    """User input field to specify the base model source."""

    genieSource: "GenieSource"
    modelGardenSource: "ModelGardenSource"


@_message
class Checkpoint(TypedDict, total=False):
    """Describes the machine learning model version checkpoint."""

    checkpointId: String
    epoch: Int64
    step: Int64


@_message
class ModelContainerSpec(TypedDict, total=False):
    """Specification of a container for serving predictions."""

    args: list[String]
    command: list[String]
    deploymentTimeout: Duration
    env: list["EnvVar"]
    grpcPorts: list["Port"]
    healthProbe: "Probe"
    healthRoute: String
    imageUri: Required[String]
    invokeRoutePrefix: String
    livenessProbe: "Probe"
    ports: list["Port"]
    predictRoute: String
    sharedMemorySizeMb: Int64
    startupProbe: "Probe"


@_message
class ModelDataStats(TypedDict, total=False):
    """Stats of data used for train or evaluate the Model."""

    testAnnotationsCount: Int64
    testDataItemsCount: Int64
    trainingAnnotationsCount: Int64
    trainingDataItemsCount: Int64
    validationAnnotationsCount: Int64
    validationDataItemsCount: Int64


@_message
class DeployedModelRef(TypedDict, total=False):
    """Points to a DeployedModel."""

    checkpointId: String
    deployedModelId: String
    endpoint: String


@_message
class ExplanationSpec(TypedDict, total=False):
    """Specification of Model explanation."""

    metadata: "ExplanationMetadata"
    parameters: Required["ExplanationParameters"]


@_message
class ModelSourceInfo(TypedDict, total=False):
    """Detail description of the source information of the model."""

    copy: Boolean
    sourceType: ModelSourceInfoModelSourceType


@_message
class ModelOriginalModelInfo(TypedDict, total=False):
    """Contains information about the original Model if this Model is a copy."""

    model: OutputOnly[String]


@_message
class PredictSchemata(TypedDict, total=False):
    """Contains the schemata used in Model's predictions and explanations via PredictionService.Predict,
    PredictionService.Explain and BatchPredictionJob."""

    instanceSchemaUri: String
    parametersSchemaUri: String
    predictionSchemaUri: String


@_message
class ModelExportFormat(TypedDict, total=False):
    """Represents export format supported by the Model."""

    exportableContents: OutputOnly[list[ModelExportFormatExportableContent]]
    id: OutputOnly[String]


@_message
class DnsPeeringConfig(TypedDict, total=False):
    """DNS peering configuration."""

    domain: Required[String]
    targetNetwork: Required[String]
    targetProject: Required[String]


@_message
class ContainerSpec(TypedDict, total=False):
    """The spec of a Container."""

    args: list[String]
    command: list[String]
    env: list["EnvVar"]
    imageUri: Required[String]


@_message
class DiskSpec(TypedDict, total=False):
    """Represents the spec of disk options."""

    bootDiskSizeGb: Int32
    bootDiskType: String


@_message
class LustreMount(TypedDict, total=False):
    """Represents a mount configuration for Lustre file system."""

    filesystem: Required[String]
    instanceIp: Required[String]
    mountPoint: Required[String]
    volumeHandle: Required[String]


@_message
class MachineSpec(TypedDict, total=False):
    """Specification of a single machine."""

    acceleratorCount: Int32
    acceleratorType: AcceleratorType
    gpuPartitionSize: String
    machineType: String
    reservationAffinity: "ReservationAffinity"
    tpuTopology: String


@_message
class NfsMount(TypedDict, total=False):
    """Represents a mount configuration for Network File System (NFS) to mount."""

    mountPoint: Required[String]
    path: Required[String]
    server: Required[String]


@_message
class PythonPackageSpec(TypedDict, total=False):
    """The spec of a Python packaged code."""

    args: list[String]
    env: list["EnvVar"]
    executorImageUri: Required[String]
    packageUris: Required[list[String]]
    pythonModule: Required[String]


@_message
class StudySpecMetricSpecSafetyMetricConfig(TypedDict, total=False):
    """Used in safe optimization to specify threshold levels and risk tolerance."""

    desiredMinSafeTrialsFraction: Double
    safetyThreshold: Double


@_message
class StudySpecParameterSpecCategoricalValueSpec(TypedDict, total=False):
    """Value specification for a parameter in `CATEGORICAL` type."""

    defaultValue: String
    values: Required[list[String]]


@_message
class StudySpecParameterSpecConditionalParameterSpec(TypedDict, total=False):
    """Represents a parameter spec with condition from its parent parameter."""

    parameterSpec: Required["StudySpecParameterSpec"]
    parentCategoricalValues: "StudySpecParameterSpecConditionalParameterSpecCategoricalValueCondition"
    parentDiscreteValues: "StudySpecParameterSpecConditionalParameterSpecDiscreteValueCondition"
    parentIntValues: "StudySpecParameterSpecConditionalParameterSpecIntValueCondition"


@_message
class StudySpecParameterSpecDiscreteValueSpec(TypedDict, total=False):
    """Value specification for a parameter in `DISCRETE` type."""

    defaultValue: Double
    values: Required[list[Double]]


@_message
class StudySpecParameterSpecDoubleValueSpec(TypedDict, total=False):
    """Value specification for a parameter in `DOUBLE` type."""

    defaultValue: Double
    maxValue: Double
    minValue: Double


@_message
class StudySpecParameterSpecIntegerValueSpec(TypedDict, total=False):
    """Value specification for a parameter in `INTEGER` type."""

    defaultValue: Int64
    maxValue: Int64
    minValue: Int64


@_message
class StudyTimeConstraint(TypedDict, total=False):
    """Time-based Constraint for Study"""

    endTime: Timestamp
    maxDuration: Duration


@_message
class MeasurementMetric(TypedDict, total=False):
    """A message representing a metric in the measurement."""

    metricId: OutputOnly[String]
    value: OutputOnly[Double]


@_message
class GenieSource(TypedDict, total=False):
    """Contains information about the source of the models generated from Generative AI Studio."""

    baseModelUri: Required[String]


@_message
class ModelGardenSource(TypedDict, total=False):
    """Contains information about the source of the models generated from Model Garden."""

    publicModelName: Required[String]
    skipHfModelCache: Boolean
    versionId: String


@_message
class EnvVar(TypedDict, total=False):
    """Represents an environment variable present in a Container or Python Module."""

    name: Required[String]
    value: String


@_message
class Port(TypedDict, total=False):
    """Represents a network port in a container."""

    containerPort: Int32


@_message
class Probe(TypedDict, total=False):
    """Probe describes a health check to be performed against a container to determine whether it is alive
    or ready to receive traffic."""

    exec: "ProbeExecAction"
    failureThreshold: Int32
    grpc: "ProbeGrpcAction"
    httpGet: "ProbeHttpGetAction"
    initialDelaySeconds: Int32
    periodSeconds: Int32
    successThreshold: Int32
    tcpSocket: "ProbeTcpSocketAction"
    timeoutSeconds: Int32


@_message
class ExplanationMetadata(TypedDict, total=False):
    """Metadata describing the Model's input and output for explanation."""

    featureAttributionsSchemaUri: String
    inputs: dict[str, "ExplanationMetadataInputMetadata"]
    latentSpaceSource: String
    outputs: dict[str, "ExplanationMetadataOutputMetadata"]


@_message
class ExplanationParameters(TypedDict, total=False):
    """Parameters to configure explaining for Model's predictions."""

    examples: "Examples"
    integratedGradientsAttribution: "IntegratedGradientsAttribution"
    outputIndices: list[Any]
    sampledShapleyAttribution: "SampledShapleyAttribution"
    topK: Int32
    xraiAttribution: "XraiAttribution"


@_message
class ReservationAffinity(TypedDict, total=False):
    """A ReservationAffinity can be used to configure a Vertex AI resource (e.g., a DeployedModel) to draw
    its Compute Engine resources from a Shared Reservation, or exclusively from on-demand capacity."""

    key: String
    reservationAffinityType: ReservationAffinityType
    values: list[String]


@_message
class StudySpecParameterSpecConditionalParameterSpecCategoricalValueCondition(TypedDict, total=False):
    """Represents the spec to match categorical values from parent parameter."""

    values: Required[list[String]]


@_message
class StudySpecParameterSpecConditionalParameterSpecDiscreteValueCondition(TypedDict, total=False):
    """Represents the spec to match discrete values from parent parameter."""

    values: Required[list[Double]]


@_message
class StudySpecParameterSpecConditionalParameterSpecIntValueCondition(TypedDict, total=False):
    """Represents the spec to match integer values from parent parameter."""

    values: Required[list[Int64]]


@_message
class ProbeExecAction(TypedDict, total=False):
    """ExecAction specifies a command to execute."""

    command: list[String]


@_message
class ProbeGrpcAction(TypedDict, total=False):
    """GrpcAction checks the health of a container using a gRPC service."""

    port: Int32
    service: String


@_message
class ProbeHttpGetAction(TypedDict, total=False):
    """HttpGetAction describes an action based on HTTP Get requests."""

    host: String
    httpHeaders: list["ProbeHttpHeader"]
    path: String
    port: Int32
    scheme: String


@_message
class ProbeTcpSocketAction(TypedDict, total=False):
    """TcpSocketAction probes the health of a container by opening a TCP socket connection."""

    host: String
    port: Int32


@_message
class ExplanationMetadataInputMetadata(TypedDict, total=False):
    """Metadata of the input of a feature."""

    denseShapeTensorName: String
    encodedBaselines: list[Any]
    encodedTensorName: String
    encoding: ExplanationMetadataInputMetadataEncoding
    featureValueDomain: "ExplanationMetadataInputMetadataFeatureValueDomain"
    groupName: String
    indexFeatureMapping: list[String]
    indicesTensorName: String
    inputBaselines: list[Any]
    inputTensorName: String
    modality: String
    visualization: "ExplanationMetadataInputMetadataVisualization"


@_message
class ExplanationMetadataOutputMetadata(TypedDict, total=False):
    """Metadata of the prediction output to be explained."""

    displayNameMappingKey: String
    indexDisplayNameMapping: Any
    outputTensorName: String


@_message
class Examples(TypedDict, total=False):
    """Example-based explainability that returns the nearest neighbors from the provided dataset."""

    exampleGcsSource: "ExamplesExampleGcsSource"
    nearestNeighborSearchConfig: Any
    neighborCount: Int32
    presets: "Presets"


@_message
class IntegratedGradientsAttribution(TypedDict, total=False):
    """An attribution method that computes the Aumann-Shapley value taking advantage of the model's fully
    differentiable structure."""

    blurBaselineConfig: "BlurBaselineConfig"
    smoothGradConfig: "SmoothGradConfig"
    stepCount: Int32


@_message
class SampledShapleyAttribution(TypedDict, total=False):
    """An attribution method that approximates Shapley values for features that contribute to the label
    being predicted."""

    pathCount: Int32


@_message
class XraiAttribution(TypedDict, total=False):
    """An explanation method that redistributes Integrated Gradients attributions to segmented regions,
    taking advantage of the model's fully differentiable structure."""

    blurBaselineConfig: "BlurBaselineConfig"
    smoothGradConfig: "SmoothGradConfig"
    stepCount: Int32


@_message
class ProbeHttpHeader(TypedDict, total=False):
    """HttpHeader describes a custom header to be used in HTTP probes"""

    name: String
    value: String


@_message
class ExplanationMetadataInputMetadataFeatureValueDomain(TypedDict, total=False):
    """Domain details of the input feature value."""

    maxValue: Double
    minValue: Double
    originalMean: Double
    originalStddev: Double


@_message
class ExplanationMetadataInputMetadataVisualization(TypedDict, total=False):
    """Visualization configurations for image explanation."""

    clipPercentLowerbound: Double
    clipPercentUpperbound: Double
    colorMap: ExplanationMetadataInputMetadataVisualizationColorMap
    overlayType: ExplanationMetadataInputMetadataVisualizationOverlayType
    polarity: ExplanationMetadataInputMetadataVisualizationPolarity
    type: ExplanationMetadataInputMetadataVisualizationType


@_message
class ExamplesExampleGcsSource(TypedDict, total=False):
    """The Cloud Storage input instances."""

    dataFormat: ExamplesExampleGcsSourceDataFormat
    gcsSource: "GcsSource"


@_message
class Presets(TypedDict, total=False):
    """Preset configuration for example-based explanations"""

    modality: PresetsModality
    query: PresetsQuery


@_message
class BlurBaselineConfig(TypedDict, total=False):
    """Config for blur baseline."""

    maxBlurSigma: Double


@_message
class SmoothGradConfig(TypedDict, total=False):
    """Config for SmoothGrad approximation of gradients."""

    featureNoiseSigma: "FeatureNoiseSigma"
    noiseSigma: Double
    noisySampleCount: Int32


@_message
class GcsSource(TypedDict, total=False):
    """The Google Cloud Storage location for the input content."""

    uris: Required[list[String]]


@_message
class FeatureNoiseSigma(TypedDict, total=False):
    """Noise sigma by features."""

    noiseSigma: list["FeatureNoiseSigmaNoiseSigmaForFeature"]


@_message
class FeatureNoiseSigmaNoiseSigmaForFeature(TypedDict, total=False):
    """Noise sigma for a single feature."""

    name: String
    sigma: Double
