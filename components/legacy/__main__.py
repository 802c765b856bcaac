"""`python -m components.legacy`: a job of AI Platform Training as a declaration of this project."""

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

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
  python -m components.legacy job.yaml > training/census.yaml
  # then name the file in your stack: vertex-training:include: [training/census.yaml]

exit codes: 0 converted; 1 the job cannot be converted, with a line for each reason; 2 wrong usage
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Convert the file that the arguments name; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m components.legacy",
        description=_DESCRIPTION,
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path, metavar="job.yaml", help="the legacy job")
    file: Path = parser.parse_args(arguments).file
    text, problems = _declaration(file)
    for problem in problems:
        sys.stderr.write(f"{problem}\n")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has seen enough; nothing may be written at exit either.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
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


if __name__ == "__main__":
    raise SystemExit(main())
