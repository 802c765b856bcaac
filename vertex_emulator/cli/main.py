"""The console script `vertex-emulator`: its options, and which command does what."""

import argparse
import contextlib
import importlib.util
import logging
import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from vertex_api import __version__
from vertex_api.catalog.emulator_defaults import LOG_LIMIT_MB, PIDS_LIMIT
from vertex_emulator.cli import inject_command
from vertex_emulator.errors import EmulatorError

_DESCRIPTION = """\
Vertex AI training on this machine. Jobs that you submit to the emulator run in Docker, in the
environment that Vertex AI gives them. Jobs, logs and buckets (as folders) are kept in the data
folder. They survive a restart and a crash.
"""
_ENV_EXAMPLE = """\
example:
  eval "$(vertex-emulator env)"
  gcloud ai custom-jobs list
"""
# The extra `emulator` of the distribution.
_SERVER_PACKAGES = ("egobox", "google_crc32c", "numpy", "starlette", "uvicorn")
_CONTAINER_OPTIONS = ("pids_limit", "log_limit_mb", "egress")  # as the fields of ContainerSettings


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    1 is a failure. 3 means that an emulator already runs on the data folder, 4 that the job whose log was followed did
    not succeed.
    """
    options = _build_parser().parse_args(arguments)
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
        # The reader of the output has gone (`| head`). Python would fail again when it flushes at exit.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _run_command(options: argparse.Namespace) -> int:
    # Imports are local because most commands need little of the emulator.
    match options.command:
        case "serve":
            for package in _SERVER_PACKAGES:
                if importlib.util.find_spec(package) is None:
                    raise EmulatorError(_render_missing_package_message(package))
            from vertex_emulator.server import serve

            logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
            given = {name: value for name in _CONTAINER_OPTIONS if (value := getattr(options, name)) is not None}
            serve(options.data, options.host, options.port, options.allow_remote, given)
            return 0
        case "inject":
            return _print_lines_and_return_zero(inject_command.inject_list_or_clear_faults(options.data, options))
        case "env":
            from vertex_emulator.cli.env_command import render_shell_exports

            return _print_lines_and_return_zero(render_shell_exports(options.data, options.project, options.region))
        case "logs":
            from vertex_emulator.cli.logs_command import fetch_job_log_from_emulator

            # A terminal that cannot show a character gets its number.
            sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
            selection = (options.follow, options.task, options.trial, options.raw)
            return _print_lines_and_return_zero(fetch_job_log_from_emulator(options.data, options.job, *selection))
    from vertex_emulator.cli import status_stop_reset_commands as commands

    match options.command:
        case "status":
            return _print_lines_and_return_zero(commands.fetch_status_lines(options.data))
        case "stop":
            return _print_lines_and_return_zero([commands.stop_emulator_and_describe(options.data, options.if_idle)])
        case _:  # reset
            question = f"Remove all jobs, their containers and logs in {options.data}? [y/N] "
            if not options.yes and input(question).strip().lower() not in ("y", "yes"):
                print("nothing was removed")
                return 1
            return _print_lines_and_return_zero([commands.reset_emulator_keeping_buckets(options.data)])


def _print_lines_and_return_zero(lines: Iterable[str]) -> int:
    for line in lines:
        print(line, flush=True)
    return 0


def _render_missing_package_message(package: str) -> str:
    return f"{package} is not installed; pip install 'vertex-training[emulator]'"


def _build_parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--data",
        type=Path,
        default=Path(os.environ.get("VERTEX_EMULATOR_DATA", ".emulator")),
        metavar="DIR",
        help="folder of jobs, logs and buckets (default: $VERTEX_EMULATOR_DATA, else .emulator)",
    )
    parser = argparse.ArgumentParser("vertex-emulator", description=_DESCRIPTION)
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    serve = commands.add_parser("serve", parents=[common], help="run the emulator in the foreground")
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    serve.add_argument(
        "--port", type=_parse_port, metavar="N", help="port (default: the last one used here, else a free one)"
    )
    serve.add_argument(
        "--allow-remote",
        action="store_true",
        help="listen on an address that other machines reach; whoever has the token of the data folder (file `token`) "
        "can run containers here",
    )
    last_used = "default: the last one used here, else"
    serve.add_argument(
        "--pids-limit",
        type=_parse_positive_number,
        metavar="N",
        help=f"processes and threads of a container ({last_used} {PIDS_LIMIT})",
    )
    serve.add_argument(
        "--log-limit-mb",
        type=_parse_positive_number,
        metavar="MB",
        help=f"size from which a running replica's oldest log lines are dropped ({last_used} {LOG_LIMIT_MB})",
    )
    serve.add_argument(
        "--egress",
        action=argparse.BooleanOptionalAction,
        help=f"whether containers reach other machines ({last_used} --egress)",
    )

    commands.add_parser("status", parents=[common], help="show whether an emulator runs, and how many jobs it has")

    stop = commands.add_parser("stop", parents=[common], help="stop the emulator; its containers keep running")
    stop.add_argument("--if-idle", action="store_true", help="leave it running while jobs have not ended")

    logs = commands.add_parser(
        "logs",
        parents=[common],
        help="print a job's log",
        description="Print a job's log. Control characters that containers wrote are shown as \\x1b and the like.",
        epilog="With --follow the last line is the job's state, and the exit code is 4 if the job did not succeed. "
        "If the emulator is restarted meanwhile, the command waits for it for up to a minute.",
    )
    logs.add_argument("job", metavar="JOB", help="id or full name of a custom or tuning job")
    logs.add_argument("--follow", "-f", action="store_true", help="continue until the job ends")
    logs.add_argument(
        "--task", type=_require_task_name, metavar="TASK", help="only this replica, as workerpool1-0, or `service`"
    )
    logs.add_argument("--trial", type=_parse_trial_number, metavar="N", help="only this trial of a tuning job")
    logs.add_argument("--raw", action="store_true", help="print control characters as they are, colours for example")

    inject_command.add_inject_parser(commands, common)

    env = commands.add_parser(
        "env",
        parents=[common],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        help="print shell lines that point gcloud and Google's libraries at the emulator",
        description="Print shell lines that point gcloud and Google's libraries at the running emulator.",
        epilog=_ENV_EXAMPLE,
    )
    env.add_argument("--project", default="local", metavar="P", help="project of the jobs (default: %(default)s)")
    env.add_argument("--region", default="us-central1", metavar="R", help="region of the jobs (default: %(default)s)")

    reset = commands.add_parser("reset", parents=[common], help="remove all jobs, containers and logs; keep buckets")
    reset.add_argument("--yes", "-y", action="store_true", help="do not ask")
    return parser


def _require_task_name(text: str) -> str:
    if not re.fullmatch(r"service|workerpool\d+-\d+", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a task; write a replica as workerpool0-0, or service")
    return text


def _parse_trial_number(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a trial; write its number, 1 or more")
    return int(text)


def _parse_positive_number(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 1 << 31:
        raise argparse.ArgumentTypeError(f"{text!r} is not a limit; write a number from 1 to {(1 << 31) - 1}")
    return int(text)


def _parse_port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port; it must be from 1 to 65535")
    return int(text)
