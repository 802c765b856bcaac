"""The console script `vertex-emulator`: what each command does.

Imports are local because most commands need little of the emulator.
"""

import contextlib
import gc
import importlib.util
import logging
import os
import sys
import threading
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence

from vertex_emulator.cli import options as parser_options
from vertex_emulator.cli.output import ProgressLine, discard, note
from vertex_emulator.errors import EmulatorError

# The extra `emulator` of the distribution.
_SERVER_PACKAGES = ("egobox", "google_crc32c", "numpy", "starlette", "uvicorn")
_CONTAINER_OPTIONS = ("pids_limit", "log_limit_mb", "egress")  # as the fields of ContainerSettings
_THREAD_SECONDS = 1.0
_EVALUATED = ("start", "env")
"""They print shell code. Without it, `eval "$(vertex-emulator env)" && gcloud …` would go on, to Google Cloud."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; docs/emulator.md lists them all."""
    options = parser_options.build().parse_args(arguments)
    code = _exit_code(options)
    if code and options.command in _EVALUATED and not os.isatty(1):
        print("false")
    return code


def _exit_code(options: Namespace) -> int:
    try:
        return _run(options)
    except EmulatorError as error:
        note(str(error))
        return error.exit_code
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("vertex_api", "vertex_emulator"):
            raise
        note(_missing_package(error.name or str(error)))
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        discard()
        return 0


def _run(options: Namespace) -> int:
    match options.command:
        case "serve":
            return _serve(options)
        case "exec":
            from vertex_emulator.cli import environment

            return environment.execute(options.data, options.project, options.region, options.argv)
        case "shell":
            from vertex_emulator.cli import shell

            return shell.run(options.data, options.job, options.task, options.trial)
        case "tensorboard":
            from vertex_emulator.cli import tensorboard

            return tensorboard.run(options.data, options.job, options.port)
    if not _is_confirmed(options):
        return 1
    for line in _lines(options):
        print(line, flush=True)
    return 0


def _serve(options: Namespace) -> int:
    for package in _SERVER_PACKAGES:
        if importlib.util.find_spec(package) is None:
            raise EmulatorError(_missing_package(package))
    # What is imported stays, and each search for garbage among it costs a fifth of the start.
    gc.disable()
    from vertex_emulator import emulator_log
    from vertex_emulator.data_folder import DataFolder
    from vertex_emulator.server import serve

    gc.freeze()
    gc.enable()
    emulator_log.configure(DataFolder(options.data).emulator_log)
    given = {name: value for name in _CONTAINER_OPTIONS if (value := getattr(options, name)) is not None}

    def print_environment() -> None:
        with contextlib.suppress(BrokenPipeError, EmulatorError):  # it may have been stopped meanwhile
            for line in _environment(options, has_page_link=False):
                print(line, flush=True)

    def on_ready() -> None:
        """Print what to export, once the emulator answers; the first time, its certificate is made for that."""
        threading.Thread(target=print_environment, daemon=True, name="print").start()

    serve(options.data, options.host, options.port, options.allow_remote, given, on_ready)
    _leave_threads()
    return 0


def _leave_threads() -> None:
    """End the process if a request still waits, for a Docker that never answers or the like; what counts is stored.

    Python would wait for the request's thread, for two minutes with Docker's SDK.
    """
    requests = [each for each in threading.enumerate() if not each.daemon and each is not threading.main_thread()]
    for thread in requests:
        thread.join(_THREAD_SECONDS / len(requests))
    if any(thread.is_alive() for thread in requests):
        sys.stdout.flush()
        logging.shutdown()
        os._exit(0)


def _is_confirmed(options: Namespace) -> bool:
    """Ask before what cannot be undone, unless `--yes` is given."""
    everything = "all jobs, their containers and logs, and all schedules"
    match options.command:
        case "reset":
            question = f"Remove {everything} in {options.data}?"
        case "import" if options.replace:
            question = f"Remove {everything} and buckets in {options.data}?"
        case "prune" if options.outputs and not options.dry_run:
            question = f"Remove the output folders of the jobs in {options.data} that are removed?"
        case _:
            return True
    try:
        if options.yes or input(f"{question} [y/N] ").strip().lower() in ("y", "yes"):
            return True
    except EOFError as error:
        print()
        raise EmulatorError("nothing was removed, because stdin has no answer; add --yes") from error
    print("nothing was removed")
    return False


def _lines(options: Namespace) -> Iterable[str]:
    """Run a command that prints lines, and yield them."""
    match options.command:
        case "start":
            return _start(options)
        case "env":
            return _environment(options)
        case "logs":
            from vertex_emulator.cli.logs import JobLog

            # A terminal that cannot show a character gets its number.
            sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
            log = JobLog(options.data, options.job, options.task, options.trial, options.raw, options.json)
            return log.follow() if options.follow else log.read()
        case "export":
            from vertex_emulator.snapshots.export import export

            with ProgressLine() as progress:
                return [*export(options.data, options.archive, options.redact_env, progress.show)]
        case "import":
            from vertex_emulator.pruning import clear
            from vertex_emulator.snapshots.restore import restore

            remove = (lambda: clear(options.data)) if options.replace else None
            with ProgressLine() as progress:
                return [restore(options.data, options.archive, remove, progress.show)]
    from vertex_emulator.cli import emulator

    match options.command:
        case "status":
            return emulator.status(options.data, options.json)
        case "stop":
            return [emulator.stop(options.data, options.if_idle)]
        case "inject":
            return emulator.inject(options.data, options)
        case "schedules":
            return emulator.schedules(options.data, options)
        case "prune":
            return emulator.prune(options.data, options.older_than, options.outputs, options.dry_run, options.json)
        case _:
            return [emulator.reset(options.data)]


def _start(options: Namespace) -> Iterator[str]:
    from vertex_emulator.cli import emulator

    started = emulator.start(options.data, _serve_arguments(options))
    state = "runs already" if started.process is None else "is ready"
    note(f"the emulator {state} on {started.endpoint.url}")
    yield from _environment(options)


def _serve_arguments(options: Namespace) -> list[str]:
    """Return the options of `start` that are `serve`'s, as arguments."""
    given = [
        f"--{name.replace('_', '-')}={value}"
        for name in ("host", "port", *_CONTAINER_OPTIONS[:2])
        if (value := getattr(options, name)) is not None
    ]
    egress = {None: [], True: ["--egress"], False: ["--no-egress"]}[options.egress]
    return [*given, *egress, *(["--allow-remote"] if options.allow_remote else [])]


def _environment(options: Namespace, has_page_link: bool = True) -> Iterator[str]:
    from vertex_emulator.cli import environment

    as_json = getattr(options, "json", False)
    return environment.render(options.data, options.project, options.region, as_json, has_page_link)


def _missing_package(package: str) -> str:
    return f"{package} is not installed; pip install 'vertex-training[emulator]'"
