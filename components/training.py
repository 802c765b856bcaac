"""From settings to resources: the images, packages and jobs of a stack, and its outputs."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

import pulumi

from components import guardrails, references
from components.base_images import unpinned
from components.completion import Completion
from components.errors import ImageNotPromoted
from components.foundation import Foundation
from components.image import TrainingImage
from components.job import CustomJob, HyperparameterTuningJob, TrainingPipeline
from components.python_package import PythonPackage
from components.settings import Settings
from vertex.kinds import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE

Job = CustomJob | HyperparameterTuningJob | TrainingPipeline

_RESOURCES: dict[str, type[Job]] = {
    CUSTOM_JOB.collection: CustomJob,
    HYPERPARAMETER_TUNING_JOB.collection: HyperparameterTuningJob,
    TRAINING_PIPELINE.collection: TrainingPipeline,
}


class Images:
    """A stack's images: `uris` by name, and the resources of those that are built here.

    A URI is plain text, but for an image of another stack: that one's output says which digest it was built as.
    """

    def __init__(self, settings: Settings, foundation: Foundation) -> None:
        self.built = {
            name: TrainingImage(
                name,
                image,
                foundation=foundation,
                secrets=references.resolve(image.get("secrets", {}), {"secrets": settings.secrets}),
            )
            for name, image in settings.images.items()
            if image.keys() & {"context", "package"}
        }
        if settings.cloud and pulumi.runtime.is_dry_run():
            for name, built in self.built.items():
                _warn_of_unpinned(settings, name, built)
        others = {image["stack"] for image in settings.images.values() if "stack" in image}
        stacks = {stack: pulumi.StackReference(stack, stack_name=stack) for stack in sorted(others)}
        self.uris: dict[str, pulumi.Input[str]] = {
            name: self.built[name].reference
            if name in self.built
            else image.get("uri")
            or promoted(stacks[image["stack"]], name).apply(guardrails.image_check(settings.guardrails, name))
            for name, image in settings.images.items()
        }

    @property
    def pinned(self) -> dict[str, pulumi.Input[str]]:
        """By name: URIs that name the digest of what was built, once it is known, for other stacks to run."""
        return {
            name: pulumi.Output.concat(self.built[name].reference.rpartition(":")[0], "@", self.built[name].digest)
            if name in self.built
            else uri
            for name, uri in self.uris.items()
        }


def _warn_of_unpinned(settings: Settings, name: str, built: TrainingImage) -> None:
    """Says in a preview which base images may change without a new tag."""
    image = settings.images[name]
    if "package" in image:
        place, text = f"images.{name}.package.baseImage", f"FROM {image['package']['baseImage']}"
        found = [(place, base) for _, base in unpinned(text, {})]
    else:
        file = PurePosixPath(image["context"]) / image.get("dockerfile", "Dockerfile")
        text = (settings.root / file).read_text()
        found = [(f"{file}:{line}", base) for line, base in unpinned(text, image.get("buildArgs", {}))]
    for place, base in found:
        pulumi.warn(
            f"{place}: FROM {base} is not pinned: a build of the same files may give another image another day; "
            f"name its digest, {base}@sha256:…",
            built,
        )


class Packages:
    """A stack's source distributions: `uris` by name, plain text, and the resources that upload them."""

    def __init__(self, settings: Settings, foundation: Foundation) -> None:
        self.built = {
            name: PythonPackage(name, package, foundation=foundation) for name, package in settings.packages.items()
        }
        self.uris = {name: package.reference for name, package in self.built.items()}


class Jobs:
    """A stack's jobs: submitted once their images and packages exist, and waited for where they ask for it."""

    def __init__(self, settings: Settings, foundation: Foundation, images: Images, packages: Packages) -> None:
        self.resources: dict[str, Job] = {}
        for declared in settings.jobs:
            used: dict[str, set[str]] = {"images": set(), "packages": set(), "secrets": set()}
            for _, reference in references.found(declared.spec):
                table, _, name = reference.partition(".")
                used[table].add(name)
            self.resources[declared.name] = _RESOURCES[declared.kind.collection](
                declared.name,
                resolved(declared.spec, {name: images.uris[name] for name in sorted(used["images"])}, packages.uris),
                foundation=foundation,
                lifecycle=declared.lifecycle,
                secrets={name: settings.secrets[name] for name in sorted(used["secrets"])},
                opts=pulumi.ResourceOptions(
                    depends_on=[
                        *(images.built[name] for name in sorted(used["images"] & images.built.keys())),
                        *(packages.built[name] for name in sorted(used["packages"])),
                    ]
                ),
            )
        waited = {job.name: self.resources[job.name] for job in settings.jobs if job.lifecycle.get("wait")}
        self.completion = Completion("completion", waited, foundation=foundation) if waited else None


def resolved(spec: Mapping[str, Any], uris: Mapping[str, pulumi.Input[str]], packages: Mapping[str, str]) -> Any:
    """A spec with the URIs of its images and packages: plain text, as long as no image comes from another stack."""

    def fill(known: Mapping[str, Any]) -> Any:
        return references.resolve(spec, {"images": known, "packages": packages})

    if any(isinstance(uri, pulumi.Output) for uri in uris.values()):
        return pulumi.Output.all(**uris).apply(fill)
    return fill(uris)


def promoted(stack: pulumi.StackReference, name: str) -> pulumi.Output[str]:
    """The image that another stack has built under this name, by its digest. Raises ImageNotPromoted."""

    def find(pinned: Any) -> str:
        found = (pinned or {}).get(name)
        if found is None:
            known = ", ".join(sorted(pinned or {})) or "none"
            raise ImageNotPromoted(
                f"images.{name}: the stack {stack._name} has no image of this name (it has {known}); "
                "run `pulumi up` there first"
            )
        return str(found)

    return stack.get_output("pinnedImages").apply(find)


def export(images: Images, jobs: Jobs) -> None:
    """The stack's outputs, each a map by name: `images`, `pinnedImages`, `jobs` (name, state, page, logs), `results`.

    `pinnedImages` names images by the digests that were built; another stack's `images.NAME.stack` reads it.
    """
    results = jobs.completion.results if jobs.completion else pulumi.Output.from_input({})
    # Of no jobs at all this is a list; taking them through from_input instead would cost each job two Outputs more.
    runs = pulumi.Output.all(**{name: job.run for name, job in jobs.resources.items()})
    pulumi.export("images", images.uris)
    pulumi.export("pinnedImages", images.pinned)
    pulumi.export("jobs", pulumi.Output.all(runs, results).apply(lambda known: _latest(dict(known[0]), known[1])))
    pulumi.export("results", results)


def _latest(runs: Mapping[str, dict[str, Any]], results: Mapping[str, Any]) -> dict[str, Any]:
    """Each job's run, with the state that waiting found where the job was waited for."""
    return {name: {**run, "state": results.get(name, run)["state"]} for name, run in runs.items()}
