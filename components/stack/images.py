"""The images and packages of a stack: those that it builds or uploads, and the URIs of all."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pulumi

from vertex_api.job import Job

from ..errors import ImageNotPromoted
from ..images.declaration import is_built_here, warn_unpinned
from ..images.resource import TrainingImage
from ..packages import PythonPackage
from ..plan import guardrails
from ..plan.program import Foundation
from ..plan.training import Training
from ..runtime.resource import when_known
from ..schema import interpolation
from ..settings.settings import Settings


class Images:
    """A stack's images: `uris` by name, and the resources of those that are built here, `built`.

    A URI is plain text, except for an image of another stack, which is an output of that stack.
    """

    def __init__(self, settings: Settings, foundation: Foundation, parent: pulumi.Resource | None = None) -> None:
        self.built = {
            name: TrainingImage(
                settings.named(name),
                image,
                pulumi.ResourceOptions(parent=parent),
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
        stacks = {
            stack: pulumi.StackReference(
                settings.named(stack), stack_name=stack, opts=pulumi.ResourceOptions(parent=parent)
            )
            for stack in sorted(other_stacks)
        }
        self.uris: dict[str, pulumi.Input[str]] = {
            name: self.built[name].reference
            if name in self.built
            else image.get("uri")
            or _promoted(stacks[image["stack"]], name).apply(guardrails.image_check(settings.plan.guardrails, name))
            for name, image in settings.images.items()
        }

    @property
    def pinned(self) -> dict[str, pulumi.Input[str]]:
        """URIs by name for other stacks to run: of an image that is built here with its digest, once that is known.

        An image whose build has failed has `None`.
        """
        return {name: _pinned(self.built[name]) if name in self.built else uri for name, uri in self.uris.items()}


def _pinned(image: TrainingImage) -> pulumi.Output[str]:
    name = image.reference.rpartition(":")[0]
    return image.recovered("digest").apply(lambda digest: digest and f"{name}@{digest}")


def _promoted(stack: pulumi.StackReference, image: str) -> pulumi.Output[str]:
    """Return the URI, with digest, of the image that another stack has built. Raises ImageNotPromoted."""

    def find(uris: Any) -> str:
        if (uri := (uris or {}).get(image)) is not None:
            return str(uri)
        known = ", ".join(sorted(uris or {})) or "none"
        place = f"images.{image}: the stack {stack._name}"
        raise ImageNotPromoted(f"{place} has no image of this name (it has {known}); run `pulumi up` there first")

    return stack.get_output("pinnedImages").apply(find)


class Packages:
    """A stack's source distributions: `uris` by name, plain text, and the resources that upload them, `built`."""

    def __init__(self, settings: Settings, foundation: Foundation, parent: pulumi.Resource | None = None) -> None:
        opts = pulumi.ResourceOptions(parent=parent)
        self.built = {
            name: PythonPackage(settings.named(name), package, opts, foundation=foundation)
            for name, package in settings.packages.items()
        }
        self.uris = {name: package.reference for name, package in self.built.items()}


@dataclass(frozen=True)
class Sources:
    """What the references of jobs to images and packages lead to."""

    images: Images
    packages: Packages

    def resolve(
        self, training: Training, others: Mapping[str, Mapping[str, pulumi.Input[str]]] | None = None
    ) -> Training:
        """Return a job with its references to images, packages and into `others` resolved.

        Its spec is an output if an image comes from another stack.
        """
        names, job = training.references(), training.job
        tables: dict[str, Mapping[str, pulumi.Input[str]]] = {
            table: {name: uris[name] for name in sorted(names[table])}
            for table, uris in (("images", self.images.uris), ("packages", self.packages.uris))
        }

        def fill(known: Mapping[str, Mapping[str, str]]) -> Job:
            return Job(job.kind, interpolation.resolve(job.fields, known))

        return replace(training, spec=when_known(fill, {**tables, **(others or {})}))

    def built(self, training: Training) -> list[pulumi.Resource]:
        """Return the resources of those of a job's images and packages that this stack builds or uploads."""
        names = training.references()
        return [
            *(self.images.built[name] for name in sorted(names["images"] & self.images.built.keys())),
            *(self.packages.built[name] for name in sorted(names["packages"])),
        ]
