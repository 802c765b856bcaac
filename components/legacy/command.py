"""`vertex-training convert-legacy`: a job of AI Platform Training becomes a declaration of this project."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from ..schema import yaml_documents
from .conversion import converted
from .fields import comment_lines, written

_DESCRIPTION = """\
Converts a training job of the legacy AI Platform Training (a Job, or a TrainingInput alone; YAML or
JSON) into a declaration of this project, and writes it to the standard output. Comments in it say
what Vertex AI does otherwise or not at all; FILL IN marks what the file does not have.
"""
_EXAMPLE = """\
example:
  vertex-training convert-legacy job.yaml > training/census.yaml
  # then name the file in your stack: vertex-training:include: [training/census.yaml]

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
    parser.set_defaults(run=lambda options: convert_file(options.file))


def convert_file(file: Path) -> int:
    """Write the declaration to standard output, or the reasons why there is none to standard error.

    Returns the exit code: 0, or 1 if the job cannot be converted.
    """
    text, problems = _declaration(file)
    sys.stderr.writelines(f"{problem}\n" for problem in problems)
    sys.stdout.write(text)
    return 1 if problems else 0


def _declaration(file: Path) -> tuple[str, list[str]]:
    """The text of the declaration, or the lines that say why there is none."""
    try:
        content = file.read_bytes()
        given = yaml_documents.loaded(content)
    except OSError as error:
        return "", [f"{file}: cannot be read: {error.strerror}"]
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        return "", [f"{file}:{line}: {error.problem or 'is not valid YAML'}"]
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        return "", [f"{file}: is not valid YAML: {str(error).splitlines()[0]}"]
    fields, problems = converted(given, file.stem)
    if problems:
        nodes = yaml_documents.composed(content)
        places = [yaml_documents.line_of(nodes, problem.path) for problem in problems]
        said = [replace(each, message=yaml_documents.as_written(nodes, each.path, each.message)) for each in problems]
        return "", [
            f"{file}: {problem}" if line is None else f"{file}:{line}: {problem}"
            for line, problem in zip(places, said, strict=True)
        ]
    head = f"Converted from {file.name}, a job of AI Platform Training, by `vertex-training convert-legacy`."
    return "\n".join([*comment_lines(head, 0), written(fields)]), []
