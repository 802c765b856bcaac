"""The argument parser of the console script `vertex-emulator`."""

import argparse
import os
import re
from pathlib import Path
from typing import Any

from vertex_api import __version__
from vertex_api.jobspec import LOG_LIMIT_MB, PIDS_LIMIT
from vertex_emulator.cli.help_epilogs import COMMAND_EPILOGS, EPILOG
from vertex_emulator.cli.inject_command import add_inject_parser
from vertex_emulator.cli.schedules_command import add_schedules_parser

_DESCRIPTION = """\
Vertex AI training on this machine. Jobs that you submit to the emulator run in Docker, in the
environment that Vertex AI gives them. Jobs, logs and buckets (as folders) are kept in the data
folder. They survive a restart and a crash.
"""


def build_argument_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; `command` of what it parses names one."""
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--data",
        type=Path,
        default=Path(os.environ.get("VERTEX_EMULATOR_DATA", ".emulator")),
        metavar="DIR",
        help="folder of jobs, logs and buckets (default: $VERTEX_EMULATOR_DATA, else .emulator)",
    )
    client = _build_project_and_region_options_parser()
    serve = _build_serve_options_parser()
    parser = argparse.ArgumentParser(
        "vertex-emulator",
        description=_DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add_command(name: str, *parents: argparse.ArgumentParser, **texts: Any) -> argparse.ArgumentParser:
        return commands.add_parser(
            name,
            parents=[common, *parents],
            epilog=COMMAND_EPILOGS[name],
            formatter_class=argparse.RawDescriptionHelpFormatter,
            **texts,
        )

    add_command("serve", client, serve, help="run the emulator in the foreground")

    start = add_command(
        "start",
        client,
        serve,
        help="run the emulator in the background, and print what `env` prints",
        description="Run the emulator in the background unless it runs already, wait until it answers, and print what\n"
        "`vertex-emulator env` prints. Its log is emulator.log in the data folder.",
    )
    _add_json_option(start, "print the variables as a JSON object")

    run = add_command(
        "exec",
        client,
        usage="vertex-emulator exec [options] -- COMMAND ...",
        help="run a command against the emulator, which is started for it if none runs",
        description="Run a command with everything set that leads Google's clients to the emulator. If none runs on\n"
        "the data folder, one is started before and stopped afterwards; jobs, logs and buckets stay in the folder.",
    )
    run.add_argument(
        "argv", nargs=argparse.REMAINDER, metavar="COMMAND", help="the command and its arguments, after --"
    )

    env = add_command(
        "env",
        client,
        help="print shell lines that point gcloud and Google's libraries at the emulator",
        description="Print shell lines that point gcloud and Google's libraries at the running emulator.",
    )
    _add_json_option(env, "print the variables as a JSON object")

    status = add_command("status", help="show whether an emulator runs, and how many jobs it has")
    _add_json_option(status, "print a JSON object")

    stop = add_command("stop", help="stop the emulator; its containers keep running")
    stop.add_argument("--if-idle", action="store_true", help="leave it running while jobs have not ended")

    logs = add_command(
        "logs",
        help="print a job's log",
        description="Print a job's log. Control characters that containers wrote are shown as \\x1b and the like.",
    )
    logs.add_argument("job", metavar="JOB", help="id or full name of a custom or tuning job")
    logs.add_argument("--follow", "-f", action="store_true", help="continue until the job ends")
    logs.add_argument(
        "--task", type=_parse_task_name, metavar="TASK", help="only this replica, as workerpool1-0, or `service`"
    )
    logs.add_argument("--trial", type=_parse_trial_number, metavar="N", help="only this trial of a tuning job")
    form = logs.add_mutually_exclusive_group()
    form.add_argument("--raw", action="store_true", help="print control characters as they are, colours for example")
    _add_json_option(form, "print each entry as a JSON object in a line, as Cloud Logging's API returns it")

    shell = add_command(
        "shell",
        help="run a shell in a running replica of a job",
        description="Run bash, or sh if the image has no bash, in a running replica of a job. Without a terminal, the\n"
        "shell reads commands from stdin. The exit code is the shell's.",
    )
    shell.add_argument("job", metavar="JOB", help="id or full name of a job")
    shell.add_argument("--task", type=_parse_task_name, metavar="TASK", help="which replica (default: workerpool0-0)")
    shell.add_argument("--trial", type=_parse_trial_number, metavar="N", help="which running trial of a tuning job")

    board = add_command(
        "tensorboard",
        help="run an installed TensorBoard on the event files of a job",
        description="Run an installed TensorBoard on AIP_TENSORBOARD_LOG_DIR of a job, of a pipeline's job, or of all\n"
        "trials of a tuning job, a run each. It listens on this machine only.",
    )
    board.add_argument("job", metavar="JOB", help="id or full name of a custom job, tuning job or pipeline")
    board.add_argument("--port", type=_parse_port, metavar="N", help="port (default: 6006, or a free one)")

    add_inject_parser(commands, common)
    add_schedules_parser(commands, common)

    export = add_command(
        "export",
        help="write ended jobs, logs, models and buckets to an archive",
        description="Write all jobs, which must have ended, with logs, models and buckets to an archive, while no\n"
        "emulator runs. Neither secrets of Secret Manager nor the token are in it.",
    )
    export.add_argument("archive", type=Path, metavar="FILE", help="a new file, such as fixture.tar.gz")
    export.add_argument(
        "--redact-env", action="store_true", help="replace the values of environment variables in the specs of jobs"
    )

    import_ = add_command(
        "import",
        help="fill an empty data folder from an archive of `export`",
        description="Fill a data folder without jobs and buckets from an archive, while no emulator runs. An archive\n"
        "is checked as a whole before anything is changed, and starts no job.",
    )
    import_.add_argument("archive", type=Path, metavar="FILE", help="what `vertex-emulator export` has written")
    import_.add_argument("--replace", action="store_true", help="remove all jobs and buckets of the data folder first")
    import_.add_argument("--yes", "-y", action="store_true", help="do not ask")

    prune = add_command(
        "prune",
        help="remove jobs that ended long ago; keep buckets and models",
        description="Remove jobs that ended long ago, with trials, logs and leftover containers. Models stay, and so\n"
        "do buckets unless --outputs is given.",
    )
    prune.add_argument(
        "--older-than", type=_parse_age_seconds, required=True, metavar="AGE", help="7d, 12h, 30m or 0s since their end"
    )
    prune.add_argument(
        "--outputs",
        action="store_true",
        help="remove their base output directories too, unless a model or another job refers to them",
    )
    prune.add_argument("--dry-run", action="store_true", help="remove nothing, and print what would be removed")
    prune.add_argument("--yes", "-y", action="store_true", help="do not ask before --outputs")
    _add_json_option(prune, "print a JSON object")

    reset = add_command("reset", help="remove all jobs, containers, logs and schedules; keep buckets")
    reset.add_argument("--yes", "-y", action="store_true", help="do not ask")
    return parser


def _build_project_and_region_options_parser() -> argparse.ArgumentParser:
    client = argparse.ArgumentParser(add_help=False)
    client.add_argument("--project", default="local", metavar="P", help="project of the jobs (default: %(default)s)")
    client.add_argument(
        "--region", default="us-central1", metavar="R", help="region of the jobs (default: %(default)s)"
    )
    return client


def _build_serve_options_parser() -> argparse.ArgumentParser:
    serve = argparse.ArgumentParser(add_help=False)
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
        type=_parse_positive_integer,
        metavar="N",
        help=f"processes and threads of a container ({last_used} {PIDS_LIMIT})",
    )
    serve.add_argument(
        "--log-limit-mb",
        type=_parse_positive_integer,
        metavar="MB",
        help=f"size from which a running replica's oldest log lines are dropped ({last_used} {LOG_LIMIT_MB})",
    )
    serve.add_argument(
        "--egress",
        action=argparse.BooleanOptionalAction,
        help=f"whether containers reach other machines ({last_used} --egress)",
    )
    return serve


def _add_json_option(parser: Any, help_text: str) -> None:
    parser.add_argument("--json", action="store_true", help=help_text)


def _parse_task_name(text: str) -> str:
    if not re.fullmatch(r"service|workerpool\d+-\d+", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a task; write a replica as workerpool0-0, or service")
    return text


def _parse_trial_number(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a trial; write its number, 1 or more")
    return int(text)


def _parse_age_seconds(text: str) -> int:
    match = re.fullmatch(r"([0-9]{1,6})([smhd])", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not an age; write a number and s, m, h or d, such as 7d or 12h")
    return int(match[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86_400}[match[2]]


def _parse_positive_integer(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 1 << 31:
        raise argparse.ArgumentTypeError(f"{text!r} is not a limit; write a number from 1 to {(1 << 31) - 1}")
    return int(text)


def _parse_port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port; it must be from 1 to 65535")
    return int(text)
