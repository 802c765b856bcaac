"""The images and packages of a stack: those that it builds or uploads, and the URIs of all."""

from typing import Any

import pulumi

from ..errors import ImageNotPromoted
from ..images.declaration import is_built_here, warn_unpinned
from ..images.resource import TrainingImage
from ..packages import PythonPackage
from ..runtime.foundation import Foundation
from ..schema import interpolation
from ..settings import guardrail_checks
from ..settings.settings import Settings


class Images:
    """A stack's images: `uris` by name, and the resources of those that are built here, `built`.

    A URI is plain text, except for an image of another stack, which is an output of that stack.
    """

    def __init__(self, settings: Settings, foundation: Foundation) -> None:
        self.built = {
            name: TrainingImage(
                name,
                image,
                foundation=foundation,
                secrets=interpolation.resolve(image.get("secrets", {}), {"secrets": settings.secrets}),
            )
            for name, image in settings.images.items()
            if is_built_here(image)
        }
        if settings.cloud and pulumi.runtime.is_dry_run():
            for name, image in self.built.items():
                warn_unpinned(name, image.build_context, image)
        other_stacks = {image["stack"] for image in settings.images.values() if "stack" in image}
        stacks = {stack: pulumi.StackReference(stack, stack_name=stack) for stack in sorted(other_stacks)}
        self.uris: dict[str, pulumi.Input[str]] = {
            name: self.built[name].reference
            if name in self.built
            else image.get("uri")
            or _require_promoted_image_uri(stacks[image["stack"]], name).apply(
                guardrail_checks.build_image_uri_validator(settings.guardrails, name)
            )
            for name, image in settings.images.items()
        }

    @property
    def uris_for_other_stacks(self) -> dict[str, pulumi.Input[str]]:
        """URIs by name for other stacks to run: of an image that is built here with its digest, once that is known.

        An image whose build has failed has `None`.
        """
        return {
            name: _get_pinned_uri(self.built[name]) if name in self.built else uri for name, uri in self.uris.items()
        }


class Packages:
    """A stack's source distributions: `uris` by name, plain text, and the resources that upload them, `built`."""

    def __init__(self, settings: Settings, foundation: Foundation) -> None:
        self.built = {
            name: PythonPackage(name, package, foundation=foundation) for name, package in settings.packages.items()
        }
        self.uris = {name: package.reference for name, package in self.built.items()}


def _get_pinned_uri(image: TrainingImage) -> pulumi.Output[str]:
    name = image.reference.rpartition(":")[0]
    return image.recovered("digest").apply(lambda digest: digest and f"{name}@{digest}")


def _require_promoted_image_uri(stack: pulumi.StackReference, image_name: str) -> pulumi.Output[str]:
    """Return the URI, with digest, of the image that another stack has built. Raises ImageNotPromoted."""

    def require_image_uri(uris_by_name: Any) -> str:
        if (uri := (uris_by_name or {}).get(image_name)) is not None:
            return str(uri)
        place = f"images.{image_name}: the stack {stack._name}"
        known = ", ".join(sorted(uris_by_name or {})) or "none"
        raise ImageNotPromoted(f"{place} has no image of this name (it has {known}); run `pulumi up` there first")

    return stack.get_output("pinnedImages").apply(require_image_uri)
