"""Which builder an image has, Cloud Build or this machine, and with which options: the stack's, and its own."""

from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.resource_names import build_parent

from ..errors import BuilderUnusable
from ..schema import interpolation, shapes

_MACHINE_KEYS = ("machineType", "pool")
"""Of which an image's one replaces the stack's other."""


def merge_cloud_build_options(stack_options: Mapping[str, Any], image_options: shapes.CloudBuild) -> dict[str, Any]:
    """Return the options of an image's build: the image's own, and the stack's where it says nothing."""
    replaced = set(_MACHINE_KEYS) if image_options.keys() & set(_MACHINE_KEYS) else set()
    merged = {key: value for key, value in stack_options.items() if key not in replaced} | dict(image_options)
    secrets = {**stack_options.get("secrets", {}), **image_options.get("secrets", {})}
    return {**merged, **({"secrets": secrets} if secrets else {})}


def is_built_by_cloud_build(stack_builder: Mapping[str, Any] | None, image: shapes.Image) -> bool:
    """Whether Cloud Build builds an image. `stack_builder` is the stack's key `builder`, if it has one."""
    return "cloudBuild" in image.get("builder", stack_builder or {})


def create_cloud_build_input_or_none(
    image_name: str, foundation_builder: Mapping[str, Any] | None, image: shapes.Image
) -> dict[str, Any] | None:
    """Return the input `builder` of an image; `None` if this machine builds it. Raises BuilderUnusable.

    `foundation_builder` is that of the foundation. Secrets of the stack become those of the image, by their ids.
    """
    if not is_built_by_cloud_build(foundation_builder, image):
        return None
    if foundation_builder is None:
        raise BuilderUnusable(
            f"images.{image_name}: Cloud Build builds for a stack with vertex-training:builder.cloudBuild"
        )
    options = merge_cloud_build_options(
        foundation_builder["cloudBuild"], image.get("builder", {}).get("cloudBuild", {})
    )
    known, region, pool = options.pop("secrets", {}), options.pop("region"), options.get("pool")
    options["parent"] = build_parent(options.pop("project"), get_pool_location(pool) if pool else region)
    versions = {}
    for id_, secret_name in iterate_secret_ids_and_stack_secret_names(image):
        if secret_name not in known:
            raise BuilderUnusable(
                f"images.{image_name}.secrets.{id_}: {build_undeclared_secret_version_message(secret_name)}"
            )
        versions[id_] = known[secret_name]
    return {"cloudBuild": {**options, **({"secrets": versions} if versions else {})}}


def get_pool_location(pool: str) -> str:
    """Return the location of a private pool, `projects/P/locations/L/workerPools/W`."""
    return pool.split("/")[3]


def iterate_secret_ids_and_stack_secret_names(image: shapes.Image) -> Iterator[tuple[str, str]]:
    """Yield each of an image's build secrets with the stack's secret that it refers to: `token: ${secrets.hfToken}`."""
    for id_, text in sorted(image.get("secrets", {}).items()):
        references = [reference for _, reference in interpolation.references(text)]
        yield id_, references[0].removeprefix("secrets.") if references else id_


def build_undeclared_secret_version_message(secret_name: str) -> str:
    """Return why Cloud Build cannot read a secret of the stack, and what to write."""
    return (
        "Cloud Build reads secrets from Secret Manager alone; write "
        f"vertex-training:builder.cloudBuild.secrets.{secret_name}: projects/P/secrets/NAME/versions/N"
    )
