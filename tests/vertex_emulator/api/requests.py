"""The fields that a client may set, a value for each, and good requests that set them all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin, get_type_hints

from typing_extensions import is_typeddict

from vertex_api import scalars
from vertex_api.messages import split_hint
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE, Kind
from vertex_api.pipelines import CUSTOM_TASK
from vertex_api.types import Model
from vertex_api.validation.model import ONEOFS

Names = tuple[str, ...]

_SET_BY_THE_SERVICE = get_args(scalars.OutputOnly[int])[1]
DURATION, TIMESTAMP = get_args(scalars.Duration)[1], get_args(scalars.Timestamp)[1]
_TEXTS = {DURATION: "60s", TIMESTAMP: "2026-01-31T12:00:00Z"}
_KEY = "key"
_NAMED = {"artifactUri": "gs://bucket/model", "predictRoute": "/predict", "healthRoute": "/health"}
"""Texts of fields that take none of another form."""
_SAMPLES = {str: "sample", bool: True, int: 1, float: 0.5, Any: {"any": ["value"]}}


def input_fields(message: Any, at: Names = (), above: tuple[Any, ...] = ()) -> Iterator[tuple[Names, Any]]:
    """Each field that a client may set below a message, with its type; a message within itself is not opened again."""
    for name, hint in get_type_hints(message, include_extras=True).items():
        inner, marks = split_hint(hint)
        if _SET_BY_THE_SERVICE in marks:
            continue
        yield (*at, name), hint
        while get_origin(inner) in (list, dict):
            inner, _ = split_hint(get_args(inner)[-1])
        if is_typeddict(inner) and inner not in above:
            yield from input_fields(inner, (*at, name), (*above, message, inner))


def sample(hint: Any, turn: int = 0) -> Any:
    """A value of a type; a message with every field that a client may set, of a union the one whose `turn` it is."""
    inner, marks = split_hint(hint)
    if get_origin(inner) is list:
        return [sample(get_args(inner)[0], turn)]
    if get_origin(inner) is dict:
        return {_KEY: sample(get_args(inner)[1], turn)}
    if get_origin(inner) is Literal:
        return get_args(inner)[1]
    if is_typeddict(inner):
        hints = get_type_hints(inner, include_extras=True)
        union = ONEOFS.get(inner.__name__, ("",))
        others = {*union} - {union[turn % len(union)]}
        settable = (name for name, each in hints.items() if _SET_BY_THE_SERVICE not in split_hint(each)[1])
        return {
            name: _NAMED.get(name) or sample(hints[name], turn // len(union)) for name in settable if name not in others
        }
    return next((_TEXTS[mark] for mark in marks if mark in _TEXTS), _SAMPLES[inner])


def is_set(body: Any, path: Names) -> bool:
    """Whether a body sets a field, in any entry of the lists and in the sampled entry of the maps on the way."""
    if not path:
        return True
    if isinstance(body, list):
        return any(is_set(each, path) for each in body)
    if not isinstance(body, dict):
        return False
    return (path[0] in body and is_set(body[path[0]], path[1:])) or is_set(body.get(_KEY), path)


ABSENT_IMAGE = "127.0.0.1:9/absent:1"
KEY = "projects/my-project/locations/us-central1/keyRings/ring/cryptoKeys/key"
LOCATION = "projects/my-project/locations/us-central1"
ACCOUNT = "trainer@my-project.iam.gserviceaccount.com"
CONTEXTS = f"{LOCATION}/metadataStores/default/contexts"
L4 = {"machineType": "g2-standard-4", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 1}
ENVIRONMENT = [{"name": "A", "value": "1"}]


def pool(**fields: Any) -> dict[str, Any]:
    container = {"imageUri": ABSENT_IMAGE}
    return {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 1, "containerSpec": container, **fields}


def package(**fields: Any) -> dict[str, Any]:
    spec = {"executorImageUri": ABSENT_IMAGE, "packageUris": ["gs://bucket/p.tar.gz"], "pythonModule": "m", **fields}
    return {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 1, "pythonPackageSpec": spec}


def job_spec(*pools: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"workerPoolSpecs": list(pools or (pool(),)), **fields}


def custom_job(**fields: Any) -> dict[str, Any]:
    return {"displayName": "good", "jobSpec": job_spec(), **fields}


def of_spec(*pools: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return custom_job(jobSpec=job_spec(*pools, **fields))


def study(**fields: Any) -> dict[str, Any]:
    parameter = {"parameterId": "rate", "doubleValueSpec": {"minValue": 0.1, "maxValue": 1.0}}
    return {"metrics": [{"metricId": "accuracy", "goal": "MAXIMIZE"}], "parameters": [parameter], **fields}


def tuning_job(**fields: Any) -> dict[str, Any]:
    counts = {"maxTrialCount": 2, "parallelTrialCount": 1}
    return {"displayName": "good", "studySpec": study(), "trialJobSpec": job_spec(), **counts, **fields}


def of_study(**fields: Any) -> dict[str, Any]:
    return tuning_job(studySpec=study(**fields))


def of_parameter(**fields: Any) -> dict[str, Any]:
    return of_study(parameters=[{"parameterId": "p", **fields}])


def conditional(values: dict[str, Any], **condition: Any) -> dict[str, Any]:
    child = {"parameterId": "child", "integerValueSpec": {"minValue": 1, "maxValue": 4}, "scaleType": "UNIT_LOG_SCALE"}
    return of_parameter(**values, conditionalParameterSpecs=[{**condition, "parameterSpec": child}])


def pipeline(**fields: Any) -> dict[str, Any]:
    task = {"trainingTaskDefinition": CUSTOM_TASK, "trainingTaskInputs": job_spec()}
    return {"displayName": "good", **task, **fields}


def of_data(**fields: Any) -> dict[str, Any]:
    data = {"datasetId": "1", "gcsDestination": {"outputUriPrefix": "gs://bucket/data"}, **fields}
    return pipeline(inputDataConfig=data)


CUSTOM_JOBS = (
    custom_job(),
    custom_job(labels={"team": "vision"}, encryptionSpec={"kmsKeyName": KEY}),
    of_spec(pool(containerSpec={"imageUri": ABSENT_IMAGE, "command": ["a"], "args": ["b"], "env": ENVIRONMENT})),
    of_spec(pool(machineSpec=L4), {}, pool(replicaCount=2)),
    of_spec(
        pool(
            machineSpec={
                "machineType": "a2-highgpu-1g",
                "acceleratorType": "NVIDIA_TESLA_A100",
                "acceleratorCount": 1,
                "gpuPartitionSize": "1g.5gb",
                "reservationAffinity": {
                    "reservationAffinityType": "SPECIFIC_RESERVATION",
                    "key": "compute.googleapis.com/reservation-name",
                    "values": ["projects/p/zones/us-central1-a/reservations/r"],
                },
            },
            diskSpec={"bootDiskType": "pd-standard", "bootDiskSizeGb": 200},
        )
    ),
    of_spec(pool(machineSpec={"machineType": "ct5lp-hightpu-1t", "tpuTopology": "1x1"})),
    of_spec(pool(nfsMounts=[{"server": "10.0.0.2", "path": "/share", "mountPoint": "data"}])),
    of_spec(
        pool(lustreMounts=[{"instanceIp": "10.0.0.3", "filesystem": "fs", "volumeHandle": "v", "mountPoint": "data"}])
    ),
    of_spec(package(args=["a"], env=ENVIRONMENT)),
    of_spec(
        pool(machineSpec=L4),
        scheduling={
            "timeout": "3600s",
            "maxWaitDuration": "600.500s",
            "strategy": "FLEX_START",
            "disableRetries": True,
            "restartJobOnWorkerRestart": True,
        },
    ),
    of_spec(
        baseOutputDirectory={"outputUriPrefix": "gs://bucket/folder/"},
        serviceAccount=ACCOUNT,
        tensorboard=f"{LOCATION}/tensorboards/1",
        network="projects/12345/global/networks/default",
        reservedIpRanges=["vertex-ai-ip-range"],
        enableWebAccess=True,
        enableDashboardAccess=True,
        persistentResourceId="mine",
        protectedArtifactLocationId="europe-west4",
        experiment=f"{CONTEXTS}/exp",
        experimentRun=f"{CONTEXTS}/exp-run",
    ),
    of_spec(
        pscInterfaceConfig={
            "networkAttachment": f"{LOCATION.replace('locations', 'regions')}/networkAttachments/a",
            "dnsPeeringConfigs": [{"domain": "corp.example.", "targetProject": "p", "targetNetwork": "vpc"}],
        }
    ),
    of_spec(models=[f"{LOCATION}/models/m@1"]),
)
TUNING_JOBS = (
    tuning_job(),
    tuning_job(labels={"team": "vision"}, encryptionSpec={"kmsKeyName": KEY}, maxFailedTrialCount=1),
    of_parameter(
        doubleValueSpec={"minValue": 0.5, "maxValue": 2.0, "defaultValue": 1.0}, scaleType="UNIT_LINEAR_SCALE"
    ),
    of_parameter(integerValueSpec={"minValue": 1, "maxValue": 2, "defaultValue": 1}, scaleType="UNIT_LOG_SCALE"),
    of_parameter(discreteValueSpec={"values": [1.0, 2.5], "defaultValue": 1.0}, scaleType="UNIT_REVERSE_LOG_SCALE"),
    of_parameter(categoricalValueSpec={"values": ["relu", "tanh"], "defaultValue": "relu"}),
    conditional({"integerValueSpec": {"maxValue": 3}}, parentIntValues={"values": [1, 2]}),
    conditional({"discreteValueSpec": {"values": [0.5, 1.5]}}, parentDiscreteValues={"values": [1.5]}),
    conditional({"categoricalValueSpec": {"values": ["a", "b"]}}, parentCategoricalValues={"values": ["b"]}),
    of_study(algorithm="RANDOM_SEARCH", measurementSelectionType="BEST_MEASUREMENT", observationNoise="HIGH"),
    tuning_job(parallelTrialCount=3),
    of_study(medianAutomatedStoppingSpec={"useElapsedDuration": True}),
    of_study(decayCurveStoppingSpec={"useElapsedDuration": True}),
    of_study(
        convexAutomatedStoppingSpec={
            "maxStepCount": 100,
            "minStepCount": 10,
            "minMeasurementCount": 3,
            "learningRateParameterName": "rate",
            "useElapsedDuration": True,
            "updateAllStoppedTrials": True,
        }
    ),
    of_study(
        metrics=[
            {"metricId": "accuracy"},
            {"metricId": "latency", "safetyConfig": {"safetyThreshold": 1.5, "desiredMinSafeTrialsFraction": 0.5}},
        ]
    ),
    of_study(
        studyStoppingConfig={
            "shouldStopAsap": True,
            "minNumTrials": 2,
            "maxNumTrials": 9,
            "maxNumTrialsNoProgress": 4,
            "maxDurationNoProgress": "60s",
            "minimumRuntimeConstraint": {"maxDuration": "60s"},
            "maximumRuntimeConstraint": {"maxDuration": "3600s"},
        }
    ),
    of_study(
        studyStoppingConfig={
            "minimumRuntimeConstraint": {"endTime": "2030-01-01T00:00:00Z"},
            "maximumRuntimeConstraint": {"endTime": "2031-01-01T00:00:00.500Z"},
        }
    ),
)
MODEL = {"displayName": "model", "containerSpec": {"imageUri": ABSENT_IMAGE}}
PARENT_MODEL = "a-parent"  # must be uploaded before it can have another version
SPLITS = {
    "fractionSplit": {"trainingFraction": 0.5, "validationFraction": 0.25, "testFraction": 0.25},
    "filterSplit": {"trainingFilter": "a", "validationFilter": "b", "testFilter": "-"},
    "predefinedSplit": {"key": "column"},
    "timestampSplit": {"key": "time", "trainingFraction": 0.5, "validationFraction": 0.25, "testFraction": 0.25},
    "stratifiedSplit": {"key": "label", "trainingFraction": 0.5, "validationFraction": 0.25, "testFraction": 0.25},
}
PIPELINES = (
    pipeline(),
    pipeline(labels={"team": "vision"}, encryptionSpec={"kmsKeyName": KEY}),
    pipeline(modelToUpload=MODEL, modelId="a-model"),
    pipeline(modelToUpload=MODEL, parentModel=f"{LOCATION}/models/{PARENT_MODEL}"),
    *(
        pipeline(modelToUpload={**sample(Model, turn), "encryptionSpec": {"kmsKeyName": KEY}})
        for turn in range(8)  # the largest union has four fields, and those within it two
    ),
    *(of_data(**{name: split}) for name, split in SPLITS.items()),
    of_data(persistMlUseAssignment=True, annotationsFilter="labels.a=b"),
    of_data(savedQueryId="1"),
    of_data(annotationSchemaUri="gs://google-cloud-aiplatform/schema/x.yaml"),
    pipeline(inputDataConfig={"datasetId": "1", "bigqueryDestination": {"outputUri": "bq://my-project"}}),
)
GOOD: dict[Kind, tuple[dict[str, Any], ...]] = {
    CUSTOM_JOB: CUSTOM_JOBS,
    HYPERPARAMETER_TUNING_JOB: TUNING_JOBS,
    TRAINING_PIPELINE: PIPELINES,
}


def fields_of(kind: Kind) -> Iterator[tuple[Names, Any]]:
    """Each field that a client may set, with its type. Those of `trialJobSpec` are the ones of a custom job's spec."""
    for names, hint in input_fields(kind.typed_dict):
        if names[0] != "trialJobSpec" or len(names) == 1:
            yield names, hint
