"""The training API's messages: generated from its discovery document, do not edit.

aiplatform v1, revision 20261106; written by `python -m tools.discovery`.
Field names and meanings: the API's own reference. `OutputOnly` fields are set by the service.
"""

from typing import Annotated, Any, Literal, Required

from pydantic import ConfigDict, with_config
from pydantic.alias_generators import to_snake
from typing_extensions import TypedDict

from vertex_api.scalars import Boolean, Double, Duration, Float, Int32, Int64, Numbered, OutputOnly, String, Timestamp

REVISION = "20261106"


@with_config(
    ConfigDict(
        extra="forbid", alias_generator=to_snake, validate_by_name=True, validate_by_alias=True, loc_by_alias=False
    )
)
class Message(TypedDict, total=False):
    """A message of the API, with its fields in either spelling and no others."""


# fmt: off
AcceleratorType = Annotated[Literal[
    "ACCELERATOR_TYPE_UNSPECIFIED", "NVIDIA_TESLA_K80", "NVIDIA_TESLA_P100", "NVIDIA_TESLA_V100", "NVIDIA_TESLA_P4",
    "NVIDIA_TESLA_T4", "NVIDIA_TESLA_A100", "NVIDIA_A100_80GB", "NVIDIA_L4", "NVIDIA_H100_80GB",
    "NVIDIA_H100_MEGA_80GB", "NVIDIA_H200_141GB", "NVIDIA_B200", "NVIDIA_GB200", "NVIDIA_RTX_PRO_6000", "TPU_V2",
    "TPU_V3", "TPU_V4_POD", "TPU_V5_LITEPOD"
], Numbered(0, 1, 2, 3, 4, 5, 8, 9, 11, 13, 14, 15, 16, 17, 18, 6, 7, 10, 12)]
ArtifactState = Annotated[Literal["STATE_UNSPECIFIED", "PENDING", "LIVE"], Numbered(0, 1, 2)]
EventType = Annotated[Literal["TYPE_UNSPECIFIED", "INPUT", "OUTPUT"], Numbered(0, 1, 2)]
ExamplesExampleGcsSourceDataFormat = Annotated[Literal["DATA_FORMAT_UNSPECIFIED", "JSONL"], Numbered(0, 1)]
ExecutionState = Annotated[Literal[
    "STATE_UNSPECIFIED", "NEW", "RUNNING", "COMPLETE", "FAILED", "CACHED", "CANCELLED"
], Numbered(0, 1, 2, 3, 4, 5, 6)]
ExplanationMetadataInputMetadataEncoding = Annotated[Literal[
    "ENCODING_UNSPECIFIED", "IDENTITY", "BAG_OF_FEATURES", "BAG_OF_FEATURES_SPARSE", "INDICATOR", "COMBINED_EMBEDDING",
    "CONCAT_EMBEDDING"
], Numbered(0, 1, 2, 3, 4, 5, 6)]
ExplanationMetadataInputMetadataVisualizationColorMap = Annotated[Literal[
    "COLOR_MAP_UNSPECIFIED", "PINK_GREEN", "VIRIDIS", "RED", "GREEN", "RED_GREEN", "PINK_WHITE_GREEN"
], Numbered(0, 1, 2, 3, 4, 6, 5)]
ExplanationMetadataInputMetadataVisualizationOverlayType = Annotated[Literal[
    "OVERLAY_TYPE_UNSPECIFIED", "NONE", "ORIGINAL", "GRAYSCALE", "MASK_BLACK"
], Numbered(0, 1, 2, 3, 4)]
ExplanationMetadataInputMetadataVisualizationPolarity = Annotated[Literal[
    "POLARITY_UNSPECIFIED", "POSITIVE", "NEGATIVE", "BOTH"
], Numbered(0, 1, 2, 3)]
ExplanationMetadataInputMetadataVisualizationType = Annotated[Literal[
    "TYPE_UNSPECIFIED", "PIXELS", "OUTLINES"
], Numbered(0, 1, 2)]
JobState = Annotated[Literal[
    "JOB_STATE_UNSPECIFIED", "JOB_STATE_QUEUED", "JOB_STATE_PENDING", "JOB_STATE_RUNNING", "JOB_STATE_SUCCEEDED",
    "JOB_STATE_FAILED", "JOB_STATE_CANCELLING", "JOB_STATE_CANCELLED", "JOB_STATE_PAUSED", "JOB_STATE_EXPIRED",
    "JOB_STATE_UPDATING", "JOB_STATE_PARTIALLY_SUCCEEDED"
], Numbered(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)]
ModelDeploymentResourcesType = Annotated[Literal[
    "DEPLOYMENT_RESOURCES_TYPE_UNSPECIFIED", "DEDICATED_RESOURCES", "AUTOMATIC_RESOURCES", "SHARED_RESOURCES"
], Numbered(0, 1, 2, 3)]
ModelExportFormatExportableContent = Annotated[Literal[
    "EXPORTABLE_CONTENT_UNSPECIFIED", "ARTIFACT", "IMAGE"
], Numbered(0, 1, 2)]
ModelSourceInfoModelSourceType = Annotated[Literal[
    "MODEL_SOURCE_TYPE_UNSPECIFIED", "AUTOML", "CUSTOM", "BQML", "MODEL_GARDEN", "GENIE", "CUSTOM_TEXT_EMBEDDING",
    "MARKETPLACE"
], Numbered(0, 1, 2, 3, 4, 5, 6, 7)]
PipelineState = Annotated[Literal[
    "PIPELINE_STATE_UNSPECIFIED", "PIPELINE_STATE_QUEUED", "PIPELINE_STATE_PENDING", "PIPELINE_STATE_RUNNING",
    "PIPELINE_STATE_SUCCEEDED", "PIPELINE_STATE_FAILED", "PIPELINE_STATE_CANCELLING", "PIPELINE_STATE_CANCELLED",
    "PIPELINE_STATE_PAUSED"
], Numbered(0, 1, 2, 3, 4, 5, 6, 7, 8)]
PresetsModality = Annotated[Literal["MODALITY_UNSPECIFIED", "IMAGE", "TEXT", "TABULAR"], Numbered(0, 1, 2, 3)]
PresetsQuery = Annotated[Literal["PRECISE", "FAST"], Numbered(0, 1)]
ReservationAffinityType = Annotated[Literal[
    "TYPE_UNSPECIFIED", "NO_RESERVATION", "ANY_RESERVATION", "SPECIFIC_RESERVATION"
], Numbered(0, 1, 2, 3)]
SchedulingStrategy = Annotated[Literal[
    "STRATEGY_UNSPECIFIED", "ON_DEMAND", "LOW_COST", "STANDARD", "SPOT", "FLEX_START"
], Numbered(0, 1, 2, 3, 4, 6)]
StudySpecAlgorithm = Annotated[Literal["ALGORITHM_UNSPECIFIED", "GRID_SEARCH", "RANDOM_SEARCH"], Numbered(0, 2, 3)]
StudySpecMeasurementSelectionType = Annotated[Literal[
    "MEASUREMENT_SELECTION_TYPE_UNSPECIFIED", "LAST_MEASUREMENT", "BEST_MEASUREMENT"
], Numbered(0, 1, 2)]
StudySpecMetricSpecGoalType = Annotated[Literal["GOAL_TYPE_UNSPECIFIED", "MAXIMIZE", "MINIMIZE"], Numbered(0, 1, 2)]
StudySpecObservationNoise = Annotated[Literal["OBSERVATION_NOISE_UNSPECIFIED", "LOW", "HIGH"], Numbered(0, 1, 2)]
StudySpecParameterSpecScaleType = Annotated[Literal[
    "SCALE_TYPE_UNSPECIFIED", "UNIT_LINEAR_SCALE", "UNIT_LOG_SCALE", "UNIT_REVERSE_LOG_SCALE"
], Numbered(0, 1, 2, 3)]
TensorboardTimeSeriesValueType = Annotated[Literal[
    "VALUE_TYPE_UNSPECIFIED", "SCALAR", "TENSOR", "BLOB_SEQUENCE"
], Numbered(0, 1, 2, 3)]
TrialState = Annotated[Literal[
    "STATE_UNSPECIFIED", "REQUESTED", "ACTIVE", "STOPPING", "SUCCEEDED", "INFEASIBLE"
], Numbered(0, 1, 2, 3, 4, 5)]
# fmt: on


class CustomJob(Message, total=False):
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


class HyperparameterTuningJob(Message, total=False):
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


class TrainingPipeline(Message, total=False):
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


class UploadModelRequest(Message, total=False):
    """Request message for ModelService.UploadModel."""

    model: Required["Model"]
    modelId: String
    parentModel: String
    serviceAccount: String


class CopyModelRequest(Message, total=False):
    """Request message for ModelService.CopyModel."""

    customServiceAccount: String
    encryptionSpec: "EncryptionSpec"
    modelId: String
    parentModel: String
    sourceModel: Required[String]


class ExportModelRequest(Message, total=False):
    """Request message for ModelService.ExportModel."""

    outputConfig: Required["ExportModelRequestOutputConfig"]


class MergeVersionAliasesRequest(Message, total=False):
    """Request message for ModelService.MergeVersionAliases."""

    versionAliases: Required[list[String]]


class Tensorboard(Message, total=False):
    """Tensorboard is a physical database that stores users' training metrics."""

    blobStoragePathPrefix: OutputOnly[String]
    createTime: OutputOnly[Timestamp]
    description: String
    displayName: Required[String]
    encryptionSpec: "EncryptionSpec"
    etag: String
    isDefault: Boolean
    labels: dict[str, String]
    name: OutputOnly[String]
    runCount: OutputOnly[Int32]
    satisfiesPzi: OutputOnly[Boolean]
    satisfiesPzs: OutputOnly[Boolean]
    updateTime: OutputOnly[Timestamp]


class TensorboardExperiment(Message, total=False):
    """A TensorboardExperiment is a group of TensorboardRuns, that are typically the results of a training job run, in a
    Tensorboard."""

    createTime: OutputOnly[Timestamp]
    description: String
    displayName: String
    etag: String
    labels: dict[str, String]
    name: OutputOnly[String]
    source: String
    updateTime: OutputOnly[Timestamp]


class WriteTensorboardExperimentDataRequest(Message, total=False):
    """Request message for TensorboardService.WriteTensorboardExperimentData."""

    writeRunDataRequests: Required[list["WriteTensorboardRunDataRequest"]]


class BatchCreateTensorboardRunsRequest(Message, total=False):
    """Request message for TensorboardService.BatchCreateTensorboardRuns."""

    requests: Required[list["CreateTensorboardRunRequest"]]


class BatchCreateTensorboardTimeSeriesRequest(Message, total=False):
    """Request message for TensorboardService.BatchCreateTensorboardTimeSeries."""

    requests: Required[list["CreateTensorboardTimeSeriesRequest"]]


class MetadataStore(Message, total=False):
    """Instance of a metadata store."""

    createTime: OutputOnly[Timestamp]
    dataplexConfig: "MetadataStoreDataplexConfig"
    description: String
    encryptionSpec: "EncryptionSpec"
    name: OutputOnly[String]
    state: OutputOnly["MetadataStoreMetadataStoreState"]
    updateTime: OutputOnly[Timestamp]


class Context(Message, total=False):
    """Instance of a general context."""

    createTime: OutputOnly[Timestamp]
    description: String
    displayName: String
    etag: String
    labels: dict[str, String]
    metadata: dict[str, Any]
    name: String
    parentContexts: OutputOnly[list[String]]
    schemaTitle: String
    schemaVersion: String
    updateTime: OutputOnly[Timestamp]


class Execution(Message, total=False):
    """Instance of a general execution."""

    createTime: OutputOnly[Timestamp]
    description: String
    displayName: String
    etag: String
    labels: dict[str, String]
    metadata: dict[str, Any]
    name: OutputOnly[String]
    schemaTitle: String
    schemaVersion: String
    state: ExecutionState
    updateTime: OutputOnly[Timestamp]


class Artifact(Message, total=False):
    """Instance of a general artifact."""

    createTime: OutputOnly[Timestamp]
    description: String
    displayName: String
    etag: String
    labels: dict[str, String]
    metadata: dict[str, Any]
    name: OutputOnly[String]
    schemaTitle: String
    schemaVersion: String
    state: ArtifactState
    updateTime: OutputOnly[Timestamp]
    uri: String


class AddExecutionEventsRequest(Message, total=False):
    """Request message for MetadataService.AddExecutionEvents."""

    events: list["Event"]


class AddContextArtifactsAndExecutionsRequest(Message, total=False):
    """Request message for MetadataService.AddContextArtifactsAndExecutions."""

    artifacts: list[String]
    executions: list[String]


class AddContextChildrenRequest(Message, total=False):
    """Request message for MetadataService.AddContextChildren."""

    childContexts: list[String]


class PurgeContextsRequest(Message, total=False):
    """Request message for MetadataService.PurgeContexts."""

    filter: Required[String]
    force: Boolean


class EncryptionSpec(Message, total=False):
    """Represents a customer-managed encryption key specification that can be applied to a Vertex AI resource."""

    kmsKeyName: Required[String]


class Status(Message, total=False):
    """The `Status` type defines a logical error model that is suitable for different programming environments,
    including REST APIs and RPC APIs."""

    code: Int32
    details: list[dict[str, Any]]
    message: String


class CustomJobSpec(Message, total=False):
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


class StudySpec(Message, total=False):
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


class Trial(Message, total=False):
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


class InputDataConfig(Message, total=False):
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


class Model(Message, total=False):
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


class ExportModelRequestOutputConfig(Message, total=False):
    """Output configuration for the Model export."""

    artifactDestination: "GcsDestination"
    exportFormatId: String
    imageDestination: "ContainerRegistryDestination"


class WriteTensorboardRunDataRequest(Message, total=False):
    """Request message for TensorboardService.WriteTensorboardRunData."""

    tensorboardRun: Required[String]
    timeSeriesData: Required[list["TimeSeriesData"]]


class CreateTensorboardRunRequest(Message, total=False):
    """Request message for TensorboardService.CreateTensorboardRun."""

    parent: Required[String]
    tensorboardRun: Required["TensorboardRun"]
    tensorboardRunId: Required[String]


class CreateTensorboardTimeSeriesRequest(Message, total=False):
    """Request message for TensorboardService.CreateTensorboardTimeSeries."""

    parent: Required[String]
    tensorboardTimeSeries: Required["TensorboardTimeSeries"]
    tensorboardTimeSeriesId: String


class MetadataStoreDataplexConfig(Message, total=False):
    """Represents Dataplex integration settings."""

    enabledPipelinesLineage: Boolean


class MetadataStoreMetadataStoreState(Message, total=False):
    """Represents state information for a MetadataStore."""

    diskUtilizationBytes: Int64


class Event(Message, total=False):
    """An edge describing the relationship between an Artifact and an Execution in a lineage graph."""

    artifact: Required[String]
    eventTime: OutputOnly[Timestamp]
    execution: OutputOnly[String]
    labels: dict[str, String]
    type: EventType


class GcsDestination(Message, total=False):
    """The Google Cloud Storage location where the output is to be written to."""

    outputUriPrefix: Required[String]


class PscInterfaceConfig(Message, total=False):
    """Configuration for PSC-I."""

    dnsPeeringConfigs: list["DnsPeeringConfig"]
    networkAttachment: String


class Scheduling(Message, total=False):
    """All parameters related to queuing and scheduling of custom jobs."""

    disableRetries: Boolean
    maxWaitDuration: Duration
    restartJobOnWorkerRestart: Boolean
    strategy: SchedulingStrategy
    timeout: Duration


class WorkerPoolSpec(Message, total=False):
    """Represents the spec of a worker pool in a job."""

    containerSpec: "ContainerSpec"
    diskSpec: "DiskSpec"
    lustreMounts: list["LustreMount"]
    machineSpec: "MachineSpec"
    nfsMounts: list["NfsMount"]
    pythonPackageSpec: "PythonPackageSpec"
    replicaCount: Int64


class StudySpecConvexAutomatedStoppingSpec(Message, total=False):
    """Configuration for ConvexAutomatedStoppingSpec."""

    learningRateParameterName: String
    maxStepCount: Int64
    minMeasurementCount: Int64
    minStepCount: Int64
    updateAllStoppedTrials: Boolean
    useElapsedDuration: Boolean


class StudySpecDecayCurveAutomatedStoppingSpec(Message, total=False):
    """The decay curve automated stopping rule builds a Gaussian Process Regressor to predict the final objective value
    of a Trial based on the already completed Trials and the intermediate measurements of the current Trial."""

    useElapsedDuration: Boolean


class StudySpecMedianAutomatedStoppingSpec(Message, total=False):
    """The median automated stopping rule stops a pending Trial if the Trial's best objective_value is strictly below
    the median 'performance' of all completed Trials reported up to the Trial's last measurement."""

    useElapsedDuration: Boolean


class StudySpecMetricSpec(Message, total=False):
    """Represents a metric to optimize."""

    goal: StudySpecMetricSpecGoalType
    metricId: Required[String]
    safetyConfig: "StudySpecMetricSpecSafetyMetricConfig"


class StudySpecParameterSpec(Message, total=False):
    """Represents a single parameter to optimize."""

    categoricalValueSpec: "StudySpecParameterSpecCategoricalValueSpec"
    conditionalParameterSpecs: list["StudySpecParameterSpecConditionalParameterSpec"]
    discreteValueSpec: "StudySpecParameterSpecDiscreteValueSpec"
    doubleValueSpec: "StudySpecParameterSpecDoubleValueSpec"
    integerValueSpec: "StudySpecParameterSpecIntegerValueSpec"
    parameterId: Required[String]
    scaleType: StudySpecParameterSpecScaleType


class StudySpecStudyStoppingConfig(Message, total=False):
    """The configuration (stopping conditions) for automated stopping of a Study."""

    maxDurationNoProgress: Duration
    maxNumTrials: Int32
    maxNumTrialsNoProgress: Int32
    maximumRuntimeConstraint: "StudyTimeConstraint"
    minNumTrials: Int32
    minimumRuntimeConstraint: "StudyTimeConstraint"
    shouldStopAsap: Boolean


class Measurement(Message, total=False):
    """A message representing a Measurement of a Trial."""

    elapsedDuration: OutputOnly[Duration]
    metrics: OutputOnly[list["MeasurementMetric"]]
    stepCount: OutputOnly[Int64]


class TrialParameter(Message, total=False):
    """A message representing a parameter to be tuned."""

    parameterId: OutputOnly[String]
    value: OutputOnly[Any]


class BigQueryDestination(Message, total=False):
    """The BigQuery location for the output content."""

    outputUri: Required[String]


class FilterSplit(Message, total=False):
    """Assigns input data to training, validation, and test sets based on the given filters, data pieces not matched by
    any filter are ignored."""

    testFilter: Required[String]
    trainingFilter: Required[String]
    validationFilter: Required[String]


class FractionSplit(Message, total=False):
    """Assigns the input data to training, validation, and test sets as per the given fractions."""

    testFraction: Double
    trainingFraction: Double
    validationFraction: Double


class PredefinedSplit(Message, total=False):
    """Assigns input data to training, validation, and test sets based on the value of a provided key."""

    key: Required[String]


class StratifiedSplit(Message, total=False):
    """Assigns input data to the training, validation, and test sets so that the distribution of values found in the
    categorical column (as specified by the `key` field) is mirrored within each split."""

    key: Required[String]
    testFraction: Double
    trainingFraction: Double
    validationFraction: Double


class TimestampSplit(Message, total=False):
    """Assigns input data to training, validation, and test sets based on a provided timestamps."""

    key: Required[String]
    testFraction: Double
    trainingFraction: Double
    validationFraction: Double


class ModelBaseModelSource(Message, total=False):
    """User input field to specify the base model source."""

    genieSource: "GenieSource"
    modelGardenSource: "ModelGardenSource"


class Checkpoint(Message, total=False):
    """Describes the machine learning model version checkpoint."""

    checkpointId: String
    epoch: Int64
    step: Int64


class ModelContainerSpec(Message, total=False):
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


class ModelDataStats(Message, total=False):
    """Stats of data used for train or evaluate the Model."""

    testAnnotationsCount: Int64
    testDataItemsCount: Int64
    trainingAnnotationsCount: Int64
    trainingDataItemsCount: Int64
    validationAnnotationsCount: Int64
    validationDataItemsCount: Int64


class DeployedModelRef(Message, total=False):
    """Points to a DeployedModel."""

    checkpointId: String
    deployedModelId: String
    endpoint: String


class ExplanationSpec(Message, total=False):
    """Specification of Model explanation."""

    metadata: "ExplanationMetadata"
    parameters: Required["ExplanationParameters"]


class ModelSourceInfo(Message, total=False):
    """Detail description of the source information of the model."""

    copy: Boolean
    sourceType: ModelSourceInfoModelSourceType


class ModelOriginalModelInfo(Message, total=False):
    """Contains information about the original Model if this Model is a copy."""

    model: OutputOnly[String]


class PredictSchemata(Message, total=False):
    """Contains the schemata used in Model's predictions and explanations via PredictionService.Predict,
    PredictionService.Explain and BatchPredictionJob."""

    instanceSchemaUri: String
    parametersSchemaUri: String
    predictionSchemaUri: String


class ModelExportFormat(Message, total=False):
    """Represents export format supported by the Model."""

    exportableContents: OutputOnly[list[ModelExportFormatExportableContent]]
    id: OutputOnly[String]


class ContainerRegistryDestination(Message, total=False):
    """The Container Registry location for the container image."""

    outputUri: Required[String]


class TimeSeriesData(Message, total=False):
    """All the data stored in a TensorboardTimeSeries."""

    tensorboardTimeSeriesId: Required[String]
    valueType: TensorboardTimeSeriesValueType
    values: Required[list["TimeSeriesDataPoint"]]


class TensorboardRun(Message, total=False):
    """TensorboardRun maps to a specific execution of a training job with a given set of hyperparameter values, model
    definition, dataset, etc"""

    createTime: OutputOnly[Timestamp]
    description: String
    displayName: Required[String]
    etag: String
    labels: dict[str, String]
    name: OutputOnly[String]
    updateTime: OutputOnly[Timestamp]


class TensorboardTimeSeries(Message, total=False):
    """TensorboardTimeSeries maps to times series produced in training runs"""

    createTime: OutputOnly[Timestamp]
    description: String
    displayName: Required[String]
    etag: String
    metadata: OutputOnly["TensorboardTimeSeriesMetadata"]
    name: OutputOnly[String]
    pluginData: String
    pluginName: String
    updateTime: OutputOnly[Timestamp]
    valueType: TensorboardTimeSeriesValueType


class DnsPeeringConfig(Message, total=False):
    """DNS peering configuration."""

    domain: Required[String]
    targetNetwork: Required[String]
    targetProject: Required[String]


class ContainerSpec(Message, total=False):
    """The spec of a Container."""

    args: list[String]
    command: list[String]
    env: list["EnvVar"]
    imageUri: Required[String]


class DiskSpec(Message, total=False):
    """Represents the spec of disk options."""

    bootDiskSizeGb: Int32
    bootDiskType: String


class LustreMount(Message, total=False):
    """Represents a mount configuration for Lustre file system."""

    filesystem: Required[String]
    instanceIp: Required[String]
    mountPoint: Required[String]
    volumeHandle: Required[String]


class MachineSpec(Message, total=False):
    """Specification of a single machine."""

    acceleratorCount: Int32
    acceleratorType: AcceleratorType
    gpuPartitionSize: String
    machineType: String
    reservationAffinity: "ReservationAffinity"
    tpuTopology: String


class NfsMount(Message, total=False):
    """Represents a mount configuration for Network File System (NFS) to mount."""

    mountPoint: Required[String]
    path: Required[String]
    server: Required[String]


class PythonPackageSpec(Message, total=False):
    """The spec of a Python packaged code."""

    args: list[String]
    env: list["EnvVar"]
    executorImageUri: Required[String]
    packageUris: Required[list[String]]
    pythonModule: Required[String]


class StudySpecMetricSpecSafetyMetricConfig(Message, total=False):
    """Used in safe optimization to specify threshold levels and risk tolerance."""

    desiredMinSafeTrialsFraction: Double
    safetyThreshold: Double


class StudySpecParameterSpecCategoricalValueSpec(Message, total=False):
    """Value specification for a parameter in `CATEGORICAL` type."""

    defaultValue: String
    values: Required[list[String]]


class StudySpecParameterSpecConditionalParameterSpec(Message, total=False):
    """Represents a parameter spec with condition from its parent parameter."""

    parameterSpec: Required["StudySpecParameterSpec"]
    parentCategoricalValues: "StudySpecParameterSpecConditionalParameterSpecCategoricalValueCondition"
    parentDiscreteValues: "StudySpecParameterSpecConditionalParameterSpecDiscreteValueCondition"
    parentIntValues: "StudySpecParameterSpecConditionalParameterSpecIntValueCondition"


class StudySpecParameterSpecDiscreteValueSpec(Message, total=False):
    """Value specification for a parameter in `DISCRETE` type."""

    defaultValue: Double
    values: Required[list[Double]]


class StudySpecParameterSpecDoubleValueSpec(Message, total=False):
    """Value specification for a parameter in `DOUBLE` type."""

    defaultValue: Double
    maxValue: Double
    minValue: Double


class StudySpecParameterSpecIntegerValueSpec(Message, total=False):
    """Value specification for a parameter in `INTEGER` type."""

    defaultValue: Int64
    maxValue: Int64
    minValue: Int64


class StudyTimeConstraint(Message, total=False):
    """Time-based Constraint for Study"""

    endTime: Timestamp
    maxDuration: Duration


class MeasurementMetric(Message, total=False):
    """A message representing a metric in the measurement."""

    metricId: OutputOnly[String]
    value: OutputOnly[Double]


class GenieSource(Message, total=False):
    """Contains information about the source of the models generated from Generative AI Studio."""

    baseModelUri: Required[String]


class ModelGardenSource(Message, total=False):
    """Contains information about the source of the models generated from Model Garden."""

    publicModelName: Required[String]
    skipHfModelCache: Boolean
    versionId: String


class EnvVar(Message, total=False):
    """Represents an environment variable present in a Container or Python Module."""

    name: Required[String]
    value: String


class Port(Message, total=False):
    """Represents a network port in a container."""

    containerPort: Int32


class Probe(Message, total=False):
    """Probe describes a health check to be performed against a container to determine whether it is alive or ready to
    receive traffic."""

    exec: "ProbeExecAction"
    failureThreshold: Int32
    grpc: "ProbeGrpcAction"
    httpGet: "ProbeHttpGetAction"
    initialDelaySeconds: Int32
    periodSeconds: Int32
    successThreshold: Int32
    tcpSocket: "ProbeTcpSocketAction"
    timeoutSeconds: Int32


class ExplanationMetadata(Message, total=False):
    """Metadata describing the Model's input and output for explanation."""

    featureAttributionsSchemaUri: String
    inputs: dict[str, "ExplanationMetadataInputMetadata"]
    latentSpaceSource: String
    outputs: dict[str, "ExplanationMetadataOutputMetadata"]


class ExplanationParameters(Message, total=False):
    """Parameters to configure explaining for Model's predictions."""

    examples: "Examples"
    integratedGradientsAttribution: "IntegratedGradientsAttribution"
    outputIndices: list[Any]
    sampledShapleyAttribution: "SampledShapleyAttribution"
    topK: Int32
    xraiAttribution: "XraiAttribution"


class TimeSeriesDataPoint(Message, total=False):
    """A TensorboardTimeSeries data point."""

    blobs: "TensorboardBlobSequence"
    scalar: "Scalar"
    step: Int64
    tensor: "TensorboardTensor"
    wallTime: Timestamp


class TensorboardTimeSeriesMetadata(Message, total=False):
    """Describes metadata for a TensorboardTimeSeries."""

    maxBlobSequenceLength: OutputOnly[Int64]
    maxStep: OutputOnly[Int64]
    maxWallTime: OutputOnly[Timestamp]


class ReservationAffinity(Message, total=False):
    """A ReservationAffinity can be used to configure a Vertex AI resource (e.g., a DeployedModel) to draw its Compute
    Engine resources from a Shared Reservation, or exclusively from on-demand capacity."""

    key: String
    reservationAffinityType: ReservationAffinityType
    values: list[String]


class StudySpecParameterSpecConditionalParameterSpecCategoricalValueCondition(Message, total=False):
    """Represents the spec to match categorical values from parent parameter."""

    values: Required[list[String]]


class StudySpecParameterSpecConditionalParameterSpecDiscreteValueCondition(Message, total=False):
    """Represents the spec to match discrete values from parent parameter."""

    values: Required[list[Double]]


class StudySpecParameterSpecConditionalParameterSpecIntValueCondition(Message, total=False):
    """Represents the spec to match integer values from parent parameter."""

    values: Required[list[Int64]]


class ProbeExecAction(Message, total=False):
    """ExecAction specifies a command to execute."""

    command: list[String]


class ProbeGrpcAction(Message, total=False):
    """GrpcAction checks the health of a container using a gRPC service."""

    port: Int32
    service: String


class ProbeHttpGetAction(Message, total=False):
    """HttpGetAction describes an action based on HTTP Get requests."""

    host: String
    httpHeaders: list["ProbeHttpHeader"]
    path: String
    port: Int32
    scheme: String


class ProbeTcpSocketAction(Message, total=False):
    """TcpSocketAction probes the health of a container by opening a TCP socket connection."""

    host: String
    port: Int32


class ExplanationMetadataInputMetadata(Message, total=False):
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


class ExplanationMetadataOutputMetadata(Message, total=False):
    """Metadata of the prediction output to be explained."""

    displayNameMappingKey: String
    indexDisplayNameMapping: Any
    outputTensorName: String


class Examples(Message, total=False):
    """Example-based explainability that returns the nearest neighbors from the provided dataset."""

    exampleGcsSource: "ExamplesExampleGcsSource"
    nearestNeighborSearchConfig: Any
    neighborCount: Int32
    presets: "Presets"


class IntegratedGradientsAttribution(Message, total=False):
    """An attribution method that computes the Aumann-Shapley value taking advantage of the model's fully differentiable
    structure."""

    blurBaselineConfig: "BlurBaselineConfig"
    smoothGradConfig: "SmoothGradConfig"
    stepCount: Int32


class SampledShapleyAttribution(Message, total=False):
    """An attribution method that approximates Shapley values for features that contribute to the label being
    predicted."""

    pathCount: Int32


class XraiAttribution(Message, total=False):
    """An explanation method that redistributes Integrated Gradients attributions to segmented regions, taking advantage
    of the model's fully differentiable structure."""

    blurBaselineConfig: "BlurBaselineConfig"
    smoothGradConfig: "SmoothGradConfig"
    stepCount: Int32


class TensorboardBlobSequence(Message, total=False):
    """One point viewable on a blob metric plot, but mostly just a wrapper message to work around repeated fields can't
    be used directly within `oneof` fields."""

    values: list["TensorboardBlob"]


class Scalar(Message, total=False):
    """One point viewable on a scalar metric plot."""

    value: Float


class TensorboardTensor(Message, total=False):
    """One point viewable on a tensor metric plot."""

    value: Required[String]
    versionNumber: Int32


class ProbeHttpHeader(Message, total=False):
    """HttpHeader describes a custom header to be used in HTTP probes"""

    name: String
    value: String


class ExplanationMetadataInputMetadataFeatureValueDomain(Message, total=False):
    """Domain details of the input feature value."""

    maxValue: Double
    minValue: Double
    originalMean: Double
    originalStddev: Double


class ExplanationMetadataInputMetadataVisualization(Message, total=False):
    """Visualization configurations for image explanation."""

    clipPercentLowerbound: Double
    clipPercentUpperbound: Double
    colorMap: ExplanationMetadataInputMetadataVisualizationColorMap
    overlayType: ExplanationMetadataInputMetadataVisualizationOverlayType
    polarity: ExplanationMetadataInputMetadataVisualizationPolarity
    type: ExplanationMetadataInputMetadataVisualizationType


class ExamplesExampleGcsSource(Message, total=False):
    """The Cloud Storage input instances."""

    dataFormat: ExamplesExampleGcsSourceDataFormat
    gcsSource: "GcsSource"


class Presets(Message, total=False):
    """Preset configuration for example-based explanations"""

    modality: PresetsModality
    query: PresetsQuery


class BlurBaselineConfig(Message, total=False):
    """Config for blur baseline."""

    maxBlurSigma: Double


class SmoothGradConfig(Message, total=False):
    """Config for SmoothGrad approximation of gradients."""

    featureNoiseSigma: "FeatureNoiseSigma"
    noiseSigma: Double
    noisySampleCount: Int32


class TensorboardBlob(Message, total=False):
    """One blob (e.g, image, graph) viewable on a blob metric plot."""

    data: String
    id: OutputOnly[String]


class GcsSource(Message, total=False):
    """The Google Cloud Storage location for the input content."""

    uris: Required[list[String]]


class FeatureNoiseSigma(Message, total=False):
    """Noise sigma by features."""

    noiseSigma: list["FeatureNoiseSigmaNoiseSigmaForFeature"]


class FeatureNoiseSigmaNoiseSigmaForFeature(Message, total=False):
    """Noise sigma for a single feature."""

    name: String
    sigma: Double
