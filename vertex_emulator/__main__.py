"""`python -m vertex_emulator`: start, watch and stop the emulator."""

import argparse
import contextlib
import logging
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from vertex_api import __version__
from vertex_emulator.cli import inject as injecting
from vertex_emulator.errors import EmulatorError

_DESCRIPTION = """\
Vertex AI training on this machine. Jobs that are sent to it run in Docker, in the environment
that Vertex AI gives them. Jobs, logs and buckets (as folders) lie in the data folder and survive
a restart, an orderly one or not.
"""
_ENV_EXAMPLE = """\
example:
  eval "$(python -m vertex_emulator env)"
  gcloud ai custom-jobs list
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit code.

    1 is a failure, 3 says that an emulator already runs on the data folder, 4 that the job whose log was followed did
    not succeed.
    """
    options = _parser().parse_args(arguments)
    try:
        return _run(options)
    except EmulatorError as error:
        print(f"emulator: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read the output has seen enough; nothing may be written at exit either.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _run(options: argparse.Namespace) -> int:
    # Imported here, for each command loads no more than it needs.
    match options.command:
        case "serve":
            from vertex_emulator.server import serve

            logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
            serve(options.data, options.host, options.port, options.allow_remote)
        case "status":
            from vertex_emulator.cli import commands as console

            for line in console.status(options.data):
                print(line)
        case "stop":
            from vertex_emulator.cli import commands as console

            print(console.stop(options.data, options.if_idle))
        case "logs":
            from vertex_emulator.cli import commands as console

            # A terminal that cannot show a character gets its number.
            sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
            found = console.logs(options.data, options.job, options.follow, options.task, options.trial, options.raw)
            for line in found:
                print(line, flush=True)
        case "inject":
            for line in injecting.run(options.data, options):
                print(line)
        case "env":
            from vertex_emulator.cli.client_environment import environment

            for line in environment(options.data, options.project, options.region):
                print(line)
        case "reset":
            from vertex_emulator.cli import commands as console

            question = f"Remove all jobs, their containers and logs in {options.data}? [y/N] "
            if not options.yes and input(question).strip().lower() not in ("y", "yes"):
                print("nothing was removed")
                return 1
            print(console.reset(options.data))
    return 0


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--data",
        type=Path,
        default=Path(os.environ.get("VERTEX_EMULATOR_DATA", ".emulator")),
        metavar="DIR",
        help="folder of jobs, logs and buckets (default: $VERTEX_EMULATOR_DATA, else .emulator)",
    )
    parser = argparse.ArgumentParser("python -m vertex_emulator", description=_DESCRIPTION)
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    serve = commands.add_parser("serve", parents=[common], help="run the emulator in the foreground")
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    serve.add_argument(
        "--port", type=_port, metavar="N", help="port (default: the last one used here, else a free one)"
    )
    serve.add_argument(
        "--allow-remote",
        action="store_true",
        help="listen on an address that other machines reach; whoever reaches it can run containers here",
    )

    commands.add_parser("status", parents=[common], help="say whether an emulator runs, and how many jobs it has")

    stop = commands.add_parser("stop", parents=[common], help="stop the emulator; its containers go on running")
    stop.add_argument("--if-idle", action="store_true", help="leave it running while jobs have not ended")

    logs = commands.add_parser(
        "logs",
        parents=[common],
        help="print a job's log",
        description="Print a job's log. Control characters that containers wrote are shown as \\x1b and the like.",
        epilog="With --follow the last line is the job's state, and the exit code is 4 if the job did not succeed. "
        "An emulator that is restarted meanwhile is waited for, for a minute.",
    )
    logs.add_argument("job", metavar="JOB", help="id or full name of a custom or tuning job")
    logs.add_argument("--follow", "-f", action="store_true", help="go on until the job ends")
    logs.add_argument("--task", type=_task, metavar="TASK", help="only this replica, as workerpool1-0, or `service`")
    logs.add_argument("--trial", type=_trial, metavar="N", help="only this trial of a tuning job")
    logs.add_argument("--raw", action="store_true", help="print control characters as they are, colours for example")

    injecting.add_parser(commands, common)

    env = commands.add_parser(
        "env",
        parents=[common],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        help="print what points gcloud and Google's libraries at the emulator",
        description="Print shell lines that point gcloud and Google's libraries at the running emulator.",
        epilog=_ENV_EXAMPLE,
    )
    env.add_argument("--project", default="local", metavar="P", help="project of the jobs (default: %(default)s)")
    env.add_argument("--region", default="us-central1", metavar="R", help="region of the jobs (default: %(default)s)")

    reset = commands.add_parser("reset", parents=[common], help="remove all jobs, containers and logs; buckets stay")
    reset.add_argument("--yes", "-y", action="store_true", help="do not ask")
    return parser


def _task(text: str) -> str:
    if not re.fullmatch(r"service|workerpool\d+-\d+", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no task: workerpoolPOOL-INDEX, as workerpool0-0, or service")
    return text


def _trial(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no trial: a number from 1 on")
    return int(text)


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: a number from 1 to 65535")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
