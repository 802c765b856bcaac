"""Types of the keys of a stack file, beside its declarations. docs/configuration.md describes each field."""

from typing import Literal, Required

from vertex_api import types
from vertex_api.scalar_types import Boolean, Double, Duration, String

from . import field_types
from .declaration_types import Builder, ClosedTypedDict, Declarations


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
    agentRoles: Boolean


class Bucket(ClosedTypedDict, total=False):
    """The bucket that jobs write to: one to create by its `name`, or an `existing` one."""

    name: field_types.BucketName
    existing: field_types.BucketName
    location: String
    writableFolders: list[field_types.BucketFolder]
    deleteAfterDays: field_types.Positive
    kmsKey: field_types.KeyName
    labels: dict[str, String]
    protect: Boolean


class Peering(ClosedTypedDict, total=False):
    """A VPC network that is peered with Google's services. With `prefixLength` the stack creates the peering."""

    network: Required[field_types.NetworkName]
    reservedIpRanges: list[String]
    prefixLength: field_types.Positive
    name: field_types.ComputeName


class DnsPeering(ClosedTypedDict, total=False):
    """A domain, ending with a dot, that jobs resolve in a network of a project."""

    domain: Required[String]
    targetProject: Required[String]
    targetNetwork: Required[String]


class Attachment(ClosedTypedDict, total=False):
    """The network attachment of jobs: an `existing` one, or one to create in a `subnetwork`."""

    existing: field_types.AttachmentName
    subnetwork: String
    name: field_types.ComputeName
    dnsPeering: list[DnsPeering]


class Network(ClosedTypedDict, total=False):
    """The private network that jobs reach: by a `peering` or by an `attachment`."""

    peering: Peering
    attachment: Attachment


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


class ScheduleAccount(ClosedTypedDict, total=False):
    """A service account for schedules: an `account` to create, or an `existing` one."""

    account: field_types.AccountId
    existing: field_types.AccountEmail


class CloudScheduling(ClosedTypedDict, total=False):
    """What all schedules share: the accounts of Cloud Scheduler and of workflows, and the region of Cloud Scheduler."""

    scheduler: ScheduleAccount
    workflow: ScheduleAccount
    region: String
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
