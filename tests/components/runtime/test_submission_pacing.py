"""The pace of a location, and what users are told of it."""

import pytest
from vertex_training.runtime import submission_pacing
from vertex_training.runtime.submission_pacing import (
    SubmissionPacing,
    render_pace_line,
)
from vertex_training.settings.stack_config_parsing import NAMESPACE

from tests.vertex_api.clock import Clock

LOCATION = "//aiplatform.googleapis.com/projects/p/locations/r"


def test_a_wait_is_told_with_what_is_known() -> None:
    assert render_pace_line(30, 60) == (
        "creating and deleting jobs is paced at 60 a minute (vertex-training:submissionsPerMinute): "
        "30 of them take at least 27 s"
    )
    assert render_pace_line(0, 60).endswith("(vertex-training:submissionsPerMinute): each has its turn")


def test_the_key_is_one_of_the_stack_file() -> None:
    assert submission_pacing.CONFIG_KEY.startswith(f"{NAMESPACE}:")


def test_the_stack_overrides_the_pace_of_its_target() -> None:
    pacing = SubmissionPacing()
    assert pacing.get_pace_or_none(LOCATION, None) is None
    pacing.set_pace_override("600")
    pace = pacing.get_pace_or_none(LOCATION, 60)
    assert pace and pace.per_minute == 600
    assert pacing.get_pace_or_none(LOCATION, 60) is pace


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
