"""Types of the key `builder` of a stack file and of an image. docs/configuration.md describes each field."""

from typing import Literal

from vertex_api.scalar_types import Boolean, String

from . import field_types
from .closed_typed_dict_base import ClosedTypedDict


class CloudBuild(ClosedTypedDict, total=False):
    """How Cloud Build builds images. `secrets` are versions of Secret Manager by the stack's name of a secret."""

    region: String
    machineType: Literal["E2_MEDIUM", "E2_STANDARD_2", "E2_HIGHCPU_8", "E2_HIGHCPU_32", "N1_HIGHCPU_8", "N1_HIGHCPU_32"]
    pool: field_types.WorkerPoolName
    serviceAccount: field_types.AccountEmail
    timeout: field_types.PositiveDuration
    network: Literal["cloudbuild"]
    cache: Boolean
    secrets: dict[str, field_types.SecretVersionName]


class Builder(ClosedTypedDict, total=False):
    """What builds images: this machine (`local: true`), or Cloud Build."""

    local: Boolean
    cloudBuild: CloudBuild
