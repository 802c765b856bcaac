"""The rules for the key `builder` of a stack file and of images."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.scalars import to_seconds
from vertex_api.validation.formats import Violation

from ..images.declaration import build_secrets, cloud_build_options, missing_version, pool_location, uses_cloud_build
from ..images.registry import is_google
from ..schema import shapes

_CLOUD_BUILD = ("builder", "cloudBuild")
_REGION = re.compile(r"[a-z]+(-[a-z]+)+[0-9]+|global")
_MAX_SECONDS = 24 * 3600
"""Of a build (Cloud Build's page on its configuration file, "timeout")."""


def stack_violations(stack_values: Mapping[str, Any]) -> Iterator[Violation]:
    """Find the rules that a stack's own `builder` breaks."""
    builder = stack_values.get("builder")
    if builder is None:
        return
    yield from _choice(builder)
    if (options := builder.get("cloudBuild")) is None:
        return
    yield from _options(options)
    url = stack_values.get("registry", {}).get("url")
    if url is not None and not is_google(url):
        message = "Cloud Build pushes as a Google account, which only Google's registries know; leave builder out"
        yield ("registry", "url"), message


def image_violations(image: shapes.Image, stack_values: Mapping[str, Any]) -> Iterator[Violation]:
    """Find the rules that an image breaks by its `builder` or by the stack's."""
    own: shapes.Builder | None = image.get("builder")
    stack_builder: Mapping[str, Any] = stack_values.get("builder", {})
    if own is not None:
        if stack_values.get("target") != "gcp":
            yield ("builder",), "is for the target gcp, and the target here is local; remove it, or take it from a var"
            return
        choice_violations = list(_choice(own))
        yield from choice_violations
        if choice_violations:
            return
        if "uri" in image or "stack" in image:
            return  # a rule of images says that it is built elsewhere
        if "cloudBuild" in own and "cloudBuild" not in stack_builder:
            message = (
                "needs vertex-training:builder.cloudBuild in the stack file, which creates the account of builds; "
                "{} there is enough, and other images may have builder: {local: true}"
            )
            yield _CLOUD_BUILD, message
            return
    if not uses_cloud_build(stack_builder, image):
        return
    options = cloud_build_options(stack_builder["cloudBuild"], (own or {}).get("cloudBuild", {}))
    if own is not None:
        yield from _options(options)
    secrets = options.get("secrets", {})
    for id_, secret_name in build_secrets(image).items():
        if secret_name not in secrets:
            yield ("secrets", id_), missing_version(secret_name)
        elif "network" in options:
            message = "cannot be used with network: Docker's classic builder, the only one with that network, has none"
            yield ("secrets", id_), message


def _choice(builder: Mapping[str, Any]) -> Iterator[Violation]:
    if len(builder) != 1:
        yield ("builder",), "needs exactly one of local and cloudBuild"
    elif builder.get("local") is False:
        yield ("builder", "local"), "must be true; to build elsewhere, write cloudBuild: {} instead"


def _options(options: Mapping[str, Any]) -> Iterator[Violation]:
    region, pool = options.get("region"), options.get("pool")
    if region is not None and not _REGION.fullmatch(region):
        yield (*_CLOUD_BUILD, "region"), f'"{region}" is not the name of a region, such as us-central1'
    if pool is not None:
        location = pool_location(pool)
        if region is not None and region != location:
            yield (*_CLOUD_BUILD, "region"), f'"{region}" must be the location of the pool, {location}, or be left out'
        if "machineType" in options:
            yield (*_CLOUD_BUILD, "machineType"), "has no effect in a pool, which has machines of its own; remove it"
    if options.get("cache") and "network" in options:
        message = "has no effect with network: Docker's classic builder would pull the whole last image; remove it"
        yield (*_CLOUD_BUILD, "cache"), message
    if "timeout" in options and to_seconds(options["timeout"]) > _MAX_SECONDS:
        yield (*_CLOUD_BUILD, "timeout"), f'"{options["timeout"]}" is longer than {_MAX_SECONDS}s, the most of a build'
