"""The fields of jobs, for type checkers: generated from the discovery document, do not edit.

The messages of `vertex_api.types` without what the service sets. A value may be an output of another resource.
aiplatform v1, revision 20261106; written by `python -m tools.discovery`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Required

from pulumi import Input
from typing_extensions import ReadOnly, TypedDict

AcceleratorType = Literal[
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
]
ExamplesExampleGcsSourceDataFormat = Literal["DATA_FORMAT_UNSPECIFIED", "JSONL"]
ExplanationMetadataInputMetadataEncoding = Literal[
    "ENCODING_UNSPECIFIED",
    "IDENTITY",
    "BAG_OF_FEATURES",
    "BAG_OF_FEATURES_SPARSE",
    "INDICATOR",
    "COMBINED_EMBEDDING",
    "CONCAT_EMBEDDING",
]
ExplanationMetadataInputMetadataVisualizationColorMap = Literal[
    "COLOR_MAP_UNSPECIFIED", "PINK_GREEN", "VIRIDIS", "RED", "GREEN", "RED_GREEN", "PINK_WHITE_GREEN"
]
ExplanationMetadataInputMetadataVisualizationOverlayType = Literal[
    "OVERLAY_TYPE_UNSPECIFIED", "NONE", "ORIGINAL", "GRAYSCALE", "MASK_BLACK"
]
ExplanationMetadataInputMetadataVisualizationPolarity = Literal["POLARITY_UNSPECIFIED", "POSITIVE", "NEGATIVE", "BOTH"]
ExplanationMetadataInputMetadataVisualizationType = Literal["TYPE_UNSPECIFIED", "PIXELS", "OUTLINES"]
ModelSourceInfoModelSourceType = Literal[
    "MODEL_SOURCE_TYPE_UNSPECIFIED",
    "AUTOML",
    "CUSTOM",
    "BQML",
    "MODEL_GARDEN",
    "GENIE",
    "CUSTOM_TEXT_EMBEDDING",
    "MARKETPLACE",
]
PresetsModality = Literal["MODALITY_UNSPECIFIED", "IMAGE", "TEXT", "TABULAR"]
PresetsQuery = Literal["PRECISE", "FAST"]
ReservationAffinityType = Literal["TYPE_UNSPECIFIED", "NO_RESERVATION", "ANY_RESERVATION", "SPECIFIC_RESERVATION"]
SchedulingStrategy = Literal["STRATEGY_UNSPECIFIED", "ON_DEMAND", "LOW_COST", "STANDARD", "SPOT", "FLEX_START"]
StudySpecAlgorithm = Literal["ALGORITHM_UNSPECIFIED", "GRID_SEARCH", "RANDOM_SEARCH"]
StudySpecMeasurementSelectionType = Literal[
    "MEASUREMENT_SELECTION_TYPE_UNSPECIFIED", "LAST_MEASUREMENT", "BEST_MEASUREMENT"
]
StudySpecMetricSpecGoalType = Literal["GOAL_TYPE_UNSPECIFIED", "MAXIMIZE", "MINIMIZE"]
StudySpecObservationNoise = Literal["OBSERVATION_NOISE_UNSPECIFIED", "LOW", "HIGH"]
StudySpecParameterSpecScaleType = Literal[
    "SCALE_TYPE_UNSPECIFIED", "UNIT_LINEAR_SCALE", "UNIT_LOG_SCALE", "UNIT_REVERSE_LOG_SCALE"
]


class CustomJob(TypedDict, total=False):
    """Represents a job that runs custom workloads such as a Docker container or a Python package."""

    displayName: Required[ReadOnly[Input[str]]]
    encryptionSpec: ReadOnly["EncryptionSpec"]
    jobSpec: Required[ReadOnly["CustomJobSpec"]]
    labels: ReadOnly[Input[Mapping[str, Input[str]]]]


class HyperparameterTuningJob(TypedDict, total=False):
    """Represents a HyperparameterTuningJob."""

    displayName: Required[ReadOnly[Input[str]]]
    encryptionSpec: ReadOnly["EncryptionSpec"]
    labels: ReadOnly[Input[Mapping[str, Input[str]]]]
    maxFailedTrialCount: ReadOnly[Input[int]]
    maxTrialCount: ReadOnly[Input[int]]
    parallelTrialCount: ReadOnly[Input[int]]
    studySpec: Required[ReadOnly["StudySpec"]]
    trialJobSpec: Required[ReadOnly["CustomJobSpec"]]


class TrainingPipeline(TypedDict, total=False):
    """The TrainingPipeline orchestrates tasks associated with training a Model."""

    displayName: Required[ReadOnly[Input[str]]]
    encryptionSpec: ReadOnly["EncryptionSpec"]
    inputDataConfig: ReadOnly["InputDataConfig"]
    labels: ReadOnly[Input[Mapping[str, Input[str]]]]
    modelId: ReadOnly[Input[str]]
    modelToUpload: ReadOnly["Model"]
    parentModel: ReadOnly[Input[str]]
    trainingTaskDefinition: ReadOnly[Input[str]]
    trainingTaskInputs: Required[ReadOnly["CustomJobSpec | TuningTaskInputs"]]


class EncryptionSpec(TypedDict, total=False):
    """Represents a customer-managed encryption key specification that can be applied to a Vertex AI resource."""

    kmsKeyName: Required[ReadOnly[Input[str]]]


class Status(TypedDict, total=False):
    """The `Status` type defines a logical error model that is suitable for different programming environments,
    including REST APIs and RPC APIs."""

    code: ReadOnly[Input[int]]
    details: ReadOnly[Input[Sequence[Input[Mapping[str, Input[Any]]]]]]
    message: ReadOnly[Input[str]]


class CustomJobSpec(TypedDict, total=False):
    """Represents the spec of a CustomJob."""

    baseOutputDirectory: ReadOnly["GcsDestination"]
    enableDashboardAccess: ReadOnly[Input[bool]]
    enableWebAccess: ReadOnly[Input[bool]]
    experiment: ReadOnly[Input[str]]
    experimentRun: ReadOnly[Input[str]]
    models: ReadOnly[Input[Sequence[Input[str]]]]
    network: ReadOnly[Input[str]]
    persistentResourceId: ReadOnly[Input[str]]
    protectedArtifactLocationId: ReadOnly[Input[str]]
    pscInterfaceConfig: ReadOnly["PscInterfaceConfig"]
    reservedIpRanges: ReadOnly[Input[Sequence[Input[str]]]]
    scheduling: ReadOnly["Scheduling"]
    serviceAccount: ReadOnly[Input[str]]
    tensorboard: ReadOnly[Input[str]]
    workerPoolSpecs: Required[ReadOnly[Input[Sequence["WorkerPoolSpec"]]]]


class StudySpec(TypedDict, total=False):
    """Represents specification of a Study."""

    algorithm: ReadOnly[Input[StudySpecAlgorithm]]
    convexAutomatedStoppingSpec: ReadOnly["StudySpecConvexAutomatedStoppingSpec"]
    decayCurveStoppingSpec: ReadOnly["StudySpecDecayCurveAutomatedStoppingSpec"]
    measurementSelectionType: ReadOnly[Input[StudySpecMeasurementSelectionType]]
    medianAutomatedStoppingSpec: ReadOnly["StudySpecMedianAutomatedStoppingSpec"]
    metrics: Required[ReadOnly[Input[Sequence["StudySpecMetricSpec"]]]]
    observationNoise: ReadOnly[Input[StudySpecObservationNoise]]
    parameters: Required[ReadOnly[Input[Sequence["StudySpecParameterSpec"]]]]
    studyStoppingConfig: ReadOnly["StudySpecStudyStoppingConfig"]


class Trial(TypedDict, total=False):
    """A message representing a Trial."""


class InputDataConfig(TypedDict, total=False):
    """Specifies Vertex AI owned input data to be used for training, and possibly evaluating, the Model."""

    annotationSchemaUri: ReadOnly[Input[str]]
    annotationsFilter: ReadOnly[Input[str]]
    bigqueryDestination: ReadOnly["BigQueryDestination"]
    datasetId: Required[ReadOnly[Input[str]]]
    filterSplit: ReadOnly["FilterSplit"]
    fractionSplit: ReadOnly["FractionSplit"]
    gcsDestination: ReadOnly["GcsDestination"]
    persistMlUseAssignment: ReadOnly[Input[bool]]
    predefinedSplit: ReadOnly["PredefinedSplit"]
    savedQueryId: ReadOnly[Input[str]]
    stratifiedSplit: ReadOnly["StratifiedSplit"]
    timestampSplit: ReadOnly["TimestampSplit"]


class Model(TypedDict, total=False):
    """A trained machine learning Model."""

    artifactUri: ReadOnly[Input[str]]
    baseModelSource: ReadOnly["ModelBaseModelSource"]
    containerSpec: ReadOnly["ModelContainerSpec"]
    dataStats: ReadOnly["ModelDataStats"]
    defaultCheckpointId: ReadOnly[Input[str]]
    description: ReadOnly[Input[str]]
    displayName: Required[ReadOnly[Input[str]]]
    encryptionSpec: ReadOnly["EncryptionSpec"]
    etag: ReadOnly[Input[str]]
    explanationSpec: ReadOnly["ExplanationSpec"]
    labels: ReadOnly[Input[Mapping[str, Input[str]]]]
    metadata: ReadOnly[Input[Any]]
    metadataSchemaUri: ReadOnly[Input[str]]
    name: ReadOnly[Input[str]]
    pipelineJob: ReadOnly[Input[str]]
    predictSchemata: ReadOnly["PredictSchemata"]
    versionAliases: ReadOnly[Input[Sequence[Input[str]]]]
    versionDescription: ReadOnly[Input[str]]


class GcsDestination(TypedDict, total=False):
    """The Google Cloud Storage location where the output is to be written to."""

    outputUriPrefix: Required[ReadOnly[Input[str]]]


class PscInterfaceConfig(TypedDict, total=False):
    """Configuration for PSC-I."""

    dnsPeeringConfigs: ReadOnly[Input[Sequence["DnsPeeringConfig"]]]
    networkAttachment: ReadOnly[Input[str]]


class Scheduling(TypedDict, total=False):
    """All parameters related to queuing and scheduling of custom jobs."""

    disableRetries: ReadOnly[Input[bool]]
    maxWaitDuration: ReadOnly[Input[str]]
    restartJobOnWorkerRestart: ReadOnly[Input[bool]]
    strategy: ReadOnly[Input[SchedulingStrategy]]
    timeout: ReadOnly[Input[str]]


class WorkerPoolSpec(TypedDict, total=False):
    """Represents the spec of a worker pool in a job."""

    containerSpec: ReadOnly["ContainerSpec"]
    diskSpec: ReadOnly["DiskSpec"]
    lustreMounts: ReadOnly[Input[Sequence["LustreMount"]]]
    machineSpec: ReadOnly["MachineSpec"]
    nfsMounts: ReadOnly[Input[Sequence["NfsMount"]]]
    pythonPackageSpec: ReadOnly["PythonPackageSpec"]
    replicaCount: ReadOnly[Input[int]]


class StudySpecConvexAutomatedStoppingSpec(TypedDict, total=False):
    """Configuration for ConvexAutomatedStoppingSpec."""

    learningRateParameterName: ReadOnly[Input[str]]
    maxStepCount: ReadOnly[Input[int]]
    minMeasurementCount: ReadOnly[Input[int]]
    minStepCount: ReadOnly[Input[int]]
    updateAllStoppedTrials: ReadOnly[Input[bool]]
    useElapsedDuration: ReadOnly[Input[bool]]


class StudySpecDecayCurveAutomatedStoppingSpec(TypedDict, total=False):
    """The decay curve automated stopping rule builds a Gaussian Process Regressor to predict the final objective value
    of a Trial based on the already completed Trials and the intermediate measurements of the current Trial."""

    useElapsedDuration: ReadOnly[Input[bool]]


class StudySpecMedianAutomatedStoppingSpec(TypedDict, total=False):
    """The median automated stopping rule stops a pending Trial if the Trial's best objective_value is strictly below
    the median 'performance' of all completed Trials reported up to the Trial's last measurement."""

    useElapsedDuration: ReadOnly[Input[bool]]


class StudySpecMetricSpec(TypedDict, total=False):
    """Represents a metric to optimize."""

    goal: ReadOnly[Input[StudySpecMetricSpecGoalType]]
    metricId: Required[ReadOnly[Input[str]]]
    safetyConfig: ReadOnly["StudySpecMetricSpecSafetyMetricConfig"]


class StudySpecParameterSpec(TypedDict, total=False):
    """Represents a single parameter to optimize."""

    categoricalValueSpec: ReadOnly["StudySpecParameterSpecCategoricalValueSpec"]
    conditionalParameterSpecs: ReadOnly[Input[Sequence["StudySpecParameterSpecConditionalParameterSpec"]]]
    discreteValueSpec: ReadOnly["StudySpecParameterSpecDiscreteValueSpec"]
    doubleValueSpec: ReadOnly["StudySpecParameterSpecDoubleValueSpec"]
    integerValueSpec: ReadOnly["StudySpecParameterSpecIntegerValueSpec"]
    parameterId: Required[ReadOnly[Input[str]]]
    scaleType: ReadOnly[Input[StudySpecParameterSpecScaleType]]


class StudySpecStudyStoppingConfig(TypedDict, total=False):
    """The configuration (stopping conditions) for automated stopping of a Study."""

    maxDurationNoProgress: ReadOnly[Input[str]]
    maxNumTrials: ReadOnly[Input[int]]
    maxNumTrialsNoProgress: ReadOnly[Input[int]]
    maximumRuntimeConstraint: ReadOnly["StudyTimeConstraint"]
    minNumTrials: ReadOnly[Input[int]]
    minimumRuntimeConstraint: ReadOnly["StudyTimeConstraint"]
    shouldStopAsap: ReadOnly[Input[bool]]


class Measurement(TypedDict, total=False):
    """A message representing a Measurement of a Trial."""


class TrialParameter(TypedDict, total=False):
    """A message representing a parameter to be tuned."""


class BigQueryDestination(TypedDict, total=False):
    """The BigQuery location for the output content."""

    outputUri: Required[ReadOnly[Input[str]]]


class FilterSplit(TypedDict, total=False):
    """Assigns input data to training, validation, and test sets based on the given filters, data pieces not matched by
    any filter are ignored."""

    testFilter: Required[ReadOnly[Input[str]]]
    trainingFilter: Required[ReadOnly[Input[str]]]
    validationFilter: Required[ReadOnly[Input[str]]]


class FractionSplit(TypedDict, total=False):
    """Assigns the input data to training, validation, and test sets as per the given fractions."""

    testFraction: ReadOnly[Input[float]]
    trainingFraction: ReadOnly[Input[float]]
    validationFraction: ReadOnly[Input[float]]


class PredefinedSplit(TypedDict, total=False):
    """Assigns input data to training, validation, and test sets based on the value of a provided key."""

    key: Required[ReadOnly[Input[str]]]


class StratifiedSplit(TypedDict, total=False):
    """Assigns input data to the training, validation, and test sets so that the distribution of values found in the
    categorical column (as specified by the `key` field) is mirrored within each split."""

    key: Required[ReadOnly[Input[str]]]
    testFraction: ReadOnly[Input[float]]
    trainingFraction: ReadOnly[Input[float]]
    validationFraction: ReadOnly[Input[float]]


class TimestampSplit(TypedDict, total=False):
    """Assigns input data to training, validation, and test sets based on a provided timestamps."""

    key: Required[ReadOnly[Input[str]]]
    testFraction: ReadOnly[Input[float]]
    trainingFraction: ReadOnly[Input[float]]
    validationFraction: ReadOnly[Input[float]]


class ModelBaseModelSource(TypedDict, total=False):
    """User input field to specify the base model source."""

    genieSource: ReadOnly["GenieSource"]
    modelGardenSource: ReadOnly["ModelGardenSource"]


class Checkpoint(TypedDict, total=False):
    """Describes the machine learning model version checkpoint."""

    checkpointId: ReadOnly[Input[str]]
    epoch: ReadOnly[Input[int]]
    step: ReadOnly[Input[int]]


class ModelContainerSpec(TypedDict, total=False):
    """Specification of a container for serving predictions."""

    args: ReadOnly[Input[Sequence[Input[str]]]]
    command: ReadOnly[Input[Sequence[Input[str]]]]
    deploymentTimeout: ReadOnly[Input[str]]
    env: ReadOnly[Input[Sequence["EnvVar"]]]
    grpcPorts: ReadOnly[Input[Sequence["Port"]]]
    healthProbe: ReadOnly["Probe"]
    healthRoute: ReadOnly[Input[str]]
    imageUri: Required[ReadOnly[Input[str]]]
    invokeRoutePrefix: ReadOnly[Input[str]]
    livenessProbe: ReadOnly["Probe"]
    ports: ReadOnly[Input[Sequence["Port"]]]
    predictRoute: ReadOnly[Input[str]]
    sharedMemorySizeMb: ReadOnly[Input[int]]
    startupProbe: ReadOnly["Probe"]


class ModelDataStats(TypedDict, total=False):
    """Stats of data used for train or evaluate the Model."""

    testAnnotationsCount: ReadOnly[Input[int]]
    testDataItemsCount: ReadOnly[Input[int]]
    trainingAnnotationsCount: ReadOnly[Input[int]]
    trainingDataItemsCount: ReadOnly[Input[int]]
    validationAnnotationsCount: ReadOnly[Input[int]]
    validationDataItemsCount: ReadOnly[Input[int]]


class DeployedModelRef(TypedDict, total=False):
    """Points to a DeployedModel."""

    checkpointId: ReadOnly[Input[str]]
    deployedModelId: ReadOnly[Input[str]]
    endpoint: ReadOnly[Input[str]]


class ExplanationSpec(TypedDict, total=False):
    """Specification of Model explanation."""

    metadata: ReadOnly["ExplanationMetadata"]
    parameters: Required[ReadOnly["ExplanationParameters"]]


class ModelSourceInfo(TypedDict, total=False):
    """Detail description of the source information of the model."""

    copy: ReadOnly[Input[bool]]
    sourceType: ReadOnly[Input[ModelSourceInfoModelSourceType]]


class ModelOriginalModelInfo(TypedDict, total=False):
    """Contains information about the original Model if this Model is a copy."""


class PredictSchemata(TypedDict, total=False):
    """Contains the schemata used in Model's predictions and explanations via PredictionService.Predict,
    PredictionService.Explain and BatchPredictionJob."""

    instanceSchemaUri: ReadOnly[Input[str]]
    parametersSchemaUri: ReadOnly[Input[str]]
    predictionSchemaUri: ReadOnly[Input[str]]


class ModelExportFormat(TypedDict, total=False):
    """Represents export format supported by the Model."""


class DnsPeeringConfig(TypedDict, total=False):
    """DNS peering configuration."""

    domain: Required[ReadOnly[Input[str]]]
    targetNetwork: Required[ReadOnly[Input[str]]]
    targetProject: Required[ReadOnly[Input[str]]]


class ContainerSpec(TypedDict, total=False):
    """The spec of a Container."""

    args: ReadOnly[Input[Sequence[Input[str]]]]
    command: ReadOnly[Input[Sequence[Input[str]]]]
    env: ReadOnly[Input[Sequence["EnvVar"]]]
    imageUri: Required[ReadOnly[Input[str]]]


class DiskSpec(TypedDict, total=False):
    """Represents the spec of disk options."""

    bootDiskSizeGb: ReadOnly[Input[int]]
    bootDiskType: ReadOnly[Input[str]]


class LustreMount(TypedDict, total=False):
    """Represents a mount configuration for Lustre file system."""

    filesystem: Required[ReadOnly[Input[str]]]
    instanceIp: Required[ReadOnly[Input[str]]]
    mountPoint: Required[ReadOnly[Input[str]]]
    volumeHandle: Required[ReadOnly[Input[str]]]


class MachineSpec(TypedDict, total=False):
    """Specification of a single machine."""

    acceleratorCount: ReadOnly[Input[int]]
    acceleratorType: ReadOnly[Input[AcceleratorType]]
    gpuPartitionSize: ReadOnly[Input[str]]
    machineType: ReadOnly[Input[str]]
    reservationAffinity: ReadOnly["ReservationAffinity"]
    tpuTopology: ReadOnly[Input[str]]


class NfsMount(TypedDict, total=False):
    """Represents a mount configuration for Network File System (NFS) to mount."""

    mountPoint: Required[ReadOnly[Input[str]]]
    path: Required[ReadOnly[Input[str]]]
    server: Required[ReadOnly[Input[str]]]


class PythonPackageSpec(TypedDict, total=False):
    """The spec of a Python packaged code."""

    args: ReadOnly[Input[Sequence[Input[str]]]]
    env: ReadOnly[Input[Sequence["EnvVar"]]]
    executorImageUri: Required[ReadOnly[Input[str]]]
    packageUris: Required[ReadOnly[Input[Sequence[Input[str]]]]]
    pythonModule: Required[ReadOnly[Input[str]]]


class StudySpecMetricSpecSafetyMetricConfig(TypedDict, total=False):
    """Used in safe optimization to specify threshold levels and risk tolerance."""

    desiredMinSafeTrialsFraction: ReadOnly[Input[float]]
    safetyThreshold: ReadOnly[Input[float]]


class StudySpecParameterSpecCategoricalValueSpec(TypedDict, total=False):
    """Value specification for a parameter in `CATEGORICAL` type."""

    defaultValue: ReadOnly[Input[str]]
    values: Required[ReadOnly[Input[Sequence[Input[str]]]]]


class StudySpecParameterSpecConditionalParameterSpec(TypedDict, total=False):
    """Represents a parameter spec with condition from its parent parameter."""

    parameterSpec: Required[ReadOnly["StudySpecParameterSpec"]]
    parentCategoricalValues: ReadOnly["StudySpecParameterSpecConditionalParameterSpecCategoricalValueCondition"]
    parentDiscreteValues: ReadOnly["StudySpecParameterSpecConditionalParameterSpecDiscreteValueCondition"]
    parentIntValues: ReadOnly["StudySpecParameterSpecConditionalParameterSpecIntValueCondition"]


class StudySpecParameterSpecDiscreteValueSpec(TypedDict, total=False):
    """Value specification for a parameter in `DISCRETE` type."""

    defaultValue: ReadOnly[Input[float]]
    values: Required[ReadOnly[Input[Sequence[Input[float]]]]]


class StudySpecParameterSpecDoubleValueSpec(TypedDict, total=False):
    """Value specification for a parameter in `DOUBLE` type."""

    defaultValue: ReadOnly[Input[float]]
    maxValue: ReadOnly[Input[float]]
    minValue: ReadOnly[Input[float]]


class StudySpecParameterSpecIntegerValueSpec(TypedDict, total=False):
    """Value specification for a parameter in `INTEGER` type."""

    defaultValue: ReadOnly[Input[int]]
    maxValue: ReadOnly[Input[int]]
    minValue: ReadOnly[Input[int]]


class StudyTimeConstraint(TypedDict, total=False):
    """Time-based Constraint for Study"""

    endTime: ReadOnly[Input[str]]
    maxDuration: ReadOnly[Input[str]]


class MeasurementMetric(TypedDict, total=False):
    """A message representing a metric in the measurement."""


class GenieSource(TypedDict, total=False):
    """Contains information about the source of the models generated from Generative AI Studio."""

    baseModelUri: Required[ReadOnly[Input[str]]]


class ModelGardenSource(TypedDict, total=False):
    """Contains information about the source of the models generated from Model Garden."""

    publicModelName: Required[ReadOnly[Input[str]]]
    skipHfModelCache: ReadOnly[Input[bool]]
    versionId: ReadOnly[Input[str]]


class EnvVar(TypedDict, total=False):
    """Represents an environment variable present in a Container or Python Module."""

    name: Required[ReadOnly[Input[str]]]
    value: ReadOnly[Input[str]]


class Port(TypedDict, total=False):
    """Represents a network port in a container."""

    containerPort: ReadOnly[Input[int]]


class Probe(TypedDict, total=False):
    """Probe describes a health check to be performed against a container to determine whether it is alive or ready to
    receive traffic."""

    exec: ReadOnly["ProbeExecAction"]
    failureThreshold: ReadOnly[Input[int]]
    grpc: ReadOnly["ProbeGrpcAction"]
    httpGet: ReadOnly["ProbeHttpGetAction"]
    initialDelaySeconds: ReadOnly[Input[int]]
    periodSeconds: ReadOnly[Input[int]]
    successThreshold: ReadOnly[Input[int]]
    tcpSocket: ReadOnly["ProbeTcpSocketAction"]
    timeoutSeconds: ReadOnly[Input[int]]


class ExplanationMetadata(TypedDict, total=False):
    """Metadata describing the Model's input and output for explanation."""

    featureAttributionsSchemaUri: ReadOnly[Input[str]]
    inputs: ReadOnly[Input[Mapping[str, "ExplanationMetadataInputMetadata"]]]
    latentSpaceSource: ReadOnly[Input[str]]
    outputs: ReadOnly[Input[Mapping[str, "ExplanationMetadataOutputMetadata"]]]


class ExplanationParameters(TypedDict, total=False):
    """Parameters to configure explaining for Model's predictions."""

    examples: ReadOnly["Examples"]
    integratedGradientsAttribution: ReadOnly["IntegratedGradientsAttribution"]
    outputIndices: ReadOnly[Input[Sequence[Input[Any]]]]
    sampledShapleyAttribution: ReadOnly["SampledShapleyAttribution"]
    topK: ReadOnly[Input[int]]
    xraiAttribution: ReadOnly["XraiAttribution"]


class ReservationAffinity(TypedDict, total=False):
    """A ReservationAffinity can be used to configure a Vertex AI resource (e.g., a DeployedModel) to draw its Compute
    Engine resources from a Shared Reservation, or exclusively from on-demand capacity."""

    key: ReadOnly[Input[str]]
    reservationAffinityType: ReadOnly[Input[ReservationAffinityType]]
    values: ReadOnly[Input[Sequence[Input[str]]]]


class StudySpecParameterSpecConditionalParameterSpecCategoricalValueCondition(TypedDict, total=False):
    """Represents the spec to match categorical values from parent parameter."""

    values: Required[ReadOnly[Input[Sequence[Input[str]]]]]


class StudySpecParameterSpecConditionalParameterSpecDiscreteValueCondition(TypedDict, total=False):
    """Represents the spec to match discrete values from parent parameter."""

    values: Required[ReadOnly[Input[Sequence[Input[float]]]]]


class StudySpecParameterSpecConditionalParameterSpecIntValueCondition(TypedDict, total=False):
    """Represents the spec to match integer values from parent parameter."""

    values: Required[ReadOnly[Input[Sequence[Input[int]]]]]


class ProbeExecAction(TypedDict, total=False):
    """ExecAction specifies a command to execute."""

    command: ReadOnly[Input[Sequence[Input[str]]]]


class ProbeGrpcAction(TypedDict, total=False):
    """GrpcAction checks the health of a container using a gRPC service."""

    port: ReadOnly[Input[int]]
    service: ReadOnly[Input[str]]


class ProbeHttpGetAction(TypedDict, total=False):
    """HttpGetAction describes an action based on HTTP Get requests."""

    host: ReadOnly[Input[str]]
    httpHeaders: ReadOnly[Input[Sequence["ProbeHttpHeader"]]]
    path: ReadOnly[Input[str]]
    port: ReadOnly[Input[int]]
    scheme: ReadOnly[Input[str]]


class ProbeTcpSocketAction(TypedDict, total=False):
    """TcpSocketAction probes the health of a container by opening a TCP socket connection."""

    host: ReadOnly[Input[str]]
    port: ReadOnly[Input[int]]


class ExplanationMetadataInputMetadata(TypedDict, total=False):
    """Metadata of the input of a feature."""

    denseShapeTensorName: ReadOnly[Input[str]]
    encodedBaselines: ReadOnly[Input[Sequence[Input[Any]]]]
    encodedTensorName: ReadOnly[Input[str]]
    encoding: ReadOnly[Input[ExplanationMetadataInputMetadataEncoding]]
    featureValueDomain: ReadOnly["ExplanationMetadataInputMetadataFeatureValueDomain"]
    groupName: ReadOnly[Input[str]]
    indexFeatureMapping: ReadOnly[Input[Sequence[Input[str]]]]
    indicesTensorName: ReadOnly[Input[str]]
    inputBaselines: ReadOnly[Input[Sequence[Input[Any]]]]
    inputTensorName: ReadOnly[Input[str]]
    modality: ReadOnly[Input[str]]
    visualization: ReadOnly["ExplanationMetadataInputMetadataVisualization"]


class ExplanationMetadataOutputMetadata(TypedDict, total=False):
    """Metadata of the prediction output to be explained."""

    displayNameMappingKey: ReadOnly[Input[str]]
    indexDisplayNameMapping: ReadOnly[Input[Any]]
    outputTensorName: ReadOnly[Input[str]]


class Examples(TypedDict, total=False):
    """Example-based explainability that returns the nearest neighbors from the provided dataset."""

    exampleGcsSource: ReadOnly["ExamplesExampleGcsSource"]
    nearestNeighborSearchConfig: ReadOnly[Input[Any]]
    neighborCount: ReadOnly[Input[int]]
    presets: ReadOnly["Presets"]


class IntegratedGradientsAttribution(TypedDict, total=False):
    """An attribution method that computes the Aumann-Shapley value taking advantage of the model's fully differentiable
    structure."""

    blurBaselineConfig: ReadOnly["BlurBaselineConfig"]
    smoothGradConfig: ReadOnly["SmoothGradConfig"]
    stepCount: ReadOnly[Input[int]]


class SampledShapleyAttribution(TypedDict, total=False):
    """An attribution method that approximates Shapley values for features that contribute to the label being
    predicted."""

    pathCount: ReadOnly[Input[int]]


class XraiAttribution(TypedDict, total=False):
    """An explanation method that redistributes Integrated Gradients attributions to segmented regions, taking advantage
    of the model's fully differentiable structure."""

    blurBaselineConfig: ReadOnly["BlurBaselineConfig"]
    smoothGradConfig: ReadOnly["SmoothGradConfig"]
    stepCount: ReadOnly[Input[int]]


class ProbeHttpHeader(TypedDict, total=False):
    """HttpHeader describes a custom header to be used in HTTP probes"""

    name: ReadOnly[Input[str]]
    value: ReadOnly[Input[str]]


class ExplanationMetadataInputMetadataFeatureValueDomain(TypedDict, total=False):
    """Domain details of the input feature value."""

    maxValue: ReadOnly[Input[float]]
    minValue: ReadOnly[Input[float]]
    originalMean: ReadOnly[Input[float]]
    originalStddev: ReadOnly[Input[float]]


class ExplanationMetadataInputMetadataVisualization(TypedDict, total=False):
    """Visualization configurations for image explanation."""

    clipPercentLowerbound: ReadOnly[Input[float]]
    clipPercentUpperbound: ReadOnly[Input[float]]
    colorMap: ReadOnly[Input[ExplanationMetadataInputMetadataVisualizationColorMap]]
    overlayType: ReadOnly[Input[ExplanationMetadataInputMetadataVisualizationOverlayType]]
    polarity: ReadOnly[Input[ExplanationMetadataInputMetadataVisualizationPolarity]]
    type: ReadOnly[Input[ExplanationMetadataInputMetadataVisualizationType]]


class ExamplesExampleGcsSource(TypedDict, total=False):
    """The Cloud Storage input instances."""

    dataFormat: ReadOnly[Input[ExamplesExampleGcsSourceDataFormat]]
    gcsSource: ReadOnly["GcsSource"]


class Presets(TypedDict, total=False):
    """Preset configuration for example-based explanations"""

    modality: ReadOnly[Input[PresetsModality]]
    query: ReadOnly[Input[PresetsQuery]]


class BlurBaselineConfig(TypedDict, total=False):
    """Config for blur baseline."""

    maxBlurSigma: ReadOnly[Input[float]]


class SmoothGradConfig(TypedDict, total=False):
    """Config for SmoothGrad approximation of gradients."""

    featureNoiseSigma: ReadOnly["FeatureNoiseSigma"]
    noiseSigma: ReadOnly[Input[float]]
    noisySampleCount: ReadOnly[Input[int]]


class GcsSource(TypedDict, total=False):
    """The Google Cloud Storage location for the input content."""

    uris: Required[ReadOnly[Input[Sequence[Input[str]]]]]


class FeatureNoiseSigma(TypedDict, total=False):
    """Noise sigma by features."""

    noiseSigma: ReadOnly[Input[Sequence["FeatureNoiseSigmaNoiseSigmaForFeature"]]]


class FeatureNoiseSigmaNoiseSigmaForFeature(TypedDict, total=False):
    """Noise sigma for a single feature."""

    name: ReadOnly[Input[str]]
    sigma: ReadOnly[Input[float]]


class TuningTaskInputs(TypedDict, total=False):
    """What a tuning task of a pipeline takes: a study, and the job of each of its trials."""

    studySpec: Required[ReadOnly["StudySpec"]]
    trialJobSpec: Required[ReadOnly["CustomJobSpec"]]
    maxTrialCount: ReadOnly[Input[int]]
    parallelTrialCount: ReadOnly[Input[int]]
    maxFailedTrialCount: ReadOnly[Input[int]]


CustomJobArgs = CustomJob
"""The API's fields, as a TypedDict: `vertex_training.args.CustomJob`. Its values may be outputs."""
HyperparameterTuningJobArgs = HyperparameterTuningJob
"""The API's fields, as a TypedDict: `vertex_training.args.HyperparameterTuningJob`. Its values may be outputs."""
TrainingPipelineArgs = TrainingPipeline
"""The API's fields, as a TypedDict: `vertex_training.args.TrainingPipeline`. Its values may be outputs."""
