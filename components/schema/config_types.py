"""Types of declarations and stack files, beside the API's messages. docs/configuration.md describes each field."""

from typing import Any, Literal, Required

from vertex_api import types
from vertex_api.scalar_types import Boolean, Double, Duration, String

from . import formats
from .closed_typed_dict import ClosedTypedDict
from .image_builder_config_types import Builder as Builder
from .image_builder_config_types import CloudBuild as CloudBuild
from .network_config_types import Attachment as Attachment
from .network_config_types import DnsPeering as DnsPeering
from .network_config_types import Network as Network
from .network_config_types import Peering as Peering
from .schedule_config_types import CloudScheduling as CloudScheduling
from .schedule_config_types import Schedule as Schedule
from .schedule_config_types import ScheduleAccount as ScheduleAccount


class Package(ClosedTypedDict, total=False):
    """A script or module that is built into an image without a Dockerfile."""

    path: Required[String]
    script: formats.CopiedPath
    module: formats.ModuleName
    baseImage: Required[formats.BaseImage]
    requirements: list[formats.Requirement]
    extraPackages: list[formats.CopiedPath]
    extraDirs: list[formats.CopiedPath]


class Image(ClosedTypedDict, total=False):
    """An image: built from a `context` folder or a `package`, an existing `uri`, or built by another `stack`."""

    context: String
    package: Package
    dockerfile: String
    target: String
    buildArgs: dict[str, String]
    platform: String
    secrets: dict[str, String]
    builder: Builder
    uri: String
    stack: String


class PythonPackage(ClosedTypedDict, total=False):
    """A source distribution for a job's `packageUris`: of a folder (`path`), or of one file (`script`)."""

    path: String
    script: String
    requirements: list[formats.Requirement]


class Lifecycle(ClosedTypedDict, total=False):
    """When a job runs, whether the program waits for it, what deleting it does, and an existing job to `adopt`."""

    run: Literal["scheduled"]
    wait: Boolean
    deadline: formats.PositiveDuration
    after: list[String]
    onDelete: Literal["delete", "cancel", "keep"]
    rerun: formats.NotNegative
    adopt: formats.JobId


class SpecFile(ClosedTypedDict, total=False):
    """A file that holds the fields of a job."""

    file: Required[String]


class Emulator(ClosedTypedDict, total=False):
    """Settings of the local emulator."""

    port: formats.Port
    pidsLimit: formats.Positive
    logLimitMb: formats.Positive
    egress: Boolean
    secrets: dict[str, String]


class Registry(ClosedTypedDict, total=False):
    """The registry of images: a `repository` of Artifact Registry to create, an `existing` one, or another `url`."""

    existing: formats.RepositoryName
    url: formats.RegistryUrl
    repository: formats.RepositoryId
    project: String
    location: String
    immutableTags: Boolean
    keep: formats.Positive
    deleteUntaggedAfter: Duration
    kmsKey: formats.KeyName
    labels: dict[str, String]
    protect: Boolean
    legacyBuckets: list[formats.BucketName]
    legacyAgent: Boolean


class Identity(ClosedTypedDict, total=False):
    """The service account that jobs run as: an `account` to create, or an `existing` one."""

    account: formats.AccountId
    existing: formats.AccountEmail
    submitters: list[formats.Member]
    secrets: list[formats.SecretName]
    useVertexAi: Boolean


class Bucket(ClosedTypedDict, total=False):
    """The bucket that jobs write to: one to create by its `name`, or an `existing` one."""

    name: formats.BucketName
    existing: formats.BucketName
    location: String
    deleteAfterDays: formats.Positive
    kmsKey: formats.KeyName
    labels: dict[str, String]
    protect: Boolean


class AutoscalingSpec(ClosedTypedDict, total=False):
    """The limits within which a pool scales with its jobs."""

    minReplicaCount: Required[formats.Positive]
    maxReplicaCount: Required[formats.Positive]


class ResourcePool(ClosedTypedDict, total=False):
    """Machines of one kind in a persistent resource."""

    machineSpec: Required[types.MachineSpec]
    replicaCount: formats.Positive
    autoscalingSpec: AutoscalingSpec
    diskSpec: types.DiskSpec


class PersistentResource(ClosedTypedDict, total=False):
    """Machines that stay between jobs, for the jobs that name the resource."""

    name: Required[formats.PersistentResourceId]
    resourcePools: Required[list[ResourcePool]]


class Tensorboard(ClosedTypedDict, total=False):
    """The TensorBoard of jobs: one to create by its `displayName`, or an `existing` one."""

    existing: formats.TensorboardName
    displayName: String
    labels: dict[str, String]
    protect: Boolean


class Alerts(ClosedTypedDict, total=False):
    """Notifications of failed jobs: to channels that exist, and to e-mail addresses."""

    channels: Required[list[formats.NotificationChannel]]
    displayName: String
    notificationRateLimit: formats.PositiveDuration


class Prices(ClosedTypedDict, total=False):
    """A stack's own prices in USD, by family or type, then by region. `asOf` is a day: 2026-07-30."""

    asOf: Required[String]
    source: Required[String]
    vcpu: dict[str, dict[str, Double]]
    gb: dict[str, dict[str, Double]]
    accelerator: dict[str, dict[str, Double]]
    disk: dict[str, dict[str, Double]]


class Guardrails(ClosedTypedDict, total=False):
    """Limits for the jobs and machines of a stack. Types are patterns; `registries` are prefixes of image names."""

    machineTypes: list[String]
    acceleratorTypes: list[String]
    requiredLabels: list[String]
    requireTimeout: Boolean
    maxTimeout: Duration
    maxReplicas: formats.Positive
    maxTrials: formats.Positive
    maxParallelTrials: formats.Positive
    registries: list[String]
    maxHourlyCost: Double
    maxTotalCost: Double
    quotaCheck: Literal["off", "warn", "block"]


class Cloud(ClosedTypedDict, total=False):
    """The keys of a stack file that are for the target `gcp` only."""

    projectNumber: formats.ProjectNumber
    registry: Registry
    builder: Builder
    identity: Identity
    bucket: Bucket
    network: Network
    persistentResource: PersistentResource
    tensorboard: Tensorboard
    scheduling: CloudScheduling
    alerts: Alerts
    kmsKey: formats.KeyName
    labels: dict[str, String]
    prices: Prices


class Declarations(ClosedTypedDict, total=False):
    """The sections of a file of declarations. Jobs are checked one by one, against the API's messages."""

    vars: dict[str, Any]
    images: dict[str, Image]
    packages: dict[str, PythonPackage]
    customJobs: dict[str, dict[str, Any]]
    hyperparameterTuningJobs: dict[str, dict[str, Any]]
    trainingPipelines: dict[str, dict[str, Any]]
    schedules: dict[str, Schedule]


class Stack(Declarations, Cloud, total=False):
    """The keys of a stack file under `vertex-training:`: its settings, and declarations."""

    target: Required[Literal["local", "gcp"]]
    include: list[String]
    secrets: dict[str, String]
    project: String
    region: String
    emulator: Emulator
    submissionsPerMinute: formats.Positive
    guardrails: Guardrails


LIFECYCLE_DEFAULTS: Lifecycle = {"wait": False, "after": [], "onDelete": "delete", "rerun": 0}
"""The defaults of a job that the stack submits."""
