"""The program: all resources of a stack as one component, and the run that makes it."""

import asyncio
import gc
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pulumi

from vertex_api.scalars import quote
from vertex_api.validation.formats import Violation

from .data import lock
from .data.lock import LockedData
from .errors import DeclarationErrors
from .plan.arguments import checked, read_arguments
from .plan.programmed import Foundation, join, offer_foundation, require_sums
from .plan.training import place
from .review.diagnostics import show_reports
from .runtime import engine
from .runtime.resource import PerRun
from .schema import formats
from .schema.shapes import TrainingStackArgs
from .settings.settings import RUNS, Settings
from .stack import Images, JobResource, Jobs, Named, Packages, Schedules, Sources
from .targets.local import LocalFoundation

NAME = "training"
"""The name of the component that `run` makes."""


class TrainingStack(pulumi.ComponentResource):
    """All that a stack file and its declarations make: the target's resources, images, packages, jobs and schedules.

        west = TrainingStack("west", {"region": "us-west1", "prefix": "west-"})

    - `args`: keys of the stack file, in place of those that it has. A second TrainingStack in the same program needs a
      `prefix`, with which the names of its Pulumi resources and the default names of its cloud resources begin.
      `formerly` is the prefix that it had before: its resources go on under their new names.
    - `opts`: Pulumi's options. They reach all that it makes.

    Errors: `errors.DeclarationErrors` with all problems of the settings.
    """

    settings: Settings
    """What the stack file and its declarations say."""
    foundation: Foundation
    """The target's resources, for what a program adds. Jobs, images and schedules take it by default."""
    images: Images
    """The images that the stack declares."""
    packages: Packages
    """The Python packages that the stack declares."""
    data: Mapping[str, LockedData]
    """The data that the stack declares, by name, as its lock has it.

    `CustomJob(…, data={"train": stack.data["train"]})` lets a job depend on it.
    """
    schedules: Schedules
    """The schedules that the stack declares."""

    @checked
    def __init__(
        self, name: str, args: TrainingStackArgs | None = None, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        resource = f'TrainingStack "{name}"'
        own = read_arguments(args or {}, place(resource), _prefix_violations)
        prefix, former = own.pop("prefix", ""), own.pop("formerly", None)
        _take(name, prefix)
        if former is not None and former != prefix:
            _take(name, former)
            opts = pulumi.ResourceOptions.merge(opts, _formerly(former, prefix))
        self.settings = Settings.load(own, prefix, resource)
        require_sums(self.settings.plan)
        super().__init__("vertex-training:index:TrainingStack", name, None, opts)
        show_reports(self.settings.plan)
        self.data = Named("data", lock.resolve(Path.cwd(), pulumi.get_stack(), self.settings.data))
        _require_locks(self.settings, self.data)
        self.foundation = create_foundation(self.settings, pulumi.ResourceOptions(parent=self))
        offer_foundation(self.foundation)
        self.images = Images(self.settings, self.foundation, self)
        self.packages = Packages(self.settings, self.foundation, self)
        sources = Sources(self.images, self.packages)
        self._jobs = Jobs(self.settings, self.foundation, sources, self, self.data)
        self.schedules = Schedules(self.settings, self.foundation, sources, self)
        self.register_outputs({})

    @property
    def jobs(self) -> Mapping[str, JobResource]:
        """The jobs that the stack declares, by name."""
        return self._jobs.resources

    @property
    def outputs(self) -> Mapping[str, Any]:
        """The outputs that `run` exports, each a map by name.

        - `images`: URIs; `pinnedImages`: the same with digests, which `images.NAME.stack` of another stack reads.
        - `jobs`: what `CustomJob.run` has.
        - `results`: what `Completion.results` has, of the jobs that were waited for and have succeeded. Of more than 20
          jobs, these two have a line for each, unless the stack file's `outputs` is `full`.
        - `runs`: the records of the last runs, which the next preview reads. Export them by this name, after the
          `prefix` if there is one.
        - `schedules`: what `Schedule.status` has.
        """
        found: dict[str, Any] = {
            "images": self.images.uris,
            "pinnedImages": self.images.pinned,
            **self._jobs.outputs,
        }
        if self.jobs:
            found[RUNS] = pulumi.Output.from_input(self._jobs.records())
        if self.schedules.resources:
            found["schedules"] = {name: each.status for name, each in self.schedules.resources.items()}
        return found


def _prefix_violations(args: Mapping[str, Any]) -> Iterator[Violation]:
    for key in ("prefix", "formerly"):
        prefix = args.get(key, "")
        if not isinstance(prefix, str) or not formats.is_name(f"{prefix}x"):
            message = (
                "is not what names begin with: lower-case letters, digits, -, _ and ., the first a letter or digit"
            )
            yield (key,), f"{quote(prefix)} {message}"


def _formerly(former: str, prefix: str) -> pulumi.ResourceOptions:
    """Return the options of a component whose resources had names with another prefix before."""

    def alias(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        if not args.name.startswith(prefix):
            return None
        before = pulumi.Alias(name=f"{former}{args.name.removeprefix(prefix)}")
        opts = pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(aliases=[before]))
        return pulumi.ResourceTransformationResult(args.props, opts)

    return pulumi.ResourceOptions(transformations=[alias])


def _require_locks(settings: Settings, data: Mapping[str, LockedData]) -> None:
    """Warn of data that jobs refer to and that is not locked; with target `gcp`, refuse it if `verify` is `error`.

    Raises DeclarationErrors.
    """
    used = {name for job in settings.jobs if not job.is_adopted for name in job.data}
    if refused := lock.report_unlocked(
        {name: data[name] for name in sorted(used)},
        lambda name, message: settings.data[name].place((), message),
        is_cloud=bool(settings.cloud),
    ):
        raise DeclarationErrors(refused)


_taken: PerRun[dict[str, str]] = PerRun()
"""By prefix the name of the stack that has it, "" for the foundation that a program without a stack has."""


def _take(name: str, prefix: str) -> None:
    """Keep two stacks of a program from having resources of the same names. Raises RunError."""
    other = _taken.get(dict).setdefault(prefix, name)
    if not other and name:
        raise pulumi.RunError(
            f'TrainingStack "{name}": must be made before the first resource that is given no foundation, which has '
            "made that of the stack file already; move it up in the program, and such resources take its foundation; "
            "if `run` makes it, make them in the function that `run` takes"
        )
    if other != name:
        raise pulumi.RunError(
            f'TrainingStack "{name}": prefix: must differ from that of the TrainingStack "{other}" ("{prefix}"); '
            f'set `{{"prefix": "{name}-"}}`, which names of its resources then begin with'
        )


def create_default_foundation() -> Foundation:
    """Create the foundation that the stack file describes, for resources of a program without a TrainingStack."""
    _take("", "")
    return create_foundation(Settings.load())


def create_foundation(settings: Settings, opts: pulumi.ResourceOptions | None = None) -> Foundation:
    """Create the resources of a stack's target, on which images and jobs depend. Nothing downstream asks which it is.

    With target `gcp`, previews report on all jobs as soon as those of the program are valid.
    """
    foundation: Foundation
    if settings.cloud is None:
        foundation = LocalFoundation(settings.named("local"), settings, opts)
    else:
        # Imported here, because a local stack does not need Google Cloud's resources.
        engine.defer_pulumi_gcp()
        from .targets.gcp.foundation import GcpFoundation

        foundation = GcpFoundation(settings.named("gcp"), settings, opts)
    foundation.program.on_valid = show_reports
    join(foundation.program)
    return foundation


def run(program: Callable[[TrainingStack], object] | None = None) -> None:
    """Run the program of a stack: make its `TrainingStack`, export its outputs, and add what `program` makes.

        vertex_training.run(lambda stack: pulumi.export("region", stack.settings.region))

    Call it once, as the last statement of `__main__.py`. With 1,000 jobs it takes half of the processor time that
    Python takes for a program of the same resources without it (measured with pulumi 3.259 and Python 3.11).
    """
    engine.silence_debug_messages()
    # A program of seconds has little to collect, and each search for it costs: a tenth of a preview of 1,000 jobs.
    gc.freeze()
    gc.disable()

    async def make() -> None:
        stack = TrainingStack(NAME)
        for name, value in stack.outputs.items():
            pulumi.export(name, value)
        if program:
            program(stack)
        # Lets the registrations begin. Pulumi awaits registrations one after the other once they have begun; before,
        # it waits for any of their outputs, again after each (`pulumi.runtime.stack.wait_for_rpcs`).
        await asyncio.sleep(0)

    pulumi.run(make)
