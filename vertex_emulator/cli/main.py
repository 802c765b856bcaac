"""The console script `vertex-emulator`: its options, and which command does what."""

import argparse
import contextlib
import gc
import importlib.util
import logging
import sys
from collections.abc import Iterable, Iterator, Sequence

from vertex_emulator.cli.argument_parser import build_argument_parser
from vertex_emulator.cli.broken_pipe import discard_further_output
from vertex_emulator.cli.progress_line import ProgressLine
from vertex_emulator.errors import EmulatorError

# The extra `emulator` of the distribution.
_SERVER_PACKAGES = ("egobox", "google_crc32c", "numpy", "starlette", "tensorboardX", "uvicorn")
_CONTAINER_OPTIONS = ("pids_limit", "log_limit_mb", "egress")  # as the fields of ContainerSettings


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; docs/emulator.md lists them all."""
    parser = build_argument_parser()
    options, unknown = parser.parse_known_args(arguments)
    if unknown:  # argparse would show the usage of no command
        parser.error(f"unrecognized arguments: {' '.join(unknown)}; see: vertex-emulator {options.command} --help")
    try:
        return _run_command(options)
    except EmulatorError as error:
        print(f"vertex-emulator: {error}", file=sys.stderr)
        return error.exit_code
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("vertex_api", "vertex_emulator"):
            raise
        print(f"vertex-emulator: {_render_missing_package_message(error.name or str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        discard_further_output()
        return 0


def _run_command(options: argparse.Namespace) -> int:
    # Imports are local because most commands need little of the emulator.
    match options.command:
        case "serve":
            _raise_if_server_package_is_missing()
            # What is imported stays, and each search for garbage among it costs a fifth of the start.
            gc.disable()
            from vertex_emulator.server import serve

            gc.freeze()
            gc.enable()
            logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
            given = {name: value for name in _CONTAINER_OPTIONS if (value := getattr(options, name)) is not None}
            serve(
                options.data,
                options.host,
                options.port,
                options.allow_remote,
                given,
                lambda: _print_environment_lines(options),
            )
            return 0
        case "start":
            return _print_lines_and_return_zero(_start_emulator_and_iterate_environment_lines(options))
        case "exec":
            from vertex_emulator.cli.exec_with_emulator_command import run_command_with_emulator

            return run_command_with_emulator(options.data, options.project, options.region, options.argv)
        case "inject":
            from vertex_emulator.cli.inject_command import inject_list_or_clear_faults_and_render_lines

            return _print_lines_and_return_zero(inject_list_or_clear_faults_and_render_lines(options.data, options))
        case "schedules":
            from vertex_emulator.cli.schedules_command import list_or_change_schedules_and_render_lines

            return _print_lines_and_return_zero(list_or_change_schedules_and_render_lines(options.data, options))
        case "env":
            return _print_lines_and_return_zero(_iterate_environment_lines(options))
        case "logs":
            from vertex_emulator.cli.logs_command import iterate_job_log_lines

            # A terminal that cannot show a character gets its number.
            sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
            selection = (options.follow, options.task, options.trial, options.raw, options.json)
            return _print_lines_and_return_zero(iterate_job_log_lines(options.data, options.job, *selection))
        case "shell":
            from vertex_emulator.cli.shell_command import run_shell

            return run_shell(options.data, options.job, options.task, options.trial)
        case "tensorboard":
            from vertex_emulator.cli.tensorboard_command import run_tensorboard

            return run_tensorboard(options.data, options.job, options.port)
        case "prune":
            from vertex_emulator.cli.prune_command import prune_jobs_and_iterate_report_lines

            question = f"Remove the output folders of the jobs in {options.data} that are removed?"
            if options.outputs and not options.dry_run and not _ask_to_confirm_unless_yes(options, question):
                return 1
            flags = (options.outputs, options.dry_run, options.json)
            return _print_lines_and_return_zero(
                prune_jobs_and_iterate_report_lines(options.data, options.older_than, *flags)
            )
        case "export":
            from vertex_emulator.snapshots.export import export

            with ProgressLine() as progress:
                lines = [*export(options.data, options.archive, options.redact_env, progress.show_if_due)]
            return _print_lines_and_return_zero(lines)
        case "import":
            return _import_snapshot_unless_replacement_declined(options)
    from vertex_emulator.cli import status_stop_reset_commands as commands

    match options.command:
        case "status":
            return _print_lines_and_return_zero(commands.fetch_and_iterate_status_lines(options.data, options.json))
        case "stop":
            return _print_lines_and_return_zero([commands.stop_emulator_and_describe(options.data, options.if_idle)])
        case _:  # reset
            if not _ask_to_confirm_unless_yes(
                options, f"Remove all jobs, their containers and logs, and all schedules in {options.data}?"
            ):
                return 1
            return _print_lines_and_return_zero([commands.reset_data_folder_and_describe(options.data)])


def _import_snapshot_unless_replacement_declined(options: argparse.Namespace) -> int:
    from vertex_emulator.cli.status_stop_reset_commands import remove_containers_and_data_except_buckets
    from vertex_emulator.snapshots.restore import restore

    question = f"Remove all jobs, their containers and logs, and all schedules and buckets in {options.data}?"
    if options.replace and not _ask_to_confirm_unless_yes(options, question):
        return 1
    remove = (lambda: remove_containers_and_data_except_buckets(options.data)) if options.replace else None
    with ProgressLine() as progress:
        line = restore(options.data, options.archive, remove, progress.show_if_due)
    return _print_lines_and_return_zero([line])


def _ask_to_confirm_unless_yes(options: argparse.Namespace, question: str) -> bool:
    try:
        if options.yes or input(f"{question} [y/N] ").strip().lower() in ("y", "yes"):
            return True
    except EOFError as error:
        print()
        raise EmulatorError("nothing was removed, because stdin has no answer; add --yes") from error
    print("nothing was removed")
    return False


def _raise_if_server_package_is_missing() -> None:
    for package in _SERVER_PACKAGES:
        if importlib.util.find_spec(package) is None:
            raise EmulatorError(_render_missing_package_message(package))


def _print_environment_lines(options: argparse.Namespace) -> None:
    """Print what to export, once the emulator answers."""
    with contextlib.suppress(BrokenPipeError):
        _print_lines_and_return_zero(_iterate_environment_lines(options, has_page_link=False))


def _start_emulator_and_iterate_environment_lines(options: argparse.Namespace) -> Iterator[str]:
    from vertex_emulator.cli.detached_emulator import start_emulator_unless_running

    emulator = start_emulator_unless_running(options.data, _build_serve_arguments(options))
    state = "runs already" if emulator.process is None else "is ready"
    print(f"vertex-emulator: the emulator {state} on {emulator.endpoint.url}", file=sys.stderr)
    yield from _iterate_environment_lines(options)


def _build_serve_arguments(options: argparse.Namespace) -> list[str]:
    """Return the options of `start` that are `serve`'s, as arguments."""
    given = [
        f"--{name.replace('_', '-')}={value}"
        for name in ("host", "port", *_CONTAINER_OPTIONS[:2])
        if (value := getattr(options, name)) is not None
    ]
    egress = {None: [], True: ["--egress"], False: ["--no-egress"]}[options.egress]
    return [*given, *egress, *(["--allow-remote"] if options.allow_remote else [])]


def _iterate_environment_lines(options: argparse.Namespace, has_page_link: bool = True) -> Iterator[str]:
    from vertex_emulator.cli.env_command import iterate_environment_lines

    as_json = getattr(options, "json", False)
    return iterate_environment_lines(options.data, options.project, options.region, as_json, has_page_link)


def _print_lines_and_return_zero(lines: Iterable[str]) -> int:
    for line in lines:
        print(line, flush=True)
    return 0


def _render_missing_package_message(package: str) -> str:
    return f"{package} is not installed; pip install 'vertex-training[emulator]'"
