"""Types of declarations and stack files, beside the API's messages. docs/configuration.md describes each field."""

from typing import Any, Literal, Required

from vertex_api import types
from vertex_api.scalar_types import Boolean, Double, Duration, String

from . import field_types
from .closed_typed_dict_base import ClosedTypedDict
from .image_builder_config_types import Builder as Builder
from .image_builder_config_types import CloudBuild as CloudBuild
from .schedule_config_types import CloudScheduling as CloudScheduling
from .schedule_config_types import Schedule as Schedule
from .schedule_config_types import ScheduleAccount as ScheduleAccount
from .stack_network_config_types import Attachment as Attachment
from .stack_network_config_types import DnsPeering as DnsPeering
from .stack_network_config_types import Network as Network
from .stack_network_config_types import Peering as Peering


class Package(ClosedTypedDict, total=False):
    """A script or module that is built into an image without a Dockerfile."""

    path: Required[String]
    script: field_types.CopiedPath
    module: field_types.ModuleName
    baseImage: Required[field_types.BaseImage]
    requirements: list[field_types.Requirement]
    extraPackages: list[field_types.CopiedPath]
    extraDirs: list[field_types.CopiedPath]


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
    requirements: list[field_types.Requirement]


class Lifecycle(ClosedTypedDict, total=False):
    """When a job runs, whether the program waits for it, what deleting it does, and an existing job to `adopt`."""

    run: Literal["scheduled"]
    wait: Boolean
    deadline: field_types.PositiveDuration
    after: list[String]
    onDelete: Literal["delete", "cancel", "keep"]
    rerun: field_types.NotNegative
    adopt: field_types.JobId


class SpecFile(ClosedTypedDict, total=False):
    """A file that holds the fields of a job."""

    file: Required[String]


class Emulator(ClosedTypedDict, total=False):
    """Settings of the local emulator."""

    port: field_types.Port
    pidsLimit: field_types.Positive
    logLimitMb: field_types.Positive
    egress: Boolean
    secrets: dict[str, String]


class Registry(ClosedTypedDict, total=False):
    """The registry of images: a `repository` of Artifact Registry to create, an `existing` one, or another `url`."""

    existing: field_types.RepositoryName
    url: field_types.RegistryUrl
    repository: field_types.RepositoryId
    project: String
    location: String
    immutableTags: Boolean
    keep: field_types.Positive
    deleteUntaggedAfter: Duration
    kmsKey: field_types.KeyName
    labels: dict[str, String]
    protect: Boolean
    legacyBuckets: list[field_types.BucketName]
    legacyAgent: Boolean


class Identity(ClosedTypedDict, total=False):
    """The service account that jobs run as: an `account` to create, or an `existing` one."""

    account: field_types.AccountId
    existing: field_types.AccountEmail
    submitters: list[field_types.Member]
    secrets: list[field_types.SecretName]
    useVertexAi: Boolean


class Bucket(ClosedTypedDict, total=False):
    """The bucket that jobs write to: one to create by its `name`, or an `existing` one."""

    name: field_types.BucketName
    existing: field_types.BucketName
    location: String
    deleteAfterDays: field_types.Positive
    kmsKey: field_types.KeyName
    labels: dict[str, String]
    protect: Boolean


class AutoscalingSpec(ClosedTypedDict, total=False):
    """The limits within which a pool scales with its jobs."""

    minReplicaCount: Required[field_types.Positive]
    maxReplicaCount: Required[field_types.Positive]


class ResourcePool(ClosedTypedDict, total=False):
    """Machines of one kind in a persistent resource."""

    machineSpec: Required[types.MachineSpec]
    replicaCount: field_types.Positive
    autoscalingSpec: AutoscalingSpec
    diskSpec: types.DiskSpec


class PersistentResource(ClosedTypedDict, total=False):
    """Machines that stay between jobs, for the jobs that name the resource."""

    name: Required[field_types.PersistentResourceId]
    resourcePools: Required[list[ResourcePool]]


class Tensorboard(ClosedTypedDict, total=False):
    """The TensorBoard of jobs: one to create by its `displayName`, or an `existing` one."""

    existing: field_types.TensorboardName
    displayName: String
    labels: dict[str, String]
    protect: Boolean


class Alerts(ClosedTypedDict, total=False):
    """Notifications of failed jobs: to channels that exist, and to e-mail addresses."""

    channels: Required[list[field_types.NotificationChannel]]
    displayName: String
    notificationRateLimit: field_types.PositiveDuration


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
    maxReplicas: field_types.Positive
    maxTrials: field_types.Positive
    maxParallelTrials: field_types.Positive
    registries: list[String]
    maxHourlyCost: Double
    maxTotalCost: Double
    quotaCheck: Literal["off", "warn", "block"]


class Cloud(ClosedTypedDict, total=False):
    """The keys of a stack file that are for the target `gcp` only."""

    projectNumber: field_types.ProjectNumber
    registry: Registry
    builder: Builder
    identity: Identity
    bucket: Bucket
    network: Network
    persistentResource: PersistentResource
    tensorboard: Tensorboard
    scheduling: CloudScheduling
    alerts: Alerts
    kmsKey: field_types.KeyName
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
    submissionsPerMinute: field_types.Positive
    guardrails: Guardrails


LIFECYCLE_DEFAULTS: Lifecycle = {"wait": False, "after": [], "onDelete": "delete", "rerun": 0}
"""The defaults of a job that the stack submits."""
