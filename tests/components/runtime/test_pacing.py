"""The pace of submissions, their number, and the lines about both."""

import pytest
from vertex_training.runtime import pacing
from vertex_training.runtime.pacing import Pacing, SubmissionCount, pace_line, progress_line, total_line
from vertex_training.schema import shapes

from tests.blocks import taken
from tests.vertex_api.clock import Clock


@pytest.mark.parametrize(
    ("submissions", "line"),
    [
        (240, "240 submissions: at least 4 min at 60 a minute"),
        (200, "200 submissions: at least 3 min at 60 a minute"),
        (62, "62 submissions: at least 1 min at 60 a minute"),
    ],
)
def test_a_total_is_told_with_its_minutes(submissions: int, line: str) -> None:
    assert total_line(submissions, 60) == line


def test_the_page_shows_the_printed_lines() -> None:
    assert taken("docs/submissions.md", "output", "240 submissions") == [f"{total_line(240, 60)}\n"]
    told = f"{pace_line(240, 60)}\n{progress_line(61, 240)}\n"
    assert taken("docs/submissions.md", "output", "creating and deleting") == [told]


def test_progress_is_told_with_what_is_known() -> None:
    assert progress_line(61, 240) == "61 jobs created or deleted so far, of at least 240"
    assert progress_line(61, 0) == "61 jobs created or deleted so far"


def test_a_count_needs_every_declared_job() -> None:
    count = SubmissionCount()
    count.expect(["new", "kept", "edited"], ["new"], removed_count=3)
    assert count.least == 4
    assert count.decide("kept", 0) is None
    assert count.decide("edited", 2) is None
    assert count.least == 6
    assert count.decide("new", 1) == 6
    assert count.decide("new", 1) is None


LOCATION = "//aiplatform.googleapis.com/projects/p/locations/r"


def test_a_wait_is_told_with_what_is_known() -> None:
    assert pace_line(30, 60) == (
        "creating and deleting jobs is paced at 60 a minute (vertex-training:submissionsPerMinute): "
        "30 of them take at least 27 s"
    )
    assert pace_line(0, 60).endswith("(vertex-training:submissionsPerMinute): each has its turn")


def test_the_key_is_one_of_the_stack_file() -> None:
    assert pacing.KEY in shapes.APPLIED


def test_the_stack_overrides_the_pace_of_its_target() -> None:
    pacing = Pacing()
    assert pacing.pace(LOCATION, None) is None
    pacing.override("600")
    pace = pacing.pace(LOCATION, 60)
    assert pace and pace.per_minute == 600
    assert pacing.pace(LOCATION, 60) is pace


def test_a_long_total_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    pacing = Pacing()
    pace = pacing.pace(LOCATION, 2)
    for submissions, lines in ((2, []), (3, ["3 submissions: at least 1 min at 2 a minute"])):
        pacing.count.expect(["a"], [], 0)
        pacing.decide("a", submissions, pace)
        assert capsys.readouterr().out.splitlines() == lines
    pacing.count.expect(["a"], [], 0)
    pacing.decide("a", 3, None)
    assert capsys.readouterr().out == ""


def test_waits_are_told_once_a_minute(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(pacing, "time", clock)
    monkeypatch.setattr("vertex_api.retry.time", clock)
    pace = Pacing().pace(LOCATION, 60)
    assert pace
    for _ in range(130):
        pace.wait_for_turn()
    assert [line.partition(" ")[0] for line in capsys.readouterr().out.splitlines()] == ["creating", "62", "118"]
