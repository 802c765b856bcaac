"""Types of declarations: images, packages, schedules, and what jobs have beside the API's messages.

docs/configuration.md describes each field.
"""

from typing import Any, Literal, Required

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from vertex_api.scalar_types import Boolean, String

from . import field_types


@with_config(ConfigDict(extra="forbid"))
class ClosedTypedDict(TypedDict):
    """An object of a declaration or a stack file, with the fields that it declares and no others."""


class CloudBuild(ClosedTypedDict, total=False):
    """How Cloud Build builds images. `secrets` are versions of Secret Manager by the stack's name of a secret."""

    region: String
    machineType: Literal["E2_MEDIUM", "E2_STANDARD_2", "E2_HIGHCPU_8", "E2_HIGHCPU_32", "N1_HIGHCPU_8", "N1_HIGHCPU_32"]
    pool: field_types.WorkerPoolName
    dockerImage: field_types.DockerImage
    serviceAccount: field_types.AccountEmail
    timeout: field_types.PositiveDuration
    network: Literal["cloudbuild"]
    cache: Boolean
    secrets: dict[str, field_types.SecretVersionName]


class Builder(ClosedTypedDict, total=False):
    """What builds images: this machine (`local: true`), or Cloud Build."""

    local: Boolean
    cloudBuild: CloudBuild


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


class Schedule(ClosedTypedDict, total=False):
    """When jobs with `lifecycle.run: scheduled` run: one `job`, or several `jobs`, one after another."""

    cron: Required[field_types.Cron]
    timeZone: field_types.TimeZone
    job: String
    jobs: list[String]
    paused: Boolean
    overlap: Literal["skip", "allow"]


class Declarations(ClosedTypedDict, total=False):
    """The sections of a file of declarations. Jobs are checked one by one, against the API's messages."""

    vars: dict[str, Any]
    images: dict[str, Image]
    packages: dict[str, PythonPackage]
    customJobs: dict[str, dict[str, Any]]
    hyperparameterTuningJobs: dict[str, dict[str, Any]]
    trainingPipelines: dict[str, dict[str, Any]]
    schedules: dict[str, Schedule]


LIFECYCLE_DEFAULTS: Lifecycle = {"wait": False, "after": [], "onDelete": "delete", "rerun": 0}
"""The defaults of a job that the stack submits."""
