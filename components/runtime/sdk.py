"""What a program is told of its own run: which resources the engine has failed, and every error with which it ends.

Pulumi's SDK for Python tells neither, so two of its functions are wrapped (decision 15). Tested with SDKs 3.254, 3.259
and 3.272.
"""

import sys
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

import pulumi
from pulumi.runtime import settings, stack
from pulumi.runtime.proto import resource_pb2

_HOST = "pulumi-language-python-exec"
"""The script that runs a program."""
_shown_by = sys.excepthook


class Failed(getattr(stack, "ResourceRegistrationFailed", Exception)):  # type: ignore[misc]
    """The engine has failed or skipped a resource.

    Up to 3.270, a program ends with what an output raises, recovered or not, unless it is of the SDK's own type.
    """


class _Run:
    """The call `RegisterResource` of one run's monitor, and what is known of that run."""

    def __init__(self, register: Callable[..., Any]) -> None:
        self._register = register
        self.failures: dict[tuple[str, str, str], str] = {}
        self.refusals: list[Callable[[], pulumi.RunError | None]] = []

    def __call__(self, request: Any, *arguments: Any, **options: Any) -> Any:
        answer = self._register(request, *arguments, **options)
        if answer.result != resource_pb2.Result.SUCCESS:
            self.failures[request.type, request.name, request.parent] = answer.urn
        return answer


def _current() -> _Run:
    monitor: Any = settings.get_monitor()
    register = getattr(monitor, "RegisterResource", None)
    if isinstance(register, _Run):
        return register
    _end_quietly()
    run = _Run(register or (lambda request: request))
    if register:
        monitor.RegisterResource = run
    return run


def _end_quietly() -> None:
    """Let a program that the engine interrupts end without a traceback.

    The engine sends SIGINT to a program that still runs when something has failed, a `check` in a preview, say. What it
    prints then may come beside the error (`TerminateProcessGroup`, Pulumi 3.259). A program of the Automation API runs
    in a process of its own user, whose hook stays.
    """
    if not any(argument.endswith(_HOST) for argument in sys.orig_argv) or sys.excepthook is _show_error:
        return
    global _shown_by
    _shown_by, sys.excepthook = sys.excepthook, _show_error


def _show_error(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        _shown_by(kind, error, traceback)


def failures() -> Mapping[tuple[str, str, str], str]:
    """Return the URNs of what the engine has failed or skipped in this run, by type, name and URN of the parent.

    More may follow. Each is in the state or among the engine's steps, so other resources may depend on it. No exception
    tells so: up to 3.270 the SDK raises `ResourceRegistrationFailed` for such a resource, and again for what an output
    of it has kept from being registered at all; later SDKs raise nothing.
    """
    return _current().failures


def show_with_errors(refusal: Callable[[], pulumi.RunError | None]) -> None:
    """If an error of the program ends this run, show beside it what `refusal` returns then.

    Pulumi shows one error alone: of a registration, in place of what the program's own statements have raised, and in
    place of that of another registration. Its `wait_for_rpcs`, with which each program ends, is wrapped.
    """
    _current().refusals.append(refusal)
    if stack.wait_for_rpcs.__module__ != __name__:
        stack.wait_for_rpcs = _waiting(stack.wait_for_rpcs)


def _waiting(original: Callable[..., Any]) -> Callable[..., Any]:
    async def wait_for_rpcs(*arguments: Any, **options: Any) -> None:
        own = sys._getframe(1).f_locals.get("ex")  # of `run_pulumi_func`: what the program's statements have raised
        try:
            await original(*arguments, **options)
        except Exception as error:
            found = [own, settings._get_rpc_manager().unhandled_exception, error]
            errors = [each for each in found if each and not isinstance(each, pulumi.RunError)]
            refusals = [each for each in found if isinstance(each, pulumi.RunError)]
            refusals += [each for refusal in _current().refusals if (each := refusal())]
            if not (errors and refusals):
                raise
            for text in dict.fromkeys(map(str, refusals)):
                pulumi.log.error(text)
            shown, cause = errors[0], errors[0].__cause__
            raise shown from (None if cause in found else cause)

    return wait_for_rpcs
