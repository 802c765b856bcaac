"""The review of a preview of 1,000 jobs that run again: its size beside what a comment takes, and its time."""

import json
from collections.abc import Iterator

from vertex_training.review.markdown_rendering import MAX_LENGTH, render_markdown
from vertex_training.review.preview_document import PreviewDocument
from vertex_training.review.preview_review import build_review

from benchmarks.measurements import measure_call_seconds
from benchmarks.result_rows import render_row
from tests.components.review.recorded_previews import MANY, multiply_job

MAX_SECONDS = 1.0
RUNS = 5


def yield_benchmark_rows() -> Iterator[str]:
    """Review the recorded preview, with a thousand jobs in place of one."""
    text = json.dumps(multiply_job("machine-change", MANY))
    reviews: list[str] = []

    def render_and_keep_review() -> None:
        reviews.append(render_markdown(build_review(PreviewDocument.parse(text, "the preview"))))

    seconds = min(measure_call_seconds(render_and_keep_review) for _ in range(RUNS))
    name = f"review of {MANY:,} jobs"
    yield render_row(f"{name}, 1,000 characters", len(reviews[0]) / 1000, "", MAX_LENGTH / 1000)
    note = f"of a preview of {len(text) / 1e6:.1f} MB; the fastest of {RUNS}"
    yield render_row(f"{name}, time", seconds, "s", MAX_SECONDS, note=note)
