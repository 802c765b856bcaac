"""A curve of many points: what is kept of it."""

import math

from vertex_emulator.event_files.scalar_events import Scalar
from vertex_emulator.event_files.thinned_curve import MAX_BUCKETS, ThinnedCurve


def curve(*values: float) -> ThinnedCurve:
    made = ThinnedCurve()
    for step, value in enumerate(values):
        made.add(Scalar("loss", step, 1000.0 + step / 2, value))
    return made


def test_short_curves_keep_every_point() -> None:
    shown = curve(0.5, 0.25, 0.75).serialize()
    assert (shown["steps"], shown["seconds"], shown["values"]) == ([0, 1, 2], [0.0, 0.5, 1.0], [0.5, 0.25, 0.75])
    assert (shown["count"], shown["not_finite"]["count"]) == (3, 0)


def test_long_curves_keep_ends_and_every_peak() -> None:
    peaks = {12_345: 5.0, 40_000: -5.0, 99_998: 7.0}
    values = [peaks.get(step, math.sin(step)) for step in range(100_000)]
    shown = curve(*values).serialize()
    kept = dict(zip(shown["steps"], shown["values"], strict=True))
    assert peaks.items() <= kept.items()
    assert {0, 99_999} <= kept.keys()
    assert all(values[step] == value for step, value in kept.items())
    assert MAX_BUCKETS / 2 <= len(kept) <= 2 * MAX_BUCKETS + 2
    assert shown["count"] == 100_000


def test_nan_and_infinity_are_counted_not_kept() -> None:
    shown = curve(0.5, math.nan, math.inf, -math.inf, 0.25).serialize()
    assert shown["values"] == [0.5, 0.25]
    assert shown["not_finite"] == {"count": 3, "step": 1}
    assert curve(math.nan).serialize()["steps"] == []
