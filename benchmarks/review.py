"""The review of a preview of 1,000 jobs that run again: its size beside what a comment takes, and its time."""

import json
from collections.abc import Iterator

from vertex_training.review.document import PreviewDocument
from vertex_training.review.markdown import render_markdown
from vertex_training.review.review import MAX_LENGTH, build_review

from benchmarks.measure import row, seconds
from tests.components.review.recorded_previews import MANY, multiply_job

MAX_SECONDS = 1.0
RUNS = 5


def rows() -> Iterator[str]:
    """Review the recorded preview, with a thousand jobs in place of one."""
    text = json.dumps(multiply_job("machine-change", MANY))
    reviews: list[str] = []

    def render() -> None:
        reviews.append(render_markdown(build_review(PreviewDocument.parse(text, "the preview"))))

    took = min(seconds(render) for _ in range(RUNS))
    name = f"review of {MANY:,} jobs"
    yield row(f"{name}, 1,000 characters", len(reviews[0]) / 1000, "", MAX_LENGTH / 1000)
    note = f"of a preview of {len(text) / 1e6:.1f} MB; the fastest of {RUNS}"
    yield row(f"{name}, time", took, "s", MAX_SECONDS, note=note)
