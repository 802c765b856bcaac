"""The command `vertex-training review`."""

import argparse
import sys
from pathlib import Path
from typing import Any

from .json_rendering import render_json
from .markdown_rendering import render_markdown
from .preview_document import PreviewDocument, PreviewUnreadable
from .preview_review import build_review

_REVIEW = """\
Makes of a preview what a reviewer needs, in at most 60,000 characters: what is built, submitted, run
again and deleted and why, data that is lost, grants, cost, quota, submissions, guardrails that are
nearly reached, and details. A preview that failed becomes the list of its problems.
"""
_REVIEW_EPILOG = """\
example:
  pulumi preview --json --show-sames > preview.json
  vertex-training review preview.json > review.md

Without --show-sames, cost and quota are those of the jobs that change. Secrets stay [secret].

exit codes: 0 a review is written, also of a preview that failed; 1 no preview; 2 wrong usage
"""


def add_parser(commands: Any) -> None:
    """Add the command to the parsers of `vertex-training`."""
    command = commands.add_parser(
        "review",
        help="write what a reviewer needs of a preview",
        description=_REVIEW,
        epilog=_REVIEW_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("preview", metavar="preview.json", help="the output of `pulumi preview --json`; - for stdin")
    command.add_argument(
        "--base", metavar="FILE", help="a preview of the base branch: show only what this one changes beyond it"
    )
    command.add_argument("--format", choices=("markdown", "json"), default="markdown", help="default: markdown")
    command.set_defaults(
        run=lambda options: print_review_and_return_exit_code(options.preview, options.base, options.format)
    )


def print_review_and_return_exit_code(preview_file: str, base_file: str | None, output_format: str) -> int:
    """Write the review of a preview, or why there is none to standard error. Returns the exit code: 0 or 1."""
    try:
        preview = PreviewDocument.parse(read_file_or_stdin(preview_file), preview_file)
        base = PreviewDocument.parse(read_file_or_stdin(base_file), base_file) if base_file else None
        if base and base.stack and preview.stack:
            own, others = f"{preview.project}/{preview.stack}", f"{base.project}/{base.stack}"
            if own != others:
                raise PreviewUnreadable(f"{base_file}: is a preview of {others}; preview {own} there")
    except PreviewUnreadable as error:
        sys.stderr.write(f"vertex-training: {error}\n")
        return 1
    render = render_json if output_format == "json" else render_markdown
    sys.stdout.write(render(build_review(preview, base)))
    return 0


def read_file_or_stdin(file: str) -> str:
    """Return the text of a file, or of standard input for `-`. Bytes that are not UTF-8 are replaced."""
    data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    return data.decode("utf-8-sig", errors="replace")
