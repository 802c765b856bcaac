"""What components would create, according to Pulumi's mocks: no engine, no provider."""

import asyncio
import gc
import warnings
from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import pulumi
from pulumi.runtime import mocks, settings, stack
from pulumi.runtime.proto import resource_pb2, source_pb2
from vertex_training.plan import programmed as program_module
from vertex_training.targets import local

_RESULTS = {
    "AiTensorboard": {"name": "projects/123456789012/locations/europe-west4/tensorboards/77"},
    "NotificationChannel": {"name": "projects/acme-dev/notificationChannels/5"},
}
"""What the provider adds to the inputs, by kind."""


Engine = Callable[[mocks.MockResourceArgs, list[str]], tuple[str | None, dict[str, Any]]]


@dataclass
class Graph:
    """What was registered, by `Type/name` (such as `Repository/registry`); parents and dependencies are named alike."""

    inputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    requests: dict[str, Any] = field(default_factory=dict)
    dangling: set[str] = field(default_factory=set)
    """What something depends on that was not registered."""
    calls: list[tuple[str, set[str]]] = field(default_factory=list)
    """Functions of providers that were called, each with what was registered before."""

    def parent(self, name: str) -> str:
        """The parent of a resource."""
        return short(self.requests[name].parent)

    def needs(self, name: str) -> set[str]:
        """What the engine waits for before it creates a resource."""
        return {short(urn) for urn in self.requests[name].dependencies}

    def of(self, kind: str) -> dict[str, dict[str, Any]]:
        """The inputs of all resources of a kind."""
        return {name: inputs for name, inputs in self.inputs.items() if name.partition("/")[0] == kind}


_unforgotten: list[Graph] = []
"""Those whose event loops may still be there."""


def short(urn: str) -> str:
    """`Type/name` of a URN."""
    _, _, types, name = urn.split("::")
    return f"{types.rpartition('$')[2].rpartition(':')[2]}/{name}"


def graph(
    program: Callable[[], Any],
    outputs: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    preview: bool = False,
    failing: Collection[str] = (),
    found: Graph | None = None,
    engine: Engine | None = None,
    traces: bool = False,
) -> Graph:
    """Return what a program registers. `outputs` has, by kind, what a provider adds to the inputs.

    The resources of the names `failing` fail, and those that depend on them are skipped, as by `--continue-on-error`.
    With `found`, what was registered is there too if the program fails. `engine` does what Pulumi's does: of what is
    registered, with its former names, it returns the id and the outputs. With `traces`, it is told where a program
    registers each resource, which a fifth of the time is spent on.
    """
    found = found or Graph()
    _unforgotten.append(found)

    class Monitor(mocks.MockMonitor):
        def RegisterResource(self, request: Any) -> Any:  # noqa: N802
            missing = {urn for urn in (request.parent, *request.dependencies) if urn} - urns
            found.dangling |= {short(urn) for urn in missing}
            assert not missing, f"{request.name} needs what is not registered: {missing}"
            former[request.name] = [alias.spec.name for alias in request.aliases]
            answer = super().RegisterResource(request)
            assert answer.urn not in urns, f"{answer.urn} is there twice"
            urns.add(answer.urn)
            if request.name in failing or failed.intersection(request.dependencies):
                failed.add(answer.urn)
                found.inputs.pop(short(answer.urn))
                answer = type(answer)(urn=answer.urn, result=resource_pb2.Result.FAIL)
            found.requests[short(answer.urn)] = request
            return answer

    class Cloud(mocks.Mocks):
        def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
            kind = args.typ.rpartition(":")[2]
            found.inputs[f"{kind}/{args.name}"] = dict(args.inputs)
            if engine:
                return engine(args, former[args.name])
            found_later = {**_RESULTS.get(kind, {}), **(outputs or {}).get(kind, {})}
            return args.resource_id or f"{args.name}-id", {**args.inputs, **found_later}

        def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]]]:
            found.calls.append((args.token, set(found.requests)))
            return {}, []

    urns: set[str] = set()
    failed: set[str] = set()
    former: dict[str, list[str]] = {}
    hooks: set[str] = set()

    def register(hook: pulumi.ErrorHook) -> asyncio.Future[None]:
        assert hook.name not in hooks, f"the hook {hook.name} is there twice"
        hooks.add(hook.name)
        return asyncio.ensure_future(asyncio.sleep(0))

    async def run() -> None:
        # What Pulumi leaves of a program that fails is reported when it is collected, with a traceback that parses
        # source; inside of another `ast.parse` that is Python's own SystemError.
        asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
        mocks.set_mocks(Cloud(), preview=preview, monitor=Monitor(Cloud()))

        async def described() -> None:
            program()

        try:
            await stack.run_pulumi_func(described)
        except Exception:
            for _ in range(50):  # what is under way goes on until the process ends
                await asyncio.sleep(0.001)
            raise

    # The engine's side of hooks is not among Pulumi's mocks.
    hooked = mock.patch("pulumi.resource_hooks.register_error_hook", register)
    with (
        hooked,
        nullcontext() if traces else mock.patch("pulumi.runtime.resource._get_stack_trace", source_pb2.StackTrace),
    ):
        try:
            asyncio.run(run())
        finally:
            # What a program that failed has left would fail the next one.
            settings.SETTINGS.outputs.clear()
            settings._get_rpc_manager().clear()
            program_module._foundation.clear()
            local._emulator.clear()
    return found


def forget_loops() -> None:
    """Collect the event loops that Pulumi's threads have not closed, so that no later test warns of them.

    A loop whose sockets are collected before it cannot close them: that is reported as an exception nobody can raise.
    """
    if not _unforgotten:
        return
    _unforgotten.clear()
    ignored = mock.patch("sys.unraisablehook", lambda _: None)
    with ignored, warnings.catch_warnings(action="ignore", category=ResourceWarning):
        gc.collect()
