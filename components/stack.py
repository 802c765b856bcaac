"""From settings to resources: the images, packages and jobs of a stack, and its outputs."""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import groupby
from typing import Any, cast

import pulumi

from vertex_api.kinds import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE
from vertex_api.validation.canonical import CanonicalSpec

from .errors import ImageNotPromoted
from .images.base_images import warn_of_unpinned_bases
from .images.declared_images import is_built_here
from .images.training_image import TrainingImage
from .jobs import results, stages
from .jobs.completion import Completion
from .jobs.job import CustomJob, HyperparameterTuningJob, TrainingPipeline
from .jobs.results import MODEL_DIR
from .packages.python_package import PythonPackage
from .runtime.foundation import Foundation
from .runtime.outputs import apply_when_known
from .schema import references
from .schema.job_declaration import JobDeclaration
from .settings import guardrails
from .settings.settings import Settings

Job = CustomJob | HyperparameterTuningJob | TrainingPipeline

_RESOURCES: dict[str, type[Job]] = {
    CUSTOM_JOB.collection: CustomJob,
    HYPERPARAMETER_TUNING_JOB.collection: HyperparameterTuningJob,
    TRAINING_PIPELINE.collection: TrainingPipeline,
}
_RUN = ("name", "page", "logs")


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
            if is_built_here(image)
        }
        if settings.cloud and pulumi.runtime.is_dry_run():
            for name, built in self.built.items():
                warn_of_unpinned_bases(name, built.build_context, built)
        others = {image["stack"] for image in settings.images.values() if "stack" in image}
        stacks = {stack: pulumi.StackReference(stack, stack_name=stack) for stack in sorted(others)}
        self.uris: dict[str, pulumi.Input[str]] = {
            name: self.built[name].reference
            if name in self.built
            else image.get("uri")
            or promoted(stacks[image["stack"]], name).apply(guardrails.create_image_check(settings.guardrails, name))
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


class Packages:
    """A stack's source distributions: `uris` by name, plain text, and the resources that upload them."""

    def __init__(self, settings: Settings, foundation: Foundation) -> None:
        self.built = {
            name: PythonPackage(name, package, foundation=foundation) for name, package in settings.packages.items()
        }
        self.uris = {name: package.reference for name, package in self.built.items()}


class Jobs:
    """A stack's jobs: submitted once their images, packages and the jobs before them are there, and waited for.

    Each stage of jobs that others come after has a Completion of its own, and the other jobs that ask for it have one
    together.
    """

    def __init__(self, settings: Settings, foundation: Foundation, images: Images, packages: Packages) -> None:
        self._declared = {job.name: job for job in settings.jobs}
        self.resources: dict[str, Job] = {}
        self._found: dict[str, pulumi.Output[Mapping[str, Any]]] = {}
        ended: list[Completion] = []
        levels = stages.levels({job.name: job.upstream_jobs for job in settings.jobs})
        needed = frozenset().union(*(job.upstream_jobs for job in settings.jobs))
        in_order = sorted(settings.jobs, key=lambda job: levels[job.name])
        for level, group in groupby(in_order, lambda job: levels[job.name]):
            first: dict[str, Job] = {}
            for declared in group:
                before = [ended[at] for at in sorted({levels[name] for name in declared.upstream_jobs})]
                job = self._job(declared, settings, foundation, images, packages, before)
                self.resources[declared.name] = job
                if declared.name in needed:
                    first[declared.name] = job
            if first:
                ended.append(self._completion(f"stage-{level + 1}", first, foundation))
        last = {
            job.name: self.resources[job.name]
            for job in settings.jobs
            if job.lifecycle.get("wait") and job.name not in needed
        }
        if last:
            self._completion("completion", last, foundation)

    @property
    def results(self) -> pulumi.Output[Mapping[str, Any]]:
        """The results of all jobs that were waited for, by name."""
        return reduce(_together, dict.fromkeys(self._found.values()), pulumi.Output.from_input({}))

    def latest(self, name: str) -> pulumi.Output[Mapping[str, Any]]:
        """A job's run; of one that was waited for the state is what was found then, and the rest is in its results."""
        run = self.resources[name].run
        if name not in self._found:
            return run
        state = self._found[name].apply(lambda found: {"state": found[name]["state"]} if found else {})
        return run.apply(
            lambda run: state.apply(lambda state: {**{key: run[key] for key in (*_RUN, "state")}, **state})
        )

    def _completion(self, name: str, jobs: Mapping[str, Job], foundation: Foundation) -> Completion:
        lifecycles = {name: self._declared[name].lifecycle for name in jobs}
        deadlines = {name: lifecycle["deadline"] for name, lifecycle in lifecycles.items() if "deadline" in lifecycle}
        completion = Completion(name, jobs, foundation=foundation, deadlines=deadlines)
        # With --continue-on-error the program goes on after a wait that failed, and exports what there is.
        self._found.update(dict.fromkeys(jobs, completion.results.recover(lambda _: {})))
        return completion

    def _job(
        self,
        declared: JobDeclaration,
        settings: Settings,
        foundation: Foundation,
        images: Images,
        packages: Packages,
        before: Sequence[Completion],
    ) -> Job:
        used: dict[str, set[str]] = {"images": set(), "packages": set(), "secrets": set(), "jobs": set()}
        for _, reference in references.find_references(declared.spec.fields):
            table, _, name = reference.partition(".")
            used[table].add(name)
        tables: dict[str, Mapping[str, pulumi.Input[str]]] = {
            "images": {name: images.uris[name] for name in sorted(used["images"])},
            "packages": packages.uris,
            "jobs": self._folders(used["jobs"]),
        }
        after: list[pulumi.Resource] = [
            *(images.built[name] for name in sorted(used["images"] & images.built.keys())),
            *(packages.built[name] for name in sorted(used["packages"])),
            *before,
        ]
        return _RESOURCES[declared.kind.collection](
            declared.name,
            cast(Any, resolve_spec(declared.spec, tables)),
            foundation=foundation,
            lifecycle=declared.lifecycle,
            secrets={name: settings.secrets[name] for name in sorted(used["secrets"])},
            jobs={name: self.resources[name] for name in sorted(declared.referenced_jobs)},
            opts=pulumi.ResourceOptions(depends_on=after) if after else None,
        )

    def _folders(self, used: Iterable[str]) -> dict[str, pulumi.Input[str]]:
        """Those results of jobs that a preview knows: where models go.

        But for searches, whose best trial has them, and for jobs that were adopted.
        """
        named = {reference: results.split(reference, self.resources) for reference in used}
        return {
            reference: cast(pulumi.Input[str], self.resources[name].model_dir)
            for reference, (name, path) in named.items()
            if path == MODEL_DIR and not self._declared[name].spec.study and not self._declared[name].is_adopted
        }


def resolve_spec(
    spec: CanonicalSpec, tables: Mapping[str, Mapping[str, pulumi.Input[str]]]
) -> CanonicalSpec | pulumi.Output[CanonicalSpec]:
    """Return a spec with its references into `tables` resolved: at once, unless an image comes from another stack."""
    return apply_when_known(lambda tables: spec.transform(lambda fields: references.resolve(fields, tables)), tables)


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

    `jobs` has also what a refresh has shown of a job that was not waited for (error, trials, bestTrial).
    `pinnedImages` names images by the digests that were built; another stack's `images.NAME.stack` reads it.
    """
    pulumi.export("images", images.uris)
    pulumi.export("pinnedImages", images.pinned)
    # Each job by itself: Output.all would take what it is given apart and put it together, 28 Outputs a job.
    pulumi.export("jobs", {name: jobs.latest(name) for name in jobs.resources})
    pulumi.export("results", jobs.results)


def _together(
    results: pulumi.Output[Mapping[str, Any]], more: pulumi.Output[Mapping[str, Any]]
) -> pulumi.Output[Mapping[str, Any]]:
    return results.apply(lambda results: more.apply(lambda more: {**results, **more}))
