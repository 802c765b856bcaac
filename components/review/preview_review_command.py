"""The command `vertex-training review`."""

import contextlib
import errno
import sys
from pathlib import Path

from .json_rendering import render_json
from .markdown_rendering import render_markdown
from .preview_document import NOT_A_PREVIEW, PreviewDocument, PreviewUnreadable
from .preview_review import build_review

MAX_BYTES = 256 << 20
"""A preview of 1,000 jobs has some 10 MiB."""


def print_review_and_return_exit_code(preview_file: str, base_file: str | None, output_format: str) -> int:
    """Write the review of a preview, or why there is none to standard error. Returns the exit code: 0 or 1."""
    try:
        preview = PreviewDocument.parse(read_file_or_stdin(preview_file), preview_file)
        base = PreviewDocument.parse(read_file_or_stdin(base_file), base_file) if base_file else None
        if base and base.stack and preview.stack:
            own, others = f"{preview.project}/{preview.stack}", f"{base.project}/{base.stack}"
            if own != others:
                raise PreviewUnreadable(f"{base_file}: is a preview of {others}; preview {own} there")
        render = render_json if output_format == "json" else render_markdown
        try:
            review = render(build_review(preview, base))
        except NOT_A_PREVIEW as error:
            reason = f"has values that `pulumi preview --json` does not write ({type(error).__name__})"
            raise PreviewUnreadable(f"{preview_file}: {reason}; make it again") from error
    except PreviewUnreadable as error:
        sys.stderr.write(f"vertex-training: {error}\n")
        return 1
    sys.stdout.write(review)
    return 0


def read_file_or_stdin(file: str) -> str:
    """Return the text of a file, or of standard input for `-`. Bytes that are not UTF-8 are replaced.

    Raises OSError for more than `MAX_BYTES`.
    """
    with contextlib.nullcontext(sys.stdin.buffer) if file == "-" else Path(file).open("rb") as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise OSError(errno.EFBIG, f"has more than {MAX_BYTES >> 20} MiB, which no preview needs", file)
    return data.decode("utf-8-sig", errors="replace")
