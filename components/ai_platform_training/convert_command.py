"""The command `vertex-training convert-legacy`: a job of AI Platform Training as a declaration."""

import argparse
import sys
from pathlib import Path
from typing import Any

from vertex_api.validation.shape import shown_problems

from ..schema.source import SourceFile
from .commented_yaml import render_comment_lines, render_yaml
from .validated_job_conversion import convert_job_to_declaration_and_find_problems

_DESCRIPTION = """\
Converts a training job of the legacy AI Platform Training (a Job, or a TrainingInput alone; YAML or
JSON) into a declaration, and writes it to standard output. Comments in it name what Vertex AI does
differently or does not support; FILL IN marks values that the file does not have.
"""
_EXAMPLE = """\
example:
  vertex-training convert-legacy job.yaml > training/census.yaml
  # then include the file in your stack: vertex-training:include: [training/census.yaml]

exit codes: 0 converted; 1 the job cannot be converted, with a line for each reason; 2 wrong usage
"""


def add_parser(commands: Any) -> None:
    """Add the command to the parsers of `vertex-training`."""
    parser = commands.add_parser(
        "convert-legacy",
        help="convert a job of AI Platform Training into a declaration",
        description=_DESCRIPTION,
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path, metavar="job.yaml", help="the legacy job")
    parser.set_defaults(run=lambda options: print_converted_job_and_return_exit_code(options.file))


def print_converted_job_and_return_exit_code(legacy_job_file: Path) -> int:
    """Write the declaration of a legacy job, or its problems to standard error. Returns the exit code: 0 or 1."""
    source, job, problems = SourceFile.read(legacy_job_file, str(legacy_job_file))
    if not problems:
        fields, violations = convert_job_to_declaration_and_find_problems(job, legacy_job_file.stem)
        problems = [source.problem(violation.path, violation.message) for violation in violations]
    if problems:
        shown, more = shown_problems(problems)
        sys.stderr.writelines(f"{line}\n" for line in [*shown, *([more] if more else [])])
        return 1
    heading = (
        f"Converted from {legacy_job_file.name}, a job of AI Platform Training, by `vertex-training convert-legacy`."
    )
    sys.stdout.write("\n".join([*render_comment_lines(heading, 0), render_yaml(fields)]))
    return 0
