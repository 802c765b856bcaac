"""From settings to resources: the images and jobs of a stack, and its outputs."""

from collections.abc import Mapping
from typing import Any

import pulumi

from components import guardrails, references
from components.completion import Completion
from components.errors import ImageNotPromoted
from components.foundation import Foundation
from components.image import TrainingImage
from components.job import CustomJob, HyperparameterTuningJob
from components.settings import Settings
from vertex.kinds import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB

Job = CustomJob | HyperparameterTuningJob

_RESOURCES: dict[str, type[Job]] = {
    CUSTOM_JOB.collection: CustomJob,
    HYPERPARAMETER_TUNING_JOB.collection: HyperparameterTuningJob,
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
            if "context" in image
        }
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


class Jobs:
    """A stack's jobs: submitted once their images exist, and waited for where they ask for it."""

    def __init__(self, settings: Settings, foundation: Foundation, images: Images) -> None:
        self.resources: dict[str, Job] = {}
        for declared in settings.jobs:
            used: dict[str, set[str]] = {"images": set(), "secrets": set()}
            for _, reference in references.found(declared.spec):
                table, _, name = reference.partition(".")
                used[table].add(name)
            self.resources[declared.name] = _RESOURCES[declared.kind.collection](
                declared.name,
                resolved(declared.spec, {name: images.uris[name] for name in sorted(used["images"])}),
                foundation=foundation,
                lifecycle=declared.lifecycle,
                secrets={name: settings.secrets[name] for name in sorted(used["secrets"])},
                opts=pulumi.ResourceOptions(
                    depends_on=[images.built[name] for name in sorted(used["images"] & images.built.keys())]
                ),
            )
        waited = {job.name: self.resources[job.name] for job in settings.jobs if job.lifecycle.get("wait")}
        self.completion = Completion("completion", waited, foundation=foundation) if waited else None


def resolved(spec: Mapping[str, Any], uris: Mapping[str, pulumi.Input[str]]) -> Any:
    """A spec with its image URIs: plain text, as long as none of them comes from another stack."""
    if any(isinstance(uri, pulumi.Output) for uri in uris.values()):
        return pulumi.Output.all(**uris).apply(lambda known: references.resolve(spec, {"images": known}))
    return references.resolve(spec, {"images": uris})


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
    runs = pulumi.Output.all(**{name: job.run for name, job in jobs.resources.items()})
    pulumi.export("images", images.uris)
    pulumi.export("pinnedImages", images.pinned)
    pulumi.export("jobs", pulumi.Output.all(runs, results).apply(lambda known: _latest(*known)))
    pulumi.export("results", results)


def _latest(runs: Mapping[str, dict[str, Any]], results: Mapping[str, Any]) -> dict[str, Any]:
    """Each job's run, with the state that waiting found where the job was waited for."""
    return {name: {**run, "state": results.get(name, run)["state"]} for name, run in runs.items()}
