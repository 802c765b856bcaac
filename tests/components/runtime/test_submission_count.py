"""How many submissions a run needs by what is known of its jobs, and what users are told of that."""

import pytest
from vertex_training.runtime.submission_count import (
    SubmissionCount,
    render_submission_total_line,
    render_submitted_count_line,
)


@pytest.mark.parametrize(
    ("submissions", "line"),
    [
        (240, "240 submissions: at least 4 min at 60 a minute"),
        (200, "200 submissions: at least 3 min at 60 a minute"),
        (62, "62 submissions: at least 1 min at 60 a minute"),
    ],
)
def test_a_total_is_told_with_its_minutes(submissions: int, line: str) -> None:
    assert render_submission_total_line(submissions, 60) == line


def test_progress_is_told_with_what_is_known() -> None:
    assert render_submitted_count_line(61, 240) == "61 jobs created or deleted so far, of at least 240"
    assert render_submitted_count_line(61, 0) == "61 jobs created or deleted so far"


def test_a_count_is_complete_once_every_declared_job_is_decided() -> None:
    count = SubmissionCount()
    count.set_expected_jobs(["new", "kept", "edited"], ["new"], removed_count=3)
    assert count.min_submissions == 4
    assert count.record_and_get_total_if_last("kept", 0) is None
    assert count.record_and_get_total_if_last("edited", 2) is None
    assert count.min_submissions == 6
    assert count.record_and_get_total_if_last("new", 1) == 6
    assert count.record_and_get_total_if_last("new", 1) is None
