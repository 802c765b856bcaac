"""From settings to resources: the images and jobs of a stack, and its outputs."""

from collections.abc import Mapping
from typing import Any

import pulumi

from components import references
from components.completion import Completion
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
    """A stack's images: `uris` by name, and the resources of those that are built here."""

    def __init__(self, settings: Settings, foundation: Foundation) -> None:
        self.built = {
            name: TrainingImage(name, image, foundation=foundation)
            for name, image in settings.images.items()
            if "context" in image
        }
        self.uris: dict[str, str] = {
            name: self.built[name].reference if name in self.built else image["uri"]
            for name, image in settings.images.items()
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
                references.resolve(declared.spec, {"images": images.uris}),
                foundation=foundation,
                lifecycle=declared.lifecycle,
                secrets={name: settings.secrets[name] for name in sorted(used["secrets"])},
                opts=pulumi.ResourceOptions(
                    depends_on=[images.built[name] for name in sorted(used["images"] & images.built.keys())]
                ),
            )
        waited = {job.name: self.resources[job.name] for job in settings.jobs if job.lifecycle.get("wait")}
        self.completion = Completion("completion", waited, foundation=foundation) if waited else None


def export(images: Images, jobs: Jobs) -> None:
    """The stack's outputs: `images`, `jobs` (name, state, page, logs) and `results`, each a map by name."""
    results = jobs.completion.results if jobs.completion else pulumi.Output.from_input({})
    runs = pulumi.Output.all(**{name: job.run for name, job in jobs.resources.items()})
    pulumi.export("images", images.uris)
    pulumi.export("jobs", pulumi.Output.all(runs, results).apply(lambda known: _latest(*known)))
    pulumi.export("results", results)


def _latest(runs: Mapping[str, dict[str, Any]], results: Mapping[str, Any]) -> dict[str, Any]:
    """Each job's run, with the state that waiting found where the job was waited for."""
    return {name: {**run, "state": results.get(name, run)["state"]} for name, run in runs.items()}
