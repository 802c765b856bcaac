"""The shapes of declarations and stack files; docs/configuration.md describes each field.

Declarations are images, packages, schedules, and what jobs have beside the API's messages.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, Required

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from vertex_api import types
from vertex_api.messages import split_hint
from vertex_api.scalars import Boolean, Double, Duration, String

from . import formats


@with_config(ConfigDict(extra="forbid"))
class ClosedTypedDict(TypedDict):
    """An object of a declaration or a stack file, with the fields that it declares and no others."""


class CloudBuild(ClosedTypedDict, total=False):
    """How Cloud Build builds images. `secrets` are versions of Secret Manager by the stack's name of a secret."""

    region: String
    machineType: Literal["E2_MEDIUM", "E2_STANDARD_2", "E2_HIGHCPU_8", "E2_HIGHCPU_32", "N1_HIGHCPU_8", "N1_HIGHCPU_32"]
    pool: formats.WorkerPoolName
    dockerImage: formats.DockerImage
    serviceAccount: formats.AccountEmail
    timeout: formats.PositiveDuration
    network: Literal["cloudbuild"]
    cache: Boolean
    secrets: dict[str, formats.SecretVersionName]


class Builder(ClosedTypedDict, total=False):
    """What builds images: this machine (`local: true`), or Cloud Build."""

    local: Boolean
    cloudBuild: CloudBuild


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
    formerly: formats.Formerly


class PythonPackage(ClosedTypedDict, total=False):
    """A source distribution for a job's `packageUris`: of a folder (`path`), or of one file (`script`)."""

    path: String
    script: String
    requirements: list[formats.Requirement]
    formerly: formats.Formerly


@dataclass(frozen=True)
class Option:
    """What a key of a lifecycle has beside its type: the `default` of a job that the stack submits, if there is one.

    And why it is not for a job of a program, or for one that is scheduled: what is there instead. "" allows it.
    """

    default: Any = None
    in_program: str = ""
    scheduled: str = ""


class Lifecycle(ClosedTypedDict, total=False):
    """When a job runs, whether the program waits for it, what deleting it does, and an existing job to `adopt`.

    `allow` lists the places of what the rules of the service refuse, and the job has all the same.
    """

    run: Annotated[Literal["scheduled"], Option(in_program="a Schedule takes jobs to run, each as a JobTemplate")]
    wait: Annotated[
        Boolean,
        Option(
            default=False,
            in_program="a Completion waits for the jobs that it is given",
            scheduled="`pulumi up` waits for no run of a schedule; the stack's output `schedules` has the state of the "
            "last one",
        ),
    ]
    deadline: Annotated[
        formats.PositiveDuration,
        Option(
            in_program="a Completion takes deadlines",
            scheduled="`pulumi up` waits for no run of a schedule; what ends a job is scheduling.timeout",
        ),
    ]
    after: Annotated[
        list[String],
        Option(
            default=[],
            in_program="depends_on says the order, and a Completion among them that jobs have succeeded",
            scheduled="the jobs of a schedule run in the order of its `jobs`",
        ),
    ]
    onDelete: Annotated[
        Literal["delete", "cancel", "keep"],
        Option(default="delete", scheduled="runs of a schedule stay when it is deleted"),
    ]
    rerun: Annotated[
        formats.Rerun,
        Option(
            default="",
            scheduled="a schedule runs again by itself; `vertex-training docs schedules` says how to run it now",
        ),
    ]
    allow: Annotated[list[String], Option()]
    adopt: Annotated[formats.JobId, Option(scheduled="a job that exists already cannot run again")]


LIFECYCLE: dict[str, Option] = {
    key: next(each for each in split_hint(hint)[1] if isinstance(each, Option))
    for key, hint in Lifecycle.__annotations__.items()
}


class Rehearse(ClosedTypedDict, total=False):
    """What makes a job small for `vertex-training rehearse`. No resource has it."""

    vars: dict[str, Any]
    timeout: formats.PositiveDuration
    maxTrialCount: formats.Positive
    args: list[String]


class Former(ClosedTypedDict, total=False):
    """What a job was called before."""

    formerly: formats.Formerly


class Data(ClosedTypedDict, total=False):
    """What jobs train on, which `data.lock` pins: objects of a bucket, files of the project, or a BigQuery table."""

    uri: Required[formats.DataUri]
    verify: Literal["error", "warn", "off"]
    grant: Boolean
    formerly: formats.Formerly


class SpecFile(ClosedTypedDict, total=False):
    """A file that holds the fields of a job."""

    file: Required[String]


class Schedule(ClosedTypedDict, total=False):
    """When jobs with `lifecycle.run: scheduled` run: one `job`, or several `jobs`, one after another."""

    cron: Required[formats.Cron]
    timeZone: formats.TimeZone
    job: String
    jobs: list[String]
    paused: Boolean
    overlap: Literal["skip", "allow"]
    formerly: formats.Formerly


class Declarations(ClosedTypedDict, total=False):
    """The sections of a file of declarations. Jobs are checked one by one, against the API's messages."""

    vars: dict[str, Any]
    images: dict[str, Image]
    packages: dict[str, PythonPackage]
    data: dict[str, Data]
    customJobs: dict[str, dict[str, Any]]
    hyperparameterTuningJobs: dict[str, dict[str, Any]]
    trainingPipelines: dict[str, dict[str, Any]]
    schedules: dict[str, Schedule]


class Emulator(ClosedTypedDict, total=False):
    """Settings of the local emulator."""

    port: formats.Port
    pidsLimit: formats.Positive
    logLimitMb: formats.Positive
    egress: Boolean
    secrets: dict[str, String]
    endpoints: dict[str, formats.StandIn]
    identity: formats.Acting


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
    alsoRead: list[formats.RepositoryName]
    legacyBuckets: list[formats.BucketName]
    legacyAgent: Boolean


class Identity(ClosedTypedDict, total=False):
    """The service account that jobs run as: an `account` to create, or an `existing` one."""

    account: formats.AccountId
    existing: formats.AccountEmail
    submitters: list[formats.Member]
    secrets: list[formats.SecretName]
    useVertexAi: Boolean
    createAgents: Boolean
    agentRoles: Boolean


class Bucket(ClosedTypedDict, total=False):
    """The bucket that jobs write to: one to create by its `name`, or an `existing` one."""

    name: formats.BucketName
    existing: formats.BucketName
    location: String
    writableFolders: list[formats.BucketFolder]
    deleteAfterDays: formats.Positive
    softDelete: Duration
    kmsKey: formats.KeyName
    labels: dict[str, String]
    protect: Boolean


class Peering(ClosedTypedDict, total=False):
    """A VPC network that is peered with Google's services. With `prefixLength` the stack creates the peering."""

    network: Required[formats.NetworkName]
    reservedIpRanges: list[String]
    prefixLength: formats.Positive
    name: formats.ComputeName


class DnsPeering(ClosedTypedDict, total=False):
    """A domain, ending with a dot, that jobs resolve in a network of a project."""

    domain: Required[String]
    targetProject: Required[String]
    targetNetwork: Required[String]


class Attachment(ClosedTypedDict, total=False):
    """The network attachment of jobs: an `existing` one, or one to create in a `subnetwork`."""

    existing: formats.AttachmentName
    subnetwork: String
    name: formats.ComputeName
    dnsPeering: list[DnsPeering]
    grant: Boolean


class Network(ClosedTypedDict, total=False):
    """The private network that jobs reach: by a `peering` or by an `attachment`."""

    peering: Peering
    attachment: Attachment


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


class ScheduleAccount(ClosedTypedDict, total=False):
    """A service account for schedules: an `account` to create, or an `existing` one."""

    account: formats.AccountId
    existing: formats.AccountEmail


class CloudScheduling(ClosedTypedDict, total=False):
    """What all schedules share: the accounts of Cloud Scheduler and of workflows, and the region of Cloud Scheduler."""

    scheduler: ScheduleAccount
    workflow: ScheduleAccount
    region: String
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
    maxMonthlyCost: Double
    maxExpectedCost: Double
    warnCostFactor: Double
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


class _StackKeys(Declarations, Cloud, total=False):
    include: list[String]
    secrets: dict[str, String]
    project: String
    region: String
    emulator: Emulator
    submissionsPerMinute: formats.Positive
    guardrails: Guardrails
    rehearse: Rehearse
    relabel: Literal["nextRun", "run"]
    outputs: Literal["full", "brief"]


APPLIED = ("prices", "submissionsPerMinute")
"""Keys of a stack that the providers of its jobs and a review go by as well, in place of the stack file's."""


class Stack(_StackKeys, total=False):
    """The keys of a stack file under `vertex-training:`: its settings, and declarations."""

    target: Required[Literal["local", "gcp"]]
    extends: String


class SharedFile(ClosedTypedDict, total=False):
    """A file that stack files extend: what they have in common. `guardrails` hold beside those of the stack file."""

    extends: String
    guardrails: Guardrails
    labels: dict[str, String]
    network: Network
    prices: Prices
    registry: Registry


class TrainingStackArgs(_StackKeys, total=False):
    """The arguments of a `TrainingStack`: keys of docs/configuration.md#stack-file, a `prefix`, and a former one."""

    target: Literal["local", "gcp"]
    prefix: String
    formerly: String
