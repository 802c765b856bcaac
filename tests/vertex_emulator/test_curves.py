"""The curves of event files: their records, the scalars in these, what is kept of a curve, and what is read when."""

import json
import math
import os
import random
import struct
from io import FileIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import google_crc32c
import pytest

from tests.vertex_emulator.events import LOG, add_to_file, plain, raw_records, records, tensor
from vertex_api import events
from vertex_api.events import MAX_RECORD_BYTES, MAX_TAG_BYTES, Scalar
from vertex_emulator import curves, event_files
from vertex_emulator.curves import (
    MAX_BUCKETS,
    Curve,
    CurveCache,
    CurveReader,
    Records,
)
from vertex_emulator.gcs.files import BucketTree

NAME = "events.out.tfevents.1.host"


def loss(*steps: int) -> bytes:
    return records(plain("loss", step, float(step)) for step in steps)


def new_reader(buckets: Path) -> CurveReader:
    return CurveReader(BucketTree(buckets), LOG)


def steps(reader: CurveReader, run: str = "", tag: str = "loss") -> Any:
    return reader.curves[run][tag].to_json()["steps"]


def test_each_reading_takes_only_what_is_new(tmp_path: Path) -> None:
    reader = new_reader(tmp_path)
    assert (reader.update(10**9), reader.has_files) == (0, False)
    path = add_to_file(tmp_path, NAME, loss(1, 2) + loss(3)[:-5])
    assert (reader.update(10**9), reader.has_files) == (len(loss(1, 2, 3)[:-5]), True)
    assert reader.update(10**9) == 0
    assert steps(reader) == [1, 2]
    add_to_file(tmp_path, NAME, loss(3)[-5:] + loss(4))
    assert reader.update(10**9) == len(loss(3, 4))
    assert (steps(reader), reader.update(10**9), reader.problems) == ([1, 2, 3, 4], 0, [])
    assert reader.curves[""]["loss"].count == 4
    path.write_bytes(loss(8))
    assert (reader.update(10**9), reader.has_unread_data) == (0, True)
    reader.update(10**9)
    assert steps(reader) == [8]


def test_folders_are_runs(tmp_path: Path) -> None:
    add_to_file(tmp_path, "events.out.tfevents.2.host", loss(3, 4), "train")
    add_to_file(tmp_path, "events.out.tfevents.1.host", loss(1, 2), "train")
    add_to_file(tmp_path, NAME, loss(5), "validation/last")
    add_to_file(tmp_path, "checkpoint", b"no event file", "train")
    reader = new_reader(tmp_path)
    reader.update(10**9)
    assert (steps(reader, "train"), steps(reader, "validation/last")) == ([1, 2, 3, 4], [5])
    assert reader.problems == []


def test_unreadable_files_are_one_line_each(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(loss(1))
    path = add_to_file(tmp_path, NAME, loss(1), "run")
    path.with_name("tfevents.link").symlink_to(outside)
    path.parent.with_name("folder").symlink_to(path.parent)
    os.mkfifo(path.with_name("tfevents.pipe"))
    add_to_file(tmp_path, "tfevents.damaged", loss(2) + b"this is no record of events", "other")
    add_to_file(tmp_path, "tfevents.other", raw_records([b"\xff\xff"]), "other")
    reader = new_reader(tmp_path)
    reader.update(10**9)
    reader.update(10**9)
    assert (steps(reader, "run"), steps(reader, "other")) == ([1], [2])
    assert (reader.curves.keys(), reader.has_unread_data) == ({"run", "other"}, False)
    assert reader.problems == [
        f"{LOG}/other/tfevents.damaged is damaged at byte {len(loss(2))}",
        f"{LOG}/other/tfevents.other has records that are no events",
    ]


def test_a_folder_outside_buckets_is_never_read(tmp_path: Path) -> None:
    add_to_file(tmp_path / "other", NAME, loss(1))
    (tmp_path / "gcs").mkdir()
    (tmp_path / "gcs" / "logs").symlink_to(tmp_path / "other" / "logs")
    reader = new_reader(tmp_path / "gcs")
    assert (reader.update(10**9), reader.has_files, reader.curves) == (0, False, {})


def test_more_tags_than_the_limit_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curves, "MAX_TAGS", 2)
    add_to_file(tmp_path, NAME, records(plain(f"tag {i}", 1, 0.5) for i in range(5)))
    reader = new_reader(tmp_path)
    reader.update(10**9)
    assert (len(reader.curves[""]), reader.problems) == (2, [f"{LOG} has more than 2 tags"])


def test_caches_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vertex_emulator.curves.MAX_BYTES_PER_READ", 500)
    monkeypatch.setattr("vertex_api.events.MAX_RECORD_BYTES", 100)
    for begin in range(0, 100, 10):
        add_to_file(tmp_path, f"tfevents.{begin:02d}", loss(*range(begin, begin + 10)))
    cache = CurveCache(BucketTree(tmp_path))
    counts: list[int] = []
    has_more = True
    while has_more:
        with cache.update([LOG]) as (reader,):
            counts.append(reader.curves[""]["loss"].count)
            has_more = reader.has_unread_data
    assert counts[-1] == 100
    # 500 bytes are some 12 records.
    assert all(0 < now - before <= 15 for before, now in pairwise([0, *counts]))


def test_caches_hold_limited_curves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run has as many tags as it may have, in more runs than the emulator has memory for."""
    monkeypatch.setattr(curves, "MAX_CURVES", 12)
    for number in range(3):
        for run in range(3):
            content = records(plain(f"tag {i}", 1, 0.5) for i in range(3))
            add_to_file(tmp_path, NAME, content, f"{number}/{run}")
    cache = CurveCache(BucketTree(tmp_path))
    with cache.update([f"{LOG}/{number}" for number in range(3)]) as readers:
        assert [reader.curve_count for reader in readers] == [9, 3, 0]
        assert "too many runs and tags: those that came last are left out" in readers[1].problems
        assert readers[0].problems == []
    add_to_file(tmp_path, NAME, loss(1), "4")
    with cache.update([f"{LOG}/4"]) as (reader,):
        assert (reader.curve_count, steps(reader)) == (1, [1])
    assert sum(each.curve_count for each in cache._readers.values()) <= 12


def test_files_that_come_and_go_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curves, "MAX_POSITIONS", 20)
    reader = new_reader(tmp_path)
    for number in range(100):
        path = add_to_file(tmp_path, f"tfevents.{number}", loss(number), f"run {number}")
        reader.update(10**9)
        assert steps(reader, f"run {number}") == [number]
        path.unlink()
    assert len(reader._positions) <= 21
    assert len(reader.curves) <= 21


def test_searches_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_files, "MAX_ENTRIES", 50)
    for run in range(20):
        for number in range(9):
            add_to_file(tmp_path, f"tfevents.{number}", b"", str(run))
    # 20 folders, and the files of the first ones.
    assert len(event_files.find(BucketTree(tmp_path), LOG)) == 30


@pytest.mark.parametrize("begin", [struct.pack("<Q", 1 << 62), b"damaged!"], ids=["long", "damaged"])
def test_lying_files_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begin: bytes) -> None:
    checksum = google_crc32c.value(begin)
    masked = ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF
    head = begin + struct.pack("<I", masked if begin != b"damaged!" else 0)
    for number in range(30):
        os.truncate(add_to_file(tmp_path, f"tfevents.{number:02d}", head), 3 << 20)
    add_to_file(tmp_path, "tfevents.good", loss(1))
    read_bytes: list[int] = []
    read = os.pread

    def count_and_read(*arguments: int) -> bytes:
        data = read(*arguments)
        read_bytes[-1] += len(data)
        return data

    monkeypatch.setattr(os, "pread", count_and_read)
    reader = new_reader(tmp_path)
    for _ in range(32):
        read_bytes.append(0)
        reader.update(2_000_000)
    assert max(read_bytes) <= 2_000_000 + MAX_RECORD_BYTES + 16
    assert (steps(reader), read_bytes[-1]) == ([1], 0)


def test_changed_events_are_survived(tmp_path: Path) -> None:
    chance = random.Random(7)
    good = plain("loss", 3, 0.5).SerializeToString()
    for number in range(2000):
        content = bytearray(good)
        for _ in range(chance.randint(1, 4)):
            content[chance.randrange(len(content))] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))
        cut = chance.randint(1, len(content))
        add_to_file(tmp_path, NAME, raw_records([bytes(content[:cut])]), str(number // 100))
    add_to_file(tmp_path, "tfevents.after", loss(1))
    reader = new_reader(tmp_path)
    reader.update(10**9)
    json.dumps([curve.to_json() for run in reader.curves.values() for curve in run.values()], allow_nan=False)
    assert steps(reader) == [1]
    assert {problem.partition(" has ")[2] for problem in reader.problems} <= {"records that are no events"}


def test_hostile_file_names_are_names(tmp_path: Path) -> None:
    names = [f"{part} tfevents" for part in ("<img src=x>", "a\nb", "\u202e", "$(id)", "-rf", "\x1b[2J")]
    for name in names:
        add_to_file(tmp_path, name, loss(1), f"run {name}/.../~")
    deep = "/".join(["d" * 100] * 12)
    (tmp_path / "logs" / "run" / deep).mkdir(parents=True)
    (tmp_path / "logs" / "run" / "not utf-8 \udcff").mkdir()
    reader = new_reader(tmp_path)
    reader.update(10**9)
    assert reader.curves.keys() == {f"run {name}/.../~" for name in names}
    assert reader.problems == []


def found(event: Any) -> list[Scalar]:
    return [*events.scalars(event.SerializeToString())]


def test_plain_values_are_scalars() -> None:
    event = plain("loss", 7, 0.5, wall_time=123.25)
    event.summary.value.add(tag="accuracy", simple_value=0.75)
    assert found(event) == [Scalar("loss", 7, 123.25, 0.5), Scalar("accuracy", 7, 123.25, 0.75)]


@pytest.mark.parametrize(
    "fields",
    [
        {"dtype": 1, "float_val": [2.5]},
        {"dtype": 1, "tensor_content": struct.pack("<f", 2.5)},
        {"dtype": 2, "double_val": [2.5]},
        {"dtype": 2, "tensor_content": struct.pack("<d", 2.5)},
    ],
)
def test_tensors_with_one_number_are_scalars(fields: dict[str, Any]) -> None:
    assert found(tensor("loss", 3, **fields)) == [Scalar("loss", 3, 1000.0, 2.5)]


@pytest.mark.parametrize(
    ("plugin", "fields"),
    [
        ("scalars", {"dtype": 1, "float_val": [1.0, 2.0]}),
        ("scalars", {"dtype": 1}),
        ("scalars", {"dtype": 7, "string_val": [b"text"]}),
        ("histograms", {"dtype": 1, "float_val": [1.0]}),
    ],
)
def test_other_tensors_are_no_scalars(plugin: str, fields: dict[str, Any]) -> None:
    assert found(tensor("loss", 3, plugin, **fields)) == []


def test_impossible_times_and_tags_are_omitted() -> None:
    for time in (math.nan, math.inf, -1.0, 1e300):
        assert found(plain("loss", 1, 0.5, time)) == [Scalar("loss", 1, 0.0, 0.5)]
    assert found(plain("é" * (MAX_TAG_BYTES // 2), 1, 0.5)) != []
    assert found(plain("é" * (MAX_TAG_BYTES // 2 + 1), 1, 0.5)) == []


def test_records_without_events_are_reported() -> None:
    with pytest.raises(ValueError, match="no event"):
        [*events.scalars(b"\xff\xff")]


def read(path: Path, offset: int = 0, max_bytes: int = 10**9) -> Records:
    with FileIO(path) as file:
        return curves.read_records(file, offset, max_bytes)


def test_any_cut_loses_and_repeats_nothing(tmp_path: Path) -> None:
    contents = [b"", b"a", b"bc" * 50]
    whole = raw_records(contents)
    path = tmp_path / "file"
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        first = read(path)
        path.write_bytes(whole)
        then = read(path, first.end_offset)
        assert [*first.records, *then.records] == contents
        assert (first.problem, then.problem, then.end_offset) == ("", "", len(whole))


@pytest.mark.parametrize("at", [0, 8, 12, 15])
def test_changed_bytes_stop_reading(tmp_path: Path, at: int) -> None:
    good, bad = raw_records([b"good"]), bytearray(raw_records([b"bad"]))
    bad[at] ^= 1
    (tmp_path / "file").write_bytes(good + bad)
    batch = read(tmp_path / "file")
    assert (batch.records, batch.problem) == ([b"good"], f"is damaged at byte {len(good)}")
    assert (batch.end_offset, batch.next_size) == (len(good), 1 << 64)


def test_long_records_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MAX_RECORD_BYTES", 10)
    before, image, after = (raw_records([content]) for content in (b"before", b"i" * 1000, b"after"))
    path = tmp_path / "file"
    path.write_bytes(before + image[:-1])
    begun = read(path)
    assert (begun.records, begun.end_offset, begun.problem) == ([b"before"], len(before), "")
    assert begun.next_size == len(before + image)
    path.write_bytes(before + image + after)
    skipped = read(path, max_bytes=100)
    assert (skipped.records, skipped.end_offset, skipped.problem) == ([b"before"], len(before + image), "")
    assert read(path, skipped.end_offset).records == [b"after"]


def test_one_call_reads_limited_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MAX_RECORD_BYTES", 10)
    one = raw_records([b"0123456789"])
    (tmp_path / "file").write_bytes(one * 1000)
    batch = read(tmp_path / "file", max_bytes=5 * len(one))
    assert (len(batch.records), batch.end_offset) == (5, 5 * len(one))
    assert len(read(tmp_path / "file", max_bytes=1).records) == 1


@pytest.mark.parametrize("length", [13, 1 << 20, 1 << 62, (1 << 63) - 16, (1 << 64) - 16, (1 << 64) - 1])
def test_lengths_beyond_the_end_wait(tmp_path: Path, length: int) -> None:
    good, head = raw_records([b"good"]), struct.pack("<Q", length)
    lie = head + struct.pack("<I", events._masked_checksum(head)) + b"twelve bytes"
    (tmp_path / "file").write_bytes(good + lie)
    batch = read(tmp_path / "file")
    assert (batch.records, batch.end_offset, batch.problem) == ([b"good"], len(good), "")
    assert batch.next_size == len(good) + length + 16
    assert batch.read_bytes == len(good + lie)


def test_records_of_holes_are_skipped(tmp_path: Path) -> None:
    length = 1 << 35
    head = struct.pack("<Q", length)
    (tmp_path / "file").write_bytes(head + struct.pack("<I", events._masked_checksum(head)))
    os.truncate(tmp_path / "file", length + 100)
    batch = read(tmp_path / "file", max_bytes=100)
    assert (batch.records, batch.end_offset, batch.problem) == ([], length + 16, "")
    assert batch.read_bytes == events.MAX_RECORD_BYTES + 16


def curve(*values: float) -> Curve:
    made = Curve()
    for step, value in enumerate(values):
        made.add(Scalar("loss", step, 1000.0 + step / 2, value))
    return made


def test_short_curves_keep_every_point() -> None:
    shown = curve(0.5, 0.25, 0.75).to_json()
    assert (shown["steps"], shown["seconds"], shown["values"]) == ([0, 1, 2], [0.0, 0.5, 1.0], [0.5, 0.25, 0.75])
    assert (shown["count"], shown["not_finite"]["count"]) == (3, 0)


def test_long_curves_keep_ends_and_every_peak() -> None:
    peaks = {12_345: 5.0, 40_000: -5.0, 99_998: 7.0}
    values = [peaks.get(step, math.sin(step)) for step in range(100_000)]
    shown = curve(*values).to_json()
    kept = dict(zip(shown["steps"], shown["values"], strict=True))
    assert peaks.items() <= kept.items()
    assert {0, 99_999} <= kept.keys()
    assert all(values[step] == value for step, value in kept.items())
    assert MAX_BUCKETS / 2 <= len(kept) <= 2 * MAX_BUCKETS + 2
    assert shown["count"] == 100_000


def test_nan_and_infinity_are_counted_not_kept() -> None:
    shown = curve(0.5, math.nan, math.inf, -math.inf, 0.25).to_json()
    assert shown["values"] == [0.5, 0.25]
    assert shown["not_finite"] == {"count": 3, "step": 1}
    assert curve(math.nan).to_json()["steps"] == []
