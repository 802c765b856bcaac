"""Pulumi's engine: whether it lives, its request to cancel, how it is spared stack traces and debug messages, and
how a program is spared imports.

All of this is about the SDKs' and the engine's own behaviour, tested with Pulumi 3.259.
"""

import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

from vertex_api.errors import VertexError

from ..errors import ComponentError, SubmitFailed

_POLL_SECONDS = 1.0
_MAX_ANCESTORS = 8
_watching = threading.Lock()
_cancelled = threading.Event()


def is_alive() -> bool:
    """Return whether the engine still listens. A provider process outlives an engine that was killed.

    The engine's address is the process's first argument. Without one, as in a test that calls a provider directly,
    there is no engine that could be gone.
    """
    host, _, port = (sys.argv[1] if len(sys.argv) > 1 else "").rpartition(":")
    if not port.isdigit():
        return True
    try:
        socket.create_connection((host, int(port)), timeout=2).close()
    except ConnectionRefusedError:
        return False
    except OSError:  # slow to answer on a busy machine
        return True
    return True


def require_alive(error_prefix: str) -> None:
    """Raise SubmitFailed if the engine is gone, so that nothing is started that no state will record."""
    if not is_alive():
        raise SubmitFailed(
            f"{error_prefix}: stopped, because `pulumi` was killed; the next `pulumi up` goes on from here"
        )


def watch() -> None:
    """Watch the engine, and end this process soon after it: Pulumi does not, and no state would record the rest."""
    if _watching.acquire(blocking=False):
        threading.Thread(target=_exit_after_engine, daemon=True).start()


def _exit_after_engine() -> None:
    while is_alive():
        time.sleep(_POLL_SECONDS)
    os._exit(1)


def listen_for_cancellation() -> None:
    """Take notice of Ctrl-C, for which the engine asks its providers to cancel what they do.

    Pulumi's own provider for Python does nothing then, and its process is in a group of its own, so it gets no signal.
    The server holds the bound method, so its code is replaced. The request needs one of the four threads that serve all
    calls: it is noticed late while four calls are under way. Outside of a provider process there is none.
    """
    servicer: Any = getattr(sys.modules["__main__"], "DynamicResourceProviderServicer", None)
    if servicer is not None:
        servicer.cancellation_requested = _cancelled
        servicer.Cancel.__code__ = _cancel.__code__


def _cancel(self, request, context):  # type: ignore[no-untyped-def]  # noqa: ARG001
    # Runs with the globals of Pulumi's module.
    from google.protobuf import empty_pb2

    self.cancellation_requested.set()
    return empty_pb2.Empty()


def wait_for_cancellation(timeout_seconds: float) -> bool:
    """Wait for that long, or until the engine asks to cancel; return whether it has."""
    return _cancelled.wait(timeout_seconds)


class _CurrentError:
    """Takes the place of the module `traceback` in Pulumi's host of dynamic providers."""

    @staticmethod
    def format_exc() -> str:
        return _plain_text(sys.exception())


def _plain_text(error: BaseException | None) -> str:
    return str(error) if isinstance(error, ComponentError | VertexError) else f"{type(error).__name__}: {error}"


def report_plain_errors() -> None:
    """Let the host of providers report an error's own text, without a traceback.

    From 3.260 on, it reports `traceback.format_exc()`, and has no setting for that (`pulumi/dynamic/__main__.py`).
    """
    if _reports_tracebacks():
        sys.modules["__main__"].traceback = _CurrentError  # type: ignore[attr-defined]


def abort_call(error: Exception) -> None:
    """End the current call to a provider with an error's own text, where the host of providers leaves that to gRPC.

    So it does up to SDK 3.259, and gRPC writes "Exception calling application: " before the text. The host keeps the
    call's context to itself.
    """
    import grpc

    context = None if _reports_tracebacks() else _argument("context")
    if isinstance(context, grpc.ServicerContext):
        context.abort(grpc.StatusCode.UNKNOWN, _plain_text(error))


def _reports_tracebacks() -> bool:
    return hasattr(sys.modules["__main__"], "_abort_with_traceback")


def requested_urn() -> str:
    """Return the URN that the current call to a provider is about, "" outside of a call.

    The host of dynamic providers keeps it to itself, in the request that its methods take.
    """
    return str(getattr(_argument("request"), "urn", ""))


def _argument(name: str) -> Any:
    """Return an argument of the host's method that serves the current call; None outside of a call."""
    frame: FrameType | None = sys._getframe(1)
    while frame:
        if getattr(frame.f_locals.get("request"), "urn", ""):
            return frame.f_locals.get(name)
        frame = frame.f_back
    return None


def leaves_out(urn: str) -> bool:
    """Return whether the options `--target` and `--exclude` of this run leave out a resource, and what depends on it.

    The engine does not say so to providers: it is read from its command line.
    """
    arguments = own_arguments()
    if urn == "" or "--target-dependents" in arguments or "--exclude-dependents" in arguments:
        return False
    targets, excluded = option("--target", "-t", "--target-replace"), option("--exclude")
    return bool(targets and not _matches(urn, targets)) or _matches(urn, excluded)


@cache
def own_arguments() -> list[str]:
    """Return the arguments of the `pulumi` command that this process works for; none if they cannot be read."""
    return pulumi_arguments(os.getppid()) or []


def option(*names: str) -> list[str]:
    """Return the values of an option of it, as `--target URN` and `--target=URN`, or several at once with commas."""
    arguments = own_arguments()
    following = pairwise(arguments)
    values = [value for argument, value in following if argument in names]
    values += [each.partition("=")[2] for each in arguments if each.partition("=")[0] in names and "=" in each]
    return [urn for value in values for urn in value.split(",")]


def _matches(urn: str, patterns: Iterable[str]) -> bool:
    """Return whether one of the patterns of URNs has it: `*` stands for a part, `**` for several."""
    parts = (re.split(r"(\*\*|\*)", pattern) for pattern in patterns)
    wild = {"**": ".*", "*": "[^:]*"}
    return any(re.fullmatch("".join(wild.get(part) or re.escape(part) for part in each), urn) for each in parts)


@contextmanager
def without_stack_trace() -> Iterator[None]:
    """Keep the SDK from sending the stack of calls with a resource that is registered meanwhile.

    The engine does nothing with it but to write it, before and after each step of an update, with the whole state: of
    a job it was two fifths, 14 frames of this package, the SDK and asyncio.
    `traceback.extract_stack`, which the SDK calls, keeps to the limit; it returns no stack for fewer frames than its
    own constructors have.
    """
    limit: int | None = getattr(sys, "tracebacklimit", None)
    sys.tracebacklimit = 1
    try:
        yield
    finally:
        if limit is None:
            del sys.tracebacklimit
        else:
            sys.tracebacklimit = limit


def silence_debug_messages() -> None:
    """Stop the SDK from sending debug messages that the engine would drop.

    The SDK sends four of them a resource, each by an RPC that blocks the program: a quarter of a preview of 1,000
    jobs. Whether they are shown is read from the engine's command line. Where that is impossible (on Windows, in a
    program of the Automation API) they are sent.
    """
    from pulumi import log

    arguments = pulumi_arguments(os.getppid())
    if arguments is not None and not wants_debug(arguments):
        log.debug = lambda *_message, **_options: None


_DEBUG_OPTION = re.compile(r"--debug\b|--verbose\b|-(?!-)\w*[dv]")
"""`--debug` and `-d` print debug messages, `--verbose` and `-v` from 3 on log them (Pulumi 3.259, `eventSink.Debugf`).

Short options may stand together (`-yd`), so an option with a `d` in its value counts too: at worst messages are sent
that nobody reads.
"""


def wants_debug(arguments: Sequence[str]) -> bool:
    """Return whether the arguments of a `pulumi` command ask for debug output."""
    return any(_DEBUG_OPTION.match(argument) for argument in arguments)


_PULUMI = re.compile(r"(?:/(?:[^ ]| (?!/))*/)?pulumi(?: |$)")
"""The program of a line of `ps`, whose path may have spaces; a space before a slash is the next argument's."""


def pulumi_arguments(pid: int) -> list[str] | None:
    """Return the arguments of the `pulumi` that started the process `pid`; None if none can be found."""
    for _ in range(_MAX_ANCESTORS):
        try:
            pid, command = _parent(pid)
        except (OSError, ValueError, subprocess.SubprocessError):
            break
        if command and Path(command[0]).name == "pulumi":
            return command[1:]
    return None


def _parent(pid: int) -> tuple[int, list[str]]:
    """Return a process's parent and its command line: from /proc, or from `ps`, which takes ten times as long."""
    process = Path(f"/proc/{pid}")
    if process.is_dir():
        # The fields after the program's name, which is in brackets: state, parent, ...
        parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
        return int(parent), (process / "cmdline").read_text().rstrip("\0").split("\0")
    command = ["ps", "-ww", "-o", "ppid=", "-o", "args=", "-p", str(pid)]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, timeout=5).stdout.strip()
    parent, _, line = shown.partition(" ")
    found = _PULUMI.match(line.strip())
    return int(parent), ["pulumi", *line.strip()[found.end() :].split()] if found else []


GCP_PACKAGES = (
    "artifactregistry",
    "bigquery",
    "cloudscheduler",
    "compute",
    "iam",
    "kms",
    "monitoring",
    "organizations",
    "projects",
    "secretmanager",
    "serviceaccount",
    "servicenetworking",
    "storage",
    "vertex",
    "workflows",
)
"""What the target gcp takes of `pulumi_gcp`."""


def defer_pulumi_gcp() -> None:
    """Let `pulumi_gcp` import a resource's module when the resource is used, and no other.

    By itself, each of its packages imports all its resources at once. Call it before `pulumi_gcp` is imported; later,
    it does nothing. A preview of a small stack takes a tenth less processor time with it.
    """
    from vertex_api.deferred import defer

    defer("pulumi_gcp")
    for package in GCP_PACKAGES:
        defer(f"pulumi_gcp.{package}")
