"""All that can be typed after `vertex-emulator`: its commands with their options and help.

argparse stays: it costs 10 ms of a start of 60 ms, and users know how it behaves.
"""

import argparse
import os
import re
from pathlib import Path
from typing import Any

from vertex_api import __version__
from vertex_api.commands import Parser
from vertex_api.jobspec import LOG_LIMIT_MB, PIDS_LIMIT
from vertex_emulator import faults

_DESCRIPTION = """\
Vertex AI training on this machine. Jobs that you submit to the emulator run in Docker, in the
environment that Vertex AI gives them. Jobs, logs and buckets (as folders) are kept in the data
folder. They survive a restart and a crash.
"""
_EPILOG = """\
examples:
  vertex-emulator exec -- pytest          run a command against an emulator
  eval "$(vertex-emulator start)"         use one in this shell, until: vertex-emulator stop

exit codes: 0 success, 1 failure, 2 wrong usage, 3 an emulator runs already on the data folder,
4 the job whose log was followed did not succeed, 5 no Docker daemon; for exec see exec --help
"""
_JOB = "a declared name or display name, whose newest job is meant; or an id or full resource name"


def build() -> Parser:
    """Return the parser of all commands; `command` of what it parses names one."""
    parser = Parser(
        "vertex-emulator",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = _Commands(parser.add_subparsers(dest="command", required=True, metavar="COMMAND"))
    for add in (
        *(_serve, _start, _exec, _env, _status, _stop),
        *(_logs, _shell, _tensorboard),
        *(_inject, _schedules),
        *(_export, _import, _prune, _reset),
    ):
        add(commands)
    return parser


class _Commands:
    """Adds commands. All have the option `--data`, some those of `client` and `server` too."""

    def __init__(self, commands: Any) -> None:
        self._commands = commands
        self.data = argparse.ArgumentParser(add_help=False)
        self.data.add_argument(
            "--data",
            type=Path,
            default=Path(os.environ.get("VERTEX_EMULATOR_DATA", ".emulator")),
            metavar="DIR",
            help="folder of jobs, logs and buckets (default: $VERTEX_EMULATOR_DATA, else .emulator)",
        )
        self.client = _client_options(self.data)
        self.server = _server_options()

    def add(self, name: str, *parents: argparse.ArgumentParser, **texts: Any) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = self._commands.add_parser(
            name, parents=parents or [self.data], formatter_class=argparse.RawDescriptionHelpFormatter, **texts
        )
        return parser


def _client_options(data: argparse.ArgumentParser) -> argparse.ArgumentParser:
    client = argparse.ArgumentParser(add_help=False, parents=[data])
    client.add_argument("--project", default="local", metavar="P", help="project of the jobs (default: %(default)s)")
    client.add_argument(
        "--region", default="us-central1", metavar="R", help="region of the jobs (default: %(default)s)"
    )
    return client


def _server_options() -> argparse.ArgumentParser:
    server = argparse.ArgumentParser(add_help=False)
    server.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    server.add_argument(
        "--port", type=_port, metavar="N", help="port (default: the last one used here, else a free one)"
    )
    server.add_argument(
        "--allow-remote",
        action="store_true",
        help="listen on an address that other machines reach; whoever has the token of the data folder (file `token`) "
        "can run containers here",
    )

    # Options of containers, which the data folder keeps for the next start.
    last_used = "default: the last one used here, else"
    server.add_argument(
        "--pids-limit",
        type=_limit,
        metavar="N",
        help=f"processes and threads of a container ({last_used} {PIDS_LIMIT})",
    )
    server.add_argument(
        "--log-limit-mb",
        type=_limit,
        metavar="MB",
        help=f"size from which a running replica's oldest log lines are dropped ({last_used} {LOG_LIMIT_MB})",
    )
    server.add_argument(
        "--egress",
        action=argparse.BooleanOptionalAction,
        help=f"whether containers reach other machines ({last_used} --egress)",
    )
    return server


def _serve(commands: _Commands) -> None:
    commands.add(
        "serve",
        commands.client,
        commands.server,
        help="run the emulator in the foreground",
        epilog="""\
When it answers, it prints what `vertex-emulator env` prints. It ends with Ctrl-C or `vertex-emulator stop`.

examples:
  vertex-emulator serve
  vertex-emulator serve --data /tmp/my-emulator --port 8600
  vertex-emulator serve --no-egress
""",
    )


def _start(commands: _Commands) -> None:
    start = commands.add(
        "start",
        commands.client,
        commands.server,
        help="run the emulator in the background, and print what `env` prints",
        description="Run the emulator in the background unless it runs already, wait until it answers, and print what\n"
        "`vertex-emulator env` prints. Its log is emulator.log in the data folder.",
        epilog="""\
The options of containers are kept in the data folder. An emulator that runs already keeps its own.

examples:
  eval "$(vertex-emulator start)"         start it, and use it in this shell
  vertex-emulator start --json
  vertex-emulator stop
""",
    )
    _add_json(start, "print the variables as a JSON object")


def _exec(commands: _Commands) -> None:
    run = commands.add(
        "exec",
        commands.client,
        usage="vertex-emulator exec [options] -- COMMAND ...",
        help="run a command against the emulator, which is started for it if none runs",
        description="Run a command with everything set that leads Google's clients to the emulator. If none runs on\n"
        "the data folder, one is started before and stopped afterwards; jobs, logs and buckets stay in the folder:\n"
        "`vertex-emulator logs JOB` reads them.",
        epilog="""\
The command gets what `vertex-emulator env` prints, and VERTEX_EMULATOR_DATA. Google's Python SDK reads no endpoint
from the environment: for it, PYTHONPATH names a folder whose sitecustomize.py calls aiplatform.init after its import,
with --project too. A program still names its staging bucket, as on Vertex AI.

The exit code is the command's, or 128 + N if signal N ends it; 125 if the emulator does not start, 126 if the command
cannot be executed, 127 if it is not found. SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1 and SIGUSR2 are passed on.

examples:
  vertex-emulator exec -- pytest
  vertex-emulator exec --project my-project -- python train.py
  vertex-emulator exec -- sh -c 'gcloud ai custom-jobs list'
""",
    )
    run.add_argument(
        "argv", nargs=argparse.REMAINDER, metavar="COMMAND", help="the command and its arguments, after --"
    )


def _env(commands: _Commands) -> None:
    env = commands.add(
        "env",
        commands.client,
        help="print shell lines that point gcloud and Google's libraries at the emulator",
        description="Print shell lines that point gcloud and Google's libraries at the running emulator.",
        epilog="""\
examples:
  eval "$(vertex-emulator env)"
  gcloud ai custom-jobs list

  vertex-emulator env --json
""",
    )
    _add_json(env, "print the variables as a JSON object")


def _status(commands: _Commands) -> None:
    status = commands.add(
        "status",
        help="show whether an emulator runs, and how many jobs it has",
        epilog="examples:\n  vertex-emulator status\n  vertex-emulator status --json\n",
    )
    _add_json(status, "print a JSON object")


def _stop(commands: _Commands) -> None:
    stop = commands.add(
        "stop",
        help="stop the emulator; its containers keep running",
        epilog="examples:\n  vertex-emulator stop\n  vertex-emulator stop --if-idle\n",
    )
    stop.add_argument("--if-idle", action="store_true", help="leave it running while jobs have not ended")


def _logs(commands: _Commands) -> None:
    logs = commands.add(
        "logs",
        help="print a job's log",
        description="Print a job's log. Control characters that containers wrote are shown as \\x1b and the like.",
        epilog="""\
With --follow the last line is the job's state, and the exit code is 4 if the job did not succeed.
If the emulator is restarted meanwhile, the command waits for it for up to a minute. Without --follow no emulator need
run: after `exec` or `stop`, the command reads the data folder.

examples:
  vertex-emulator logs --follow digits
  vertex-emulator logs --task workerpool0-0 --json 1234567890
""",
    )
    logs.add_argument("job", metavar="JOB", help=_JOB)
    logs.add_argument("--follow", "-f", action="store_true", help="continue until the job ends")
    logs.add_argument("--task", type=_task, metavar="TASK", help="only this replica, as workerpool1-0, or `service`")
    logs.add_argument("--trial", type=_trial, metavar="N", help="only this trial of a tuning job")
    form = logs.add_mutually_exclusive_group()
    form.add_argument("--raw", action="store_true", help="print control characters as they are, colours for example")
    _add_json(form, "print each entry as a JSON object in a line, as Cloud Logging's API returns it")


def _shell(commands: _Commands) -> None:
    shell = commands.add(
        "shell",
        help="run a shell in a running replica of a job",
        description="Run bash, or sh if the image has no bash, in a running replica of a job. Without a terminal, the\n"
        "shell reads commands from stdin. The exit code is the shell's.",
        epilog="""\
examples:
  vertex-emulator shell digits
  vertex-emulator shell digits --task workerpool1-0
  echo 'ls /gcs' | vertex-emulator shell 1234567890
""",
    )
    shell.add_argument("job", metavar="JOB", help=_JOB)
    shell.add_argument("--task", type=_task, metavar="TASK", help="which replica (default: workerpool0-0)")
    shell.add_argument("--trial", type=_trial, metavar="N", help="which running trial of a tuning job")


def _tensorboard(commands: _Commands) -> None:
    board = commands.add(
        "tensorboard",
        help="run an installed TensorBoard on the event files of a job",
        description="Run an installed TensorBoard on AIP_TENSORBOARD_LOG_DIR of a job, of a pipeline's job, or of all\n"
        "trials of a tuning job, a run each. It listens on this machine only.",
        epilog="""\
It runs until Ctrl-C; the exit code is TensorBoard's. Trials that start meanwhile are added. Neither a running
emulator nor Docker is needed: on a folder that none serves, it reads the files.

examples:
  vertex-emulator tensorboard digits
  vertex-emulator tensorboard --port 6007 1234567890
""",
    )
    board.add_argument("job", metavar="JOB", help=_JOB)
    board.add_argument("--port", type=_port, metavar="N", help="port (default: 6006, or a free one)")


def _inject(commands: _Commands) -> None:
    """Add `inject`, whose options are the fields of InjectedFault beside `list`, `clear` and `json`."""
    width = max(map(len, faults.FAULT_KINDS))
    kinds = "\n".join(f"  {kind:{width}}  {text}" for kind, text in faults.FAULT_KINDS.items())
    inject = commands.add(
        "inject",
        help="make the next jobs or requests fail as the service's do, or run the next jobs under a debugger",
        description="Inject a fault into the next job that you create, or the next request. Pending faults are kept\n"
        "in the data folder and survive a restart; each is used once. A trial of a tuning job counts as a job.",
        epilog=f"""\
kinds:
{kinds}

examples:
  vertex-emulator inject quota
  vertex-emulator inject denied --count 2
  vertex-emulator inject fail --code 13 --message "Internal error occurred for the current attempt"
  vertex-emulator inject fail --exit-code 139 --replica workerpool1-0 --after 5 --name 'train-*'
  vertex-emulator inject preempt --after 10 --times 2
  vertex-emulator inject oom --count 3
  vertex-emulator inject stockout --machine-type a2-highgpu-1g
  vertex-emulator inject second-start --after 5 --run-for 10 --name 'train-*'
  vertex-emulator inject debug --wait --name 'train-*'
  vertex-emulator inject rate --per-minute 60
  vertex-emulator inject unavailable --count 5
  vertex-emulator inject lost-answer
  vertex-emulator inject slow 2.5 --count 10
  vertex-emulator inject --list --json
""",
    )

    inject.add_argument(
        "kind", nargs="?", choices=[*faults.FAULT_KINDS], metavar="KIND", help="kind of fault, see below"
    )
    inject.add_argument("seconds", nargs="?", type=float, metavar="SECONDS", help="slow: how late the answer is")

    after = "how long the job runs before (default: 0); second-start: how long the container waits (default: 70)"
    run_for = "second-start: how long the container runs again until the tear-down (default: 30)"
    replica = "fail, oom: which replica (default: workerpool0-0); debug, second-start: the only one (default: all)"
    port = f"debug: port of the first replica (default: {faults.DEFAULT_DEBUG_PORT})"
    for name, type_, metavar, text in (
        ("per-minute", int, "N", "rate: jobs created and deleted in a minute"),
        ("machine-type", str, "TYPE", "stockout: the machine type that is not to be had"),
        ("name", str, "PATTERN", "only jobs whose display name matches; * and ? stand for any"),
        ("count", int, "N", "how many jobs or requests the fault hits (default: 1)"),
        ("after", float, "SECONDS", after),
        ("run-for", float, "SECONDS", run_for),
        ("times", int, "N", "how often the fault hits a job that is restarted (default: 1)"),
        ("code", int, "N", "fail: code of the job's error, 1 to 16 (google.rpc.Code)"),
        ("message", str, "TEXT", "fail: message of the job's error"),
        ("exit-code", int, "N", "fail: exit code of a replica, 1 to 255"),
        ("replica", str, "TASK", replica),
        ("port", int, "N", port),
    ):
        inject.add_argument(f"--{name}", type=type_, metavar=metavar, help=text)
    wait = "debug: Python waits for a debugger before it runs the program"
    inject.add_argument("--wait", action="store_true", default=None, help=wait)

    which = inject.add_mutually_exclusive_group()
    which.add_argument("--list", action="store_true", help="list the pending faults")
    which.add_argument("--clear", action="store_true", help="remove the pending faults")
    _add_json(inject, "with --list: print a JSON array")


def _schedules(commands: _Commands) -> None:
    schedules = commands.add(
        "schedules",
        argparse.ArgumentParser(add_help=False),
        help="list schedules, or fire, pause or resume one",
        description="List the schedules of a running emulator, or fire, pause or resume one. Stacks create them.",
        epilog="""\
NAME is the schedule's id, PROJECT_STACK_NAME of a stack's, or its last part if no other schedule ends with that, or the
full resource name.

examples:
  vertex-emulator schedules list
  vertex-emulator schedules fire nightly
  vertex-emulator schedules pause my-project_local_nightly
  vertex-emulator schedules resume nightly
""",
    )

    actions = schedules.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = "show all schedules with their next times and last runs"
    _add_json(
        actions.add_parser("list", parents=[commands.data], help=listing),
        "print a JSON array of the schedules, with their last runs",
    )

    for action, text in {
        "fire": "begin a run of a schedule now, paused or not",
        "pause": "begin no runs of a schedule until it is resumed; runs under way go on",
        "resume": "begin runs of a paused schedule again, from now on",
    }.items():
        description = f"{text[0].upper()}{text[1:]}."
        one = actions.add_parser(action, parents=[commands.data], help=text, description=description)
        one.add_argument("name", metavar="NAME", help="a schedule's id, or its last part")


def _export(commands: _Commands) -> None:
    export = commands.add(
        "export",
        help="write ended jobs, logs, models and buckets to an archive",
        description="Write all jobs, which must have ended, with logs, models and buckets to an archive, while no\n"
        "emulator runs. Neither secrets of Secret Manager nor the token are in it.",
        epilog="""\
The archive is for its owner only. Specs of jobs and logs are in it as they are: look through them before you give it
to others, or leave out values of environment variables with --redact-env.

examples:
  vertex-emulator export tests/fixture.tar.gz
  vertex-emulator export --redact-env report.tar.gz
""",
    )
    export.add_argument("archive", type=Path, metavar="FILE", help="a new file, such as fixture.tar.gz")
    export.add_argument(
        "--redact-env", action="store_true", help="replace the values of environment variables in the specs of jobs"
    )


def _import(commands: _Commands) -> None:
    import_ = commands.add(
        "import",
        help="fill an empty data folder from an archive of `export`",
        description="Fill a data folder without jobs and buckets from an archive, while no emulator runs. An archive\n"
        "is checked as a whole before anything is changed, and starts no job.",
        epilog="""\
examples:
  vertex-emulator import tests/fixture.tar.gz --data .emulator-tests
  vertex-emulator import tests/fixture.tar.gz --replace --yes
""",
    )
    import_.add_argument("archive", type=Path, metavar="FILE", help="what `vertex-emulator export` has written")
    import_.add_argument("--replace", action="store_true", help="remove all jobs and buckets of the data folder first")
    _add_yes(import_)


def _prune(commands: _Commands) -> None:
    prune = commands.add(
        "prune",
        help="remove jobs that ended long ago; keep buckets and models",
        description="Remove jobs that ended long ago, with trials, logs and leftover containers, and\n"
        "objects of Google's that no run has used for as long. Models stay, and so do buckets unless --outputs is\n"
        "given.",
        epilog="""\
examples:
  vertex-emulator prune --older-than 7d --dry-run
  vertex-emulator prune --older-than 7d --outputs --yes
""",
    )
    prune.add_argument(
        "--older-than", type=_age, required=True, metavar="AGE", help="7d, 12h, 30m or 0s since their end"
    )
    outputs = "remove their base output directories too, unless a model, an artifact or another job refers to them"
    prune.add_argument("--outputs", action="store_true", help=outputs)
    prune.add_argument("--dry-run", action="store_true", help="remove nothing, and print what would be removed")
    _add_json(prune, "print a JSON object")
    _add_yes(prune, " before --outputs")


def _reset(commands: _Commands) -> None:
    reset = commands.add(
        "reset",
        help="remove all jobs, containers, logs and schedules; keep buckets",
        epilog="example:\n  vertex-emulator reset --yes\n",
    )
    _add_yes(reset)


def _add_json(parser: Any, text: str) -> None:
    parser.add_argument("--json", action="store_true", help=text)


def _add_yes(parser: argparse.ArgumentParser, when: str = "") -> None:
    parser.add_argument("--yes", "-y", action="store_true", help=f"do not ask{when}")


def _task(text: str) -> str:
    if not re.fullmatch(r"service|workerpool\d+-\d+", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a task; write a replica as workerpool0-0, or service")
    return text


def _trial(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a trial; write its number, 1 or more")
    return int(text)


def _age(text: str) -> int:
    """Parse an age such as `7d` into seconds."""
    match = re.fullmatch(r"([0-9]{1,6})([smhd])", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not an age; write a number and s, m, h or d, such as 7d or 12h")
    return int(match[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86_400}[match[2]]


def _limit(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 1 << 31:
        raise argparse.ArgumentTypeError(f"{text!r} is not a limit; write a number from 1 to {(1 << 31) - 1}")
    return int(text)


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port; it must be from 1 to 65535")
    return int(text)
