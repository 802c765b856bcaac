"""The resources of a stack, created as its settings declare them: images, packages, jobs, schedules.

Jobs are submitted after the images, packages and jobs that they need, and waited for.
"""

import asyncio
import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import groupby
from typing import Any, TypeVar, cast

import pulumi
from pulumi.runtime import rpc

from vertex_api.estimates.runs import ONE_LINE, extended
from vertex_api.job import MODEL_DIR, Job
from vertex_api.names import (
    CUSTOM_JOB,
    HYPERPARAMETER_TUNING_JOB,
    SUCCEEDED_STATES,
    TRAINING_PIPELINE,
    did_you_mean,
    short_state,
)

from .data.lock import LockedData
from .errors import ImageNotPromoted
from .images.declaration import is_built_here, uses_cloud_build, warn_classic, warn_unpinned
from .images.image import TrainingImage
from .jobs.job import Completion, CustomJob, HyperparameterTuningJob, TrainingPipeline
from .jobs.references import levels
from .jobs.runs import TOOK
from .packages import PythonPackage
from .plan.programmed import Foundation
from .plan.training import Training
from .runtime.resource import formerly, when_known
from .schedules.component import JobTemplate, Schedule
from .schema import interpolation, shapes
from .settings.settings import Settings

Args = TypeVar("Args", shapes.Image, shapes.PythonPackage)
JobResource = CustomJob | HyperparameterTuningJob | TrainingPipeline
Value = TypeVar("Value")
Results = pulumi.Output[Mapping[str, Any]]
RESOURCE_TYPES: dict[str, type[JobResource]] = {
    CUSTOM_JOB.collection: CustomJob,
    HYPERPARAMETER_TUNING_JOB.collection: HyperparameterTuningJob,
    TRAINING_PIPELINE.collection: TrainingPipeline,
}
_RUN_KEYS = ("name", "page", "logs")
MAX_FULL = 20
"""With more jobs than this, `outputs` has a line for each by default: Pulumi prints 15 lines of outputs for a job."""


class Named(dict[str, Value]):
    """What a stack has by name, such as its images. A name that it does not have is one line, not a KeyError."""

    def __init__(self, place: str, items: Mapping[str, Value]) -> None:
        super().__init__(items)
        self._place = place

    def __missing__(self, name: object) -> Value:
        suggestion = did_you_mean(str(name), self) or "; it declares none"
        raise pulumi.RunError(f'{self._place}: "{name}" is not a name that the stack declares{suggestion}')


class Images:
    """The images of a stack."""

    built: Mapping[str, TrainingImage]
    """The resources of the images that are built here, by name."""
    uris: Mapping[str, pulumi.Input[str]]
    """The URIs by name: plain text, except for an image of another stack, which is an output of that stack."""

    def __init__(self, settings: Settings, foundation: Foundation, parent: pulumi.Resource | None = None) -> None:
        built = {
            name: TrainingImage(
                settings.named(name),
                _named(settings, image),
                pulumi.ResourceOptions(parent=parent),
                foundation=foundation,
                secrets=interpolation.resolve(image.get("secrets", {}), {"secrets": settings.secrets}),
            )
            for name, image in settings.images.items()
            if is_built_here(image)
        }
        self.built = Named("images.built", built)
        for name, image in self.built.items() if pulumi.runtime.is_dry_run() else ():
            if warning := image.build_context.warning:
                pulumi.warn(f"images.{name}.package: {warning}", image)
            if settings.cloud:
                warn_unpinned(name, image.build_context, image)
            if not uses_cloud_build(foundation.image_builder_config, settings.images[name]):
                warn_classic(name, image.build_context, image)
        other_stacks = {image["stack"] for image in settings.images.values() if "stack" in image}
        stacks = {
            stack: pulumi.StackReference(
                settings.named(stack), stack_name=stack, opts=pulumi.ResourceOptions(parent=parent)
            )
            for stack in sorted(other_stacks)
        }
        uris = {
            name: self.built[name].reference
            if name in self.built
            else image.get("uri")
            or _promoted(stacks[image["stack"]], name).apply(settings.plan.limits.image_check(name))
            for name, image in settings.images.items()
        }
        self.uris = Named("images.uris", uris)

    @property
    def pinned(self) -> dict[str, pulumi.Input[str]]:
        """The URIs for other stacks to run: of an image that is built here with its digest, once that is known.

        An image whose build has failed has None.
        """
        return {name: _pinned(self.built[name]) if name in self.built else uri for name, uri in self.uris.items()}


def _named(settings: Settings, args: Args) -> Args:
    """Return the arguments of an image or a package with its former names as resources have them."""
    named = [settings.named(name) for name in args.get("formerly", [])]
    return cast(Args, {**args, "formerly": named}) if named else args


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
    """The Python packages of a stack."""

    built: Mapping[str, PythonPackage]
    """The resources that upload them, by name."""
    uris: Mapping[str, str]
    """The URIs by name, plain text."""

    def __init__(self, settings: Settings, foundation: Foundation, parent: pulumi.Resource | None = None) -> None:
        opts = pulumi.ResourceOptions(parent=parent)
        built = {
            name: PythonPackage(settings.named(name), _named(settings, package), opts, foundation=foundation)
            for name, package in settings.packages.items()
        }
        self.built = Named("packages.built", built)
        self.uris = Named("packages.uris", {name: package.reference for name, package in built.items()})


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


def _options(settings: Settings, name: str, former: Sequence[str], **options: Any) -> pulumi.ResourceOptions:
    """Return the options of what had the names `former` before."""
    return formerly(pulumi.ResourceOptions(**options), settings.named(name), [*map(settings.named, former)])


class Jobs:
    """A stack's jobs, `resources` by name.

    Each stage of jobs that have downstream jobs has a Completion of its own. All other jobs with `lifecycle.wait` have
    one together.
    """

    def __init__(
        self,
        settings: Settings,
        foundation: Foundation,
        sources: Sources,
        parent: pulumi.Resource | None = None,
        data: Mapping[str, LockedData] | None = None,
    ) -> None:
        self._data = data or {}
        self._settings, self._foundation, self._sources, self._parent = settings, foundation, sources, parent
        self._trainings = {each.name: each for each in settings.jobs}
        self.resources: dict[str, JobResource] = Named("jobs", {})
        self._results: dict[str, Results] = {}
        """By name of a job that is waited for: those of its Completion."""
        stages: list[Completion] = []
        level = levels({each.name: each.upstream for each in settings.jobs})
        upstream = frozenset().union(*(each.upstream for each in settings.jobs))
        for number, group in groupby(
            sorted(settings.jobs, key=lambda each: level[each.name]), lambda each: level[each.name]
        ):
            waited: list[str] = []
            for training in group:
                earlier = sorted({level[name] for name in training.upstream})
                self.resources[training.name] = self._create(training, [stages[each] for each in earlier])
                waited += [training.name] if training.name in upstream else []
            if waited:
                stages.append(self._wait(f"wait-for-upstream-{number + 1}", waited))
        last = [each.name for each in settings.jobs if each.lifecycle.get("wait") and each.name not in upstream]
        if last:
            self._wait("wait-for-jobs", last)

    def _create(self, training: Training, completions: Iterable[Completion]) -> JobResource:
        names = training.references()
        whole = self._sources.resolve(training, {interpolation.JOBS: self._model_dirs(names[interpolation.JOBS])})
        dependencies: list[pulumi.Resource] = [
            *self._sources.built(training),
            *completions,
            *(self.resources[name] for name in sorted(training.upstream)),
        ]
        return RESOURCE_TYPES[training.kind.collection](
            self._settings.named(training.name),
            cast(Any, whole),
            foundation=self._foundation,
            secrets={name: self._settings.secrets[name] for name in sorted(names["secrets"])},
            jobs={name: self.resources[name] for name in sorted(training.referenced)},
            data={name: self._data[name] for name in sorted(training.data)},
            opts=_options(
                self._settings, training.name, training.formerly, parent=self._parent, depends_on=dependencies
            ),
        )

    def _model_dirs(self, references: Iterable[str]) -> dict[str, pulumi.Input[str]]:
        """Return those results that a preview knows: model folders of jobs that are neither tuning jobs nor adopted."""
        known: dict[str, pulumi.Input[str]] = {}
        for reference in references:
            name, result = interpolation.split_result(reference, self.resources)
            training = self._trainings[name]
            if result == MODEL_DIR and not training.job.study_spec and not training.is_adopted:
                known[reference] = cast(pulumi.Input[str], self.resources[name].model_dir)
        return known

    def _wait(self, name: str, jobs: Iterable[str]) -> Completion:
        """Create the Completion that waits for these jobs, each until its own deadline if it has one."""
        waited = {job: self.resources[job] for job in jobs}
        lifecycles = {job: self._trainings[job].lifecycle for job in waited}
        deadlines = {job: lifecycle["deadline"] for job, lifecycle in lifecycles.items() if "deadline" in lifecycle}
        completion = Completion(
            self._settings.named(name),
            waited,
            pulumi.ResourceOptions(parent=self._parent),
            foundation=self._foundation,
            deadlines=deadlines,
            omit_failed=True,
        )
        self._results.update(dict.fromkeys(waited, completion.results_so_far()))
        return completion

    @property
    def results(self) -> Results:
        """The results of all jobs that were waited for and have succeeded, by name."""

        def merge(first: Results, second: Results) -> Results:
            return first.apply(lambda first: second.apply(lambda second: {**first, **second}))

        merged: Results = reduce(merge, dict.fromkeys(self._results.values()), pulumi.Output.from_input({}))
        return merged.apply(
            lambda results: {name: each for name, each in results.items() if each["state"] in SUCCEEDED_STATES}
        )

    async def records(self) -> Mapping[str, str] | None:
        """Return the records of the last runs by job, with the runs that have ended since; None without any.

        A preview does not know that of a job which would run, and has to say so: an update of a saved plan fails,
        without a word, if it exports anything else than the plan has.
        """
        records = await asyncio.to_thread(self._settings.plan.records)
        kept = {name: records[name] for name in self.resources if name in records}
        for name, resource in self.resources.items():
            is_waited = name in self._results
            output = self._results[name] if is_waited else resource.recovered("run")
            if await output.is_known():
                found = await output.future() or {}
                if line := ((found.get(name) or {}) if is_waited else found).get(TOOK):
                    kept[name] = extended(kept.get(name, ""), line)
            elif pulumi.runtime.is_dry_run():
                kept[name] = rpc.UNKNOWN
        if self._is_brief:
            kept = {name: record.replace("\n", ONE_LINE) for name, record in kept.items()}
        return kept or None

    @property
    def _is_brief(self) -> bool:
        default = "brief" if len(self.resources) > MAX_FULL else "full"
        return bool(self._settings.plan.stack.get("outputs", default) == "brief")

    @property
    def outputs(self) -> dict[str, Any]:
        """The stack outputs `jobs` and `results`, in the form that the stack's key `outputs` says."""
        # Each job by itself: Output.all takes its arguments apart and puts them together again, 28 Outputs a job.
        runs = {name: self.run(name) for name in self.resources}
        if not self._is_brief:
            return {"jobs": runs, "results": self.results}
        return {
            "jobs": {name: run.apply(_brief_run) for name, run in runs.items()},
            "results": self.results.apply(_brief),
        }

    def run(self, name: str) -> pulumi.Output[Mapping[str, Any]]:
        """Return a job's run. Of a job that was waited for, it has the final state, and the rest is in its results.

        With `--continue-on-error`, a job that could not be submitted has `None`.
        """
        run = self.resources[name].recovered("run")
        if name not in self._results:
            return run
        state = self._results[name].apply(lambda results: {"state": results[name]["state"]} if name in results else {})
        return run.apply(
            lambda run: run and state.apply(lambda state: {**{key: run[key] for key in (*_RUN_KEYS, "state")}, **state})
        )


def _brief_run(run: Mapping[str, Any] | None) -> str | None:
    return f"{short_state(run['state'])} {run['name']}" if run else None


def _brief(results: Mapping[str, Any]) -> dict[str, str]:
    """Return the results of each job as one line of `key=value`, quoted as in a shell.

    The keys are those of `${jobs.NAME.KEY}`. The rows of all trials are left out, and what the output `runs` has.
    """
    return {
        name: " ".join(
            f"{key}={shlex.quote(value)}"
            for key, value in _flat({key: each for key, each in result.items() if key not in (TOOK, "trials")})
        )
        for name, result in results.items()
    }


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list | tuple) else ()
    for key, each in items:
        yield from _flat(each, f"{path}.{key}" if path else str(key))
    if path and not isinstance(value, Mapping | list | tuple):
        yield path, value if isinstance(value, str) else json.dumps(value)


class Schedules:
    """The schedules of a stack. Jobs with `lifecycle.run: scheduled` are submitted by them alone."""

    resources: Mapping[str, Schedule]
    """The resources, by name."""

    def __init__(
        self,
        settings: Settings,
        foundation: Foundation,
        sources: Sources,
        parent: pulumi.Resource | None = None,
    ) -> None:
        scheduled = settings.scheduled
        resources: dict[str, Schedule] = {}
        for each in settings.schedules:
            trainings = [scheduled[name] for name in each.jobs]
            dependencies = [resource for training in trainings for resource in sources.built(training)]
            resources[each.name] = Schedule(
                settings.named(each.name),
                {
                    "cron": each.cron,
                    "time_zone": each.time_zone,
                    "paused": each.paused,
                    "overlap": each.overlap,
                    "jobs": {
                        training.name: JobTemplate(RESOURCE_TYPES[training.kind.collection], sources.resolve(training))
                        for training in trainings
                    },
                },
                _options(settings, each.name, each.formerly, parent=parent, depends_on=dependencies),
                foundation=foundation,
            )
        self.resources = Named("schedules.resources", resources)
