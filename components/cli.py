"""The command `vertex-training`: reviews of previews, prices, JSON Schemas and the conversion of legacy jobs."""

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence

from vertex_api import __version__

from . import price_and_schema_commands
from .ai_platform_training import convert_command as legacy
from .review import preview_review_command, stale_plan_check


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the arguments name, and return the exit code."""
    args = _build_parser().parse_args(arguments)
    try:
        code: int = args.run(args)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, such as `head`, closed the pipe. Python must not write to it again when it exits.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        sys.stderr.write(f"vertex-training: {error.filename}: {error.strerror}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return code


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("vertex-training", description="Vertex AI custom training as code.")
    parser.epilog = price_and_schema_commands.EXIT_CODES
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    preview_review_command.add_parser(commands)
    stale_plan_check.add_parser(commands)
    legacy.add_parser(commands)
    price_and_schema_commands.add_parsers(commands)
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
