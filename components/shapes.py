"""Shapes of what a user declares, beside the API's own messages. Each field is described in docs/configuration.md."""

from typing import Annotated, Any, Literal, Required

from pydantic import AfterValidator, ConfigDict, with_config
from typing_extensions import TypedDict

from vertex.scalars import Boolean, Int32, String

_shape = with_config(ConfigDict(extra="forbid"))


def _not_negative(value: int) -> int:
    if value < 0:
        raise ValueError(f"{value} is below zero")
    return value


def _port(value: int) -> int:
    if not 0 <= value <= 65535:
        raise ValueError(f"{value} is not between 0 and 65535")
    return value


@_shape
class Image(TypedDict, total=False):
    """An image built from a `context` folder of the project, or one that is built elsewhere (`uri`)."""

    context: String
    dockerfile: String
    target: String
    buildArgs: dict[str, String]
    platform: String
    uri: String


@_shape
class Lifecycle(TypedDict, total=False):
    """What happens around a job: does `pulumi up` wait for it, what does deleting it do, and a counter to run again."""

    wait: Boolean
    onDelete: Literal["delete", "cancel", "keep"]
    rerun: Annotated[Int32, AfterValidator(_not_negative)]


@_shape
class Emulator(TypedDict, total=False):
    """Settings of the local emulator."""

    port: Annotated[Int32, AfterValidator(_port)]


@_shape
class Declarations(TypedDict, total=False):
    """What a file of declarations may hold. Jobs are checked one by one, against the API's messages."""

    vars: dict[str, Any]
    images: dict[str, Image]
    customJobs: dict[str, dict[str, Any]]
    hyperparameterTuningJobs: dict[str, dict[str, Any]]


@_shape
class Stack(Declarations, total=False):
    """What a stack file may hold under `vertex-training:`: where and how, and small declarations."""

    target: Required[Literal["local"]]
    include: list[String]
    secrets: dict[str, String]
    project: String
    region: String
    emulator: Emulator


LIFECYCLE: Lifecycle = {"wait": False, "onDelete": "delete", "rerun": 0}
"""What holds where a declaration says nothing."""
