"""The command `vertex-training`: a look at a project, jobs on this machine, reviews of previews, prices, and more.

Each command imports what it needs when it runs: Pulumi's SDK and the API's types take half of a second, and `--help`
needs neither. argparse stays: it is loaded in 8 ms, and three lines describe an option.
"""

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from vertex_api import __version__
from vertex_api.commands import Parser

_SCHEMAS = Path(__file__).parent / "schema"
_KINDS = ("vcpu", "gb", "accelerator", "disk")
"""Of prices, as `vertex_api.estimates.prices` has them, which takes longer to load than this."""
_EXIT_CODES = "exit codes: 0 done; 1 failed, with the reason on standard error; 2 wrong usage"
_DOCTOR = """\
Looks for what a first `pulumi up` of a stack would stumble on: the stack file, Pulumi and Docker here,
credentials, and in Google Cloud APIs, billing, permissions, what exists already, quotas and organization
policies. Each line comes with the command that mends it. It changes nothing, and takes at most ten
seconds.
"""
_DOCTOR_EPILOG = """\
example:
  vertex-training doctor --stack dev

exit codes: 0 nothing is wrong; 1 something is; 2 something cannot be told, or wrong usage
"""
_REVIEW = """\
Makes of a preview what a reviewer needs, in at most 60,000 characters: what is built, submitted, run
again and deleted and why, data that is lost, grants, cost, quota, submissions, guardrails that are
nearly reached, and details. A preview that failed becomes the list of its problems.
"""
_REVIEW_EPILOG = """\
example:
  pulumi preview --json --show-sames > preview.json
  vertex-training review preview.json > review.md

  vertex-training rehearse preview.json --against main.json --save rehearsal.json
  vertex-training review preview.json --rehearsal rehearsal.json > review.md

Without --show-sames, cost and quota are those of the jobs that change. Secrets stay [secret].

exit codes: 0 a review is written, also of a preview that failed; 1 no preview; 2 wrong usage
"""
_CHECK_PLAN = """\
Checks that nothing has changed a stack since its plan was saved. `pulumi up --plan` refuses other
inputs than the plan's, but applies a plan that is older than the state without a word.
"""
_CHECK_PLAN_EPILOG = """\
example:
  pulumi preview --save-plan plan.json
  pulumi stack export > state.json
  vertex-training check-plan plan.json state.json && pulumi up --plan plan.json

exit codes: 0 the plan is newer than the state; 1 it is not, or cannot be read; 2 wrong usage
"""
_PARITY = """\
Asks Vertex AI and the emulator the same, and reports what they answer differently, by the rows of
`vertex-training docs fidelity`: what a job is created with, its states, its errors and its variables, lists, trials
and objects. It runs small jobs in your project, says first what they can cost at most, and removes
all that it has made, also after Ctrl-C.
"""
_PARITY_EPILOG = """\
example:
  vertex-training parity --project acme-sandbox --budget 2 > parity.md
  vertex-training parity --clean            after a run that was killed

The report names no project, number, account, token or bucket. --capture writes the answers of Vertex
AI, masked as well, and --against compares the emulator with them, without a project.

exit codes: 0 all answers agree; 1 some differ, were not given, or something is left; 2 no report
"""
_RUN = """\
Runs one declared job on this machine, with values of your own: its image is built, its log printed,
and its outputs are copied to a folder. It reads what the stack's own emulator holds. Nothing of the
project's stacks changes, and Pulumi is not needed. Jobs whose results it uses run before it.
"""
_RUN_EPILOG = """\
examples:
  vertex-training run digits
  vertex-training run digits --set vars.epochs=3
  vertex-training run digits --set 'jobSpec.workerPoolSpecs[0].containerSpec.args=["--epochs=1"]'

exit codes: 0 the job succeeded; else that of its container, or 1; 2 it was not run
"""
_REHEARSE = """\
Runs jobs on this machine, small, before they are submitted: all that a stack declares, or exactly those
that a preview creates or replaces, in order, each after the jobs that it needs. The key `rehearse` of a
job or of the stack, and --set, make them small. They read what the stack's own emulator holds. Nothing
of the project's stacks changes, and Pulumi is not needed.
"""
_REHEARSE_EPILOG = """\
examples:
  vertex-training rehearse --set vars.epochs=1 --set timeout=300s
  pulumi preview --json --stack dev > preview.json && vertex-training rehearse preview.json
  vertex-training rehearse preview.json --base origin/main --inputs samples
  vertex-training rehearse --save main.json        later, or on another branch:
  vertex-training rehearse --against main.json
  vertex-training rehearse --drill preempt,restart          do jobs go on where they were?

exit codes: 0 no job failed; 1 one did; 2 nothing was rehearsed
"""
_DATA = """\
Writes what the data of a stack is now into data.lock, or compares it with that: the names, sizes and
checksums of objects and files, the rows and last change of tables. Nothing is downloaded. A preview
reads data.lock alone, and runs the jobs again whose data it says has changed.
"""
_DATA_EPILOG = """\
examples:
  vertex-training data lock --stack dev
  vertex-training data lock --stack dev train
  vertex-training data status --stack dev        in CI: is the lock current?

exit codes: 0 done, and with status all data is as locked; 1 not; 2 it cannot be told, or wrong usage
"""
_CONVERT = """\
Converts a training job of the legacy AI Platform Training (a Job, or a TrainingInput alone; YAML or
JSON) into a declaration, and writes it to standard output. Comments in it name what Vertex AI does
differently or does not support; FILL IN marks values that the file does not have.
"""
_CONVERT_EPILOG = """\
example:
  vertex-training convert-legacy job.yaml > training/census.yaml
  # then include the file in your stack: vertex-training:include: [training/census.yaml]

exit codes: 0 converted; 1 the job cannot be converted, with a line for each reason; 2 wrong usage
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the arguments name, and return the exit code."""
    args = build().parse_args(arguments)
    try:
        with _terminable():
            code: int = args.run(args)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, such as `head`, closed the pipe. Python must not write to it again when it exits.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        from .errors import os_error

        sys.stderr.write(f"vertex-training: {os_error(error)}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return code


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Make a Ctrl-C of SIGTERM, which stops a step of CI, and of SIGHUP, which closes a terminal, for the block."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    # What `nohup` ignores stays ignored.
    handled = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) == signal.SIG_DFL]
    for each in handled:
        signal.signal(each, interrupt)
    try:
        yield
    finally:
        for each in handled:
            signal.signal(each, signal.SIG_DFL)


def build() -> Parser:
    """Return the parser of all commands; `run` of what it parses is the function of one."""
    parser = Parser("vertex-training", description="Vertex AI custom training as code.")
    parser.epilog = _EXIT_CODES
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(
        name: str, run: Callable[[argparse.Namespace], int], help: str, description: str, epilog: str = _EXIT_CODES
    ) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=help, description=description, epilog=epilog)
        if "\n" in epilog:
            command.formatter_class = argparse.RawDescriptionHelpFormatter
        command.set_defaults(run=run)
        return command

    command = add("doctor", _doctor, "say what a first `pulumi up` would stumble on", _DOCTOR, _DOCTOR_EPILOG)
    command.add_argument("--stack", metavar="NAME", help="default: $PULUMI_STACK, or the only one with target gcp")
    command.add_argument("--json", action="store_true", help="write JSON")

    command = add("review", _review, "write what a reviewer needs of a preview", _REVIEW, _REVIEW_EPILOG)
    command.add_argument("preview", metavar="preview.json", help="the output of `pulumi preview --json`; - for stdin")
    command.add_argument(
        "--base", metavar="FILE", help="a preview of the base branch: show only what this one changes beyond it"
    )
    help = "what `rehearse --save` wrote: begin with whether jobs still run, and which metrics are better"
    command.add_argument("--rehearsal", metavar="FILE", help=help)
    command.add_argument("--format", choices=("markdown", "json"), default="markdown", help="default: markdown")

    command = add("run", _run, "run one declared job on this machine", _RUN, _RUN_EPILOG)
    command.add_argument("job", metavar="NAME", help="the name of a declared job")
    values = "another value of a var (vars.NAME=VALUE), or of a field of the job; repeatable"
    _add_options_of_runs(command, "whose declarations and vars; default: the one with target local", values)
    command.add_argument("--output", type=Path, metavar="DIR", help="where its outputs go; default: runs/NAME-TIME")

    help = "run jobs on this machine, small, before they are submitted"
    command = add("rehearse", _rehearse, help, _REHEARSE, _REHEARSE_EPILOG)
    help = "run the jobs that this output of `pulumi preview --json` creates or replaces; - for stdin"
    command.add_argument("preview", nargs="?", metavar="preview.json", help=help)
    values = "of all jobs: vars.NAME=VALUE, timeout=DURATION, maxTrialCount=N, args=[...]; repeatable"
    _add_options_of_runs(command, "default: that of the preview, or the one with target local", values)
    command.add_argument("--only", action="append", default=[], metavar="NAME", help="run these jobs; repeatable")
    help = "run each again with a fault at its middle: preempt, restart or out-of-memory, with commas between"
    command.add_argument("--drill", default="", metavar="FAULTS", help=help)
    group = command.add_mutually_exclusive_group()
    group.add_argument("--against", type=Path, metavar="FILE", help="compare with a rehearsal that was saved")
    group.add_argument("--base", metavar="REF", help="run the same jobs of this commit, too, and compare with them")
    command.add_argument("--save", type=Path, metavar="FILE", help="write the report as JSON, too")
    command.add_argument("--format", choices=("table", "markdown", "json"), default="table", help="default: table")

    help = "lock what a stack's data is, and say whether it still is"
    command = add("data", _data, help, _DATA, _DATA_EPILOG)
    verbs = command.add_subparsers(required=True, metavar="VERB")
    for verb, help in (("lock", "write what the data is now"), ("status", "compare it with the lock")):
        each = verbs.add_parser(verb, help=help, description=_DATA, epilog=_DATA_EPILOG)
        each.formatter_class = argparse.RawDescriptionHelpFormatter
        each.add_argument("names", nargs="*", metavar="NAME", help="default: all data that the stack declares")
        each.add_argument("--stack", metavar="S", help="whose declarations; default: the one with target local")
        each.set_defaults(run=_data, verb=verb)

    help = "check that a plan is newer than the stack's state"
    command = add("check-plan", _check_plan, help, _CHECK_PLAN, _CHECK_PLAN_EPILOG)
    command.add_argument("plan", metavar="plan.json", help="the file of `pulumi preview --save-plan`")
    command.add_argument("state", metavar="state.json", help="the output of `pulumi stack export`; - for stdin")

    command = add("parity", _parity, "compare the emulator with Vertex AI in a project", _PARITY, _PARITY_EPILOG)
    command.add_argument("--project", default="", metavar="P", help="the project in which Vertex AI is asked")
    command.add_argument("--region", default="us-central1", metavar="R", help="default: us-central1")
    command.add_argument("--budget", type=float, default=2, metavar="USD", help="run nothing above this; default: 2")
    command.add_argument("--bucket", default="", metavar="B", help="use this bucket; default: make one, and remove it")
    command.add_argument("--only", action="append", default=[], metavar="GLOB", help="run these probes; repeatable")
    command.add_argument("--list", action="store_true", help="print the probes, and ask nothing")
    command.add_argument("--clean", action="store_true", help="remove what runs that were killed have left")
    command.add_argument("--capture", type=Path, metavar="DIR", help="write what Vertex AI answers, a file for a probe")
    command.add_argument("--against", type=Path, metavar="DIR", help="take captured answers in place of Vertex AI's")
    command.add_argument("--endpoint", default="", metavar="URL", help="ask this server in place of Vertex AI")
    command.add_argument("--json", type=Path, metavar="FILE", help="write the report as JSON, too")
    command.add_argument("--yes", "-y", action="store_true", help="do not ask before jobs run")

    help = "convert a job of AI Platform Training into a declaration"
    command = add("convert-legacy", lambda args: convert_legacy(args.file), help, _CONVERT, _CONVERT_EPILOG)
    command.add_argument("file", type=Path, metavar="job.yaml", help="the legacy job")

    description = (
        "Show the list prices that previews estimate costs with, each with its date and its source, or write today's "
        "into a file: those of the Cloud Billing Catalog API, with your credentials."
    )
    command = add("prices", _prices, "show the list prices that previews estimate costs with", description)
    command.add_argument("--kind", choices=_KINDS, help="only prices of this kind")
    command.add_argument("--name", help="only this machine family, accelerator or disk, such as N1 or NVIDIA_TESLA_T4")
    command.add_argument("--region", help="what counts in this region, such as us-central1; ~ marks another region's")
    command.add_argument("--update", type=Path, metavar="FILE", help="write today's prices into this file")

    description = "Print a page of the documentation, or what pages there are. Messages name them."
    command = add("docs", _docs, "print a page of the documentation", description)
    command.add_argument("page", nargs="?", metavar="PAGE[#SECTION]", help="default: print what pages there are")

    description = "Print a JSON Schema with which an editor checks and completes YAML, or write both into a folder."
    command = add("schema", _schema, "print or write the JSON Schemas for editors", description)
    group = command.add_mutually_exclusive_group(required=True)
    group.add_argument("schema", nargs="?", choices=("declarations", "stack"), help="print the schema of these files")
    group.add_argument("--write", type=Path, metavar="DIR", help="write both schemas into this folder")
    return parser


def _add_options_of_runs(command: argparse.ArgumentParser, stack: str, values: str) -> None:
    """Add the options of a command that runs declared jobs; its stack and its values have a help of their own."""
    command.add_argument("--stack", metavar="S", help=stack)
    command.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help=values)
    help = "a secret that jobs use, from the variable of that name or from a file; repeatable"
    command.add_argument("--secret", action="append", default=[], metavar="NAME[=@FILE]", help=help)
    group = command.add_mutually_exclusive_group()
    help = "copy gs://BUCKET/OBJECT from DIR/BUCKET/OBJECT; default: jobs see the buckets of the stack's emulator"
    group.add_argument("--inputs", type=Path, metavar="DIR", help=help)
    group.add_argument("--no-inputs", action="store_true", help="begin with empty buckets")
    help = "let jobs call Google as their service account, or as you, with tokens of minutes that they never see"
    command.add_argument("--as", dest="acting", choices=("account", "user"), help=help)
    help = "with --as: a bucket of Google's that jobs may write to; repeatable"
    command.add_argument("--write", action="append", default=[], metavar="gs://BUCKET", help=help)
    help = "refuse calls, with 403, that the stack of target gcp does not grant its jobs' account"
    command.add_argument("--enforce", action="store_true", help=help)
    help = "with --as: the most of declared data in Google's buckets that is fetched for /gcs; default: 10"
    command.add_argument("--fetch", dest="fetch_gb", type=_count, metavar="GB", help=help)


def _count(text: str) -> int:
    if not text.isdecimal() or len(text) > 6:
        raise argparse.ArgumentTypeError(f"{text} is no number of GB")
    return int(text)


def _doctor(args: argparse.Namespace) -> int:
    from .doctor.command import doctor

    return doctor(args.stack, args.json)


def _review(args: argparse.Namespace) -> int:
    from .review.commands import review

    return review(args.preview, args.base, args.rehearsal, args.format)


def _check_plan(args: argparse.Namespace) -> int:
    from .review.commands import check_plan

    return check_plan(args.plan, args.state)


def _run(args: argparse.Namespace) -> int:
    from .rehearsal.run import run

    options = args.output, args.inputs, args.no_inputs, args.acting, args.write, args.enforce, args.fetch_gb
    return run(args.job, args.stack, args.set, args.secret, *options)


def _rehearse(args: argparse.Namespace) -> int:
    from dataclasses import fields

    from .rehearsal.rehearse import Options, rehearse

    return rehearse(Options(**{each.name: getattr(args, each.name) for each in fields(Options)}))


def _data(args: argparse.Namespace) -> int:
    from . import data_command

    return (data_command.lock if args.verb == "lock" else data_command.status)(args.stack, args.names)


def _parity(args: argparse.Namespace) -> int:
    from .parity import command

    if args.list:
        return command.show(args.only)
    if args.clean:
        return command.clean()
    if not args.project and not args.against:
        sys.stderr.write("vertex-training: --project: is missing; name the project in which Vertex AI is asked\n")
        return 2
    names = ("region", "budget", "bucket", "only", "endpoint", "against", "capture", "json", "yes")
    options = {name: getattr(args, name) for name in names}
    return command.parity(command.Options(project=args.project or "parity-emulator", **options))


def convert_legacy(file: Path) -> int:
    """Write the declaration of a legacy job, or its problems to standard error. Returns the exit code: 0 or 1."""
    from vertex_api.errors import shown_problems

    from .legacy.convert import convert
    from .legacy.document import comment_lines, to_yaml
    from .schema.source import SourceFile

    source, job, problems = SourceFile.read(file, str(file))
    if not problems:
        fields, violations = convert(job, file.stem)
        problems = [source.problem(violation.path, violation.message) for violation in violations]
    if problems:
        shown, more = shown_problems(problems)
        sys.stderr.writelines(f"{line}\n" for line in [*shown, *([more] if more else [])])
        return 1
    heading = f"Converted from {file.name}, a job of AI Platform Training, by `vertex-training convert-legacy`."
    sys.stdout.write("\n".join([*comment_lines(heading, 0), to_yaml(fields)]))
    return 0


def _prices(args: argparse.Namespace) -> int:
    from . import pricelist

    return pricelist.update(args.update) if args.update else pricelist.show(args)


def _docs(args: argparse.Namespace) -> int:
    from .docs import show

    return show(args.page)


def _schema(args: argparse.Namespace) -> int:
    """Print a JSON Schema, or write all of them into a folder."""
    if args.write is None:
        sys.stdout.write((_SCHEMAS / f"{args.schema}.schema.json").read_text(encoding="utf-8"))
        return 0
    from .schema.source import explain_written

    args.write.mkdir(parents=True, exist_ok=True)
    for file in sorted(_SCHEMAS.glob("*.schema.json")):
        if message := explain_written(Path.cwd(), args.write / file.name):
            sys.stderr.write(f"vertex-training: {message}\n")
            return 1
        (args.write / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
        print(args.write / file.name)  # noqa: T201
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
