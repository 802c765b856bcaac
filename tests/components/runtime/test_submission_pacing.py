"""What users are told of the pace, and how many submissions a run needs by what is known of its jobs."""

import pytest

from components.runtime import submission_pacing
from components.runtime.submission_pacing import (
    SubmissionCount,
    SubmissionPacing,
    render_pace_line,
    render_submission_total_line,
    render_submitted_count_line,
)
from components.settings.stack_config_parsing import NAMESPACE
from tests.vertex_api.clock import Clock

LOCATION = "//aiplatform.googleapis.com/projects/p/locations/r"


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


def test_a_wait_is_told_with_what_is_known() -> None:
    assert render_pace_line(30, 60) == (
        "creating and deleting jobs is paced at 60 a minute (vertex-training:submissionsPerMinute): "
        "30 of them take at least 27 s"
    )
    assert render_pace_line(0, 60).endswith("(vertex-training:submissionsPerMinute): each has its turn")


def test_progress_is_told_with_what_is_known() -> None:
    assert render_submitted_count_line(61, 240) == "61 jobs created or deleted so far, of at least 240"
    assert render_submitted_count_line(61, 0) == "61 jobs created or deleted so far"


def test_the_key_is_one_of_the_stack_file() -> None:
    assert submission_pacing.CONFIG_KEY.startswith(f"{NAMESPACE}:")


def test_the_stack_overrides_the_pace_of_its_target() -> None:
    pacing = SubmissionPacing()
    assert pacing.get_pace_or_none(LOCATION, None) is None
    pacing.set_pace_override("600")
    pace = pacing.get_pace_or_none(LOCATION, 60)
    assert pace and pace.per_minute == 600
    assert pacing.get_pace_or_none(LOCATION, 60) is pace


def test_a_count_is_complete_once_every_declared_job_is_decided() -> None:
    count = SubmissionCount()
    count.set_expected_jobs(["new", "kept", "edited"], ["new"], removed_count=3)
    assert count.min_submissions == 4
    assert count.record_and_get_total_if_last("kept", 0) is None
    assert count.record_and_get_total_if_last("edited", 2) is None
    assert count.min_submissions == 6
    assert count.record_and_get_total_if_last("new", 1) == 6
    assert count.record_and_get_total_if_last("new", 1) is None


def test_a_total_is_told_once_and_only_if_it_takes_long(capsys: pytest.CaptureFixture[str]) -> None:
    pacing = SubmissionPacing()
    pace = pacing.get_pace_or_none(LOCATION, 2)
    for submissions, lines in ((2, []), (3, ["3 submissions: at least 1 min at 2 a minute"])):
        pacing.count.set_expected_jobs(["a"], [], 0)
        pacing.record_and_print_total_if_last_and_slow("a", submissions, pace)
        assert capsys.readouterr().out.splitlines() == lines
    pacing.count.set_expected_jobs(["a"], [], 0)
    pacing.record_and_print_total_if_last_and_slow("a", 3, None)
    assert capsys.readouterr().out == ""


def test_waits_are_told_once_a_minute(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(submission_pacing, "time", clock)
    monkeypatch.setattr("vertex_api.calls.submission_pace.time", clock)
    pace = SubmissionPacing().get_pace_or_none(LOCATION, 60)
    assert pace
    for _ in range(130):
        pace.wait_for_turn()
    assert [line.partition(" ")[0] for line in capsys.readouterr().out.splitlines()] == ["creating", "62", "118"]
