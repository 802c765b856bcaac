"""Shapes of what a user declares, beside the API's own messages. Each field is described in docs/configuration.md."""

from typing import Annotated, Any, Literal, Required

from pydantic import AfterValidator, ConfigDict, with_config
from typing_extensions import TypedDict

from vertex_api import types
from vertex_api.scalars import Boolean, Double, Duration, Int32, String

from . import formats

_shape = with_config(ConfigDict(extra="forbid"))


@_shape
class Package(TypedDict, total=False):
    """A script or module that becomes an image without a Dockerfile."""

    path: Required[String]
    script: formats.CopiedPath
    module: formats.ModuleName
    baseImage: Required[formats.BaseImage]
    requirements: list[formats.Requirement]
    extraPackages: list[formats.CopiedPath]
    extraDirs: list[formats.CopiedPath]


@_shape
class Image(TypedDict, total=False):
    """An image built from a `context` folder or a `package`, or elsewhere (`uri`), or by another `stack`."""

    context: String
    package: Package
    dockerfile: String
    target: String
    buildArgs: dict[str, String]
    platform: String
    secrets: dict[str, String]
    uri: String
    stack: String


@_shape
class PythonPackage(TypedDict, total=False):
    """A source distribution for a job's `packageUris`: of a folder (`path`), or of one file (`script`)."""

    path: String
    script: String
    requirements: list[formats.Requirement]


@_shape
class Lifecycle(TypedDict, total=False):
    """What happens around a job: what it comes after, who waits, what deleting it does, `rerun`, what to `adopt`."""

    wait: Boolean
    deadline: Annotated[Duration, AfterValidator(formats.validate_positive_duration)]
    after: list[String]
    onDelete: Literal["delete", "cancel", "keep"]
    rerun: Annotated[Int32, AfterValidator(formats.validate_not_negative)]
    adopt: formats.JobId


@_shape
class SpecFile(TypedDict, total=False):
    """A file that holds the fields of a job."""

    file: Required[String]


@_shape
class Emulator(TypedDict, total=False):
    """Settings of the local emulator."""

    port: Annotated[Int32, AfterValidator(formats.validate_port)]


@_shape
class Registry(TypedDict, total=False):
    """Where images are: a repository of Artifact Registry that is made here, one that exists, or another `url`."""

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


@_shape
class Identity(TypedDict, total=False):
    """What jobs run as: a service account that is made here (`account`), or one that exists (`existing`)."""

    account: formats.AccountId
    existing: formats.AccountEmail
    submitters: list[formats.Member]


@_shape
class Bucket(TypedDict, total=False):
    """Where jobs write: a bucket that is made here (`name`), or one that exists (`existing`)."""

    name: formats.BucketName
    existing: formats.BucketName
    location: String
    deleteAfterDays: formats.Positive
    kmsKey: formats.KeyName
    labels: dict[str, String]
    protect: Boolean


@_shape
class Peering(TypedDict, total=False):
    """A VPC network that is peered with Google's services; with `prefixLength` the peering is made here."""

    network: Required[formats.NetworkName]
    reservedIpRanges: list[String]
    prefixLength: formats.Positive


@_shape
class DnsPeering(TypedDict, total=False):
    """A domain (ending with a dot) that jobs resolve in a network of a project."""

    domain: Required[String]
    targetProject: Required[String]
    targetNetwork: Required[String]


@_shape
class Attachment(TypedDict, total=False):
    """A network attachment for jobs: one that exists, or one that is made here in a `subnetwork`."""

    existing: formats.AttachmentName
    subnetwork: String
    dnsPeering: list[DnsPeering]


@_shape
class Network(TypedDict, total=False):
    """The private network that jobs reach, in one of two ways."""

    peering: Peering
    attachment: Attachment


@_shape
class AutoscalingSpec(TypedDict, total=False):
    """How many machines a pool has as the jobs on it come and go."""

    minReplicaCount: Required[formats.Positive]
    maxReplicaCount: Required[formats.Positive]


@_shape
class ResourcePool(TypedDict, total=False):
    """Machines of one kind that a persistent resource keeps."""

    machineSpec: Required[types.MachineSpec]
    replicaCount: formats.Positive
    autoscalingSpec: AutoscalingSpec
    diskSpec: types.DiskSpec


@_shape
class PersistentResource(TypedDict, total=False):
    """Machines that stay between jobs, for those that name it."""

    name: Required[formats.PersistentResourceId]
    resourcePools: Required[list[ResourcePool]]


@_shape
class Prices(TypedDict, total=False):
    """Prices in USD that a stack names itself: by family or type, then by region. `asOf` is a day: 2026-07-30."""

    asOf: Required[String]
    source: Required[String]
    vcpu: dict[str, dict[str, Double]]
    gb: dict[str, dict[str, Double]]
    accelerator: dict[str, dict[str, Double]]
    disk: dict[str, dict[str, Double]]


@_shape
class Guardrails(TypedDict, total=False):
    """What jobs and machines of a stack may be. Their types are patterns, `registries` begin the names of images."""

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


@_shape
class Cloud(TypedDict, total=False):
    """What a stack file says of a Google Cloud project, for the target `gcp` alone."""

    projectNumber: formats.ProjectNumber
    registry: Registry
    identity: Identity
    bucket: Bucket
    network: Network
    persistentResource: PersistentResource
    kmsKey: formats.KeyName
    labels: dict[str, String]
    prices: Prices


@_shape
class Declarations(TypedDict, total=False):
    """What a file of declarations may hold. Jobs are checked one by one, against the API's messages."""

    vars: dict[str, Any]
    images: dict[str, Image]
    packages: dict[str, PythonPackage]
    customJobs: dict[str, dict[str, Any]]
    hyperparameterTuningJobs: dict[str, dict[str, Any]]
    trainingPipelines: dict[str, dict[str, Any]]


@_shape
class Stack(Declarations, Cloud, total=False):
    """What a stack file may hold under `vertex-training:`: where and how, and small declarations."""

    target: Required[Literal["local", "gcp"]]
    include: list[String]
    secrets: dict[str, String]
    project: String
    region: String
    emulator: Emulator
    guardrails: Guardrails


LIFECYCLE: Lifecycle = {"wait": False, "after": [], "onDelete": "delete", "rerun": 0}
"""What holds where a declaration says nothing."""
