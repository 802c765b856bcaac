"""A log folder that is read while a job writes it, whatever lies in it."""

import json
import os
import random
import struct
from itertools import pairwise
from pathlib import Path
from typing import Any

import google_crc32c
import pytest

from tests.vertex_emulator.event_files.events import LOG, add_to_file, plain, raw_records, records
from vertex_emulator.event_files import curve_reader, curve_reader_cache, event_file_search
from vertex_emulator.event_files.curve_reader import CurveReader
from vertex_emulator.event_files.curve_reader_cache import CurveReaderCache
from vertex_emulator.event_files.tfrecord_reader import MAX_RECORD_BYTES
from vertex_emulator.gcs.files import BucketTree

NAME = "events.out.tfevents.1.host"


def loss(*steps: int) -> bytes:
    return records(plain("loss", step, float(step)) for step in steps)


def new_reader(buckets: Path) -> CurveReader:
    return CurveReader(BucketTree(buckets), LOG)


def steps(reader: CurveReader, run: str = "", tag: str = "loss") -> Any:
    return reader.curves[run][tag].serialize()["steps"]


def test_each_reading_takes_only_what_is_new(tmp_path: Path) -> None:
    reader = new_reader(tmp_path)
    assert (reader.read_new_data_and_count_bytes(10**9), reader.has_files) == (0, False)
    path = add_to_file(tmp_path, NAME, loss(1, 2) + loss(3)[:-5])
    assert (reader.read_new_data_and_count_bytes(10**9), reader.has_files) == (len(loss(1, 2, 3)[:-5]), True)
    assert reader.read_new_data_and_count_bytes(10**9) == 0
    assert steps(reader) == [1, 2]
    add_to_file(tmp_path, NAME, loss(3)[-5:] + loss(4))
    assert reader.read_new_data_and_count_bytes(10**9) == len(loss(3, 4))
    assert (steps(reader), reader.read_new_data_and_count_bytes(10**9), reader.problems) == ([1, 2, 3, 4], 0, [])
    assert reader.curves[""]["loss"].count == 4
    path.write_bytes(loss(8))
    assert (reader.read_new_data_and_count_bytes(10**9), reader.has_unread_data) == (0, True)
    reader.read_new_data_and_count_bytes(10**9)
    assert steps(reader) == [8]


def test_folders_are_runs_and_their_files_one_curve(tmp_path: Path) -> None:
    add_to_file(tmp_path, "events.out.tfevents.2.host", loss(3, 4), "train")
    add_to_file(tmp_path, "events.out.tfevents.1.host", loss(1, 2), "train")
    add_to_file(tmp_path, NAME, loss(5), "validation/last")
    add_to_file(tmp_path, "checkpoint", b"no event file", "train")
    reader = new_reader(tmp_path)
    reader.read_new_data_and_count_bytes(10**9)
    assert (steps(reader, "train"), steps(reader, "validation/last")) == ([1, 2, 3, 4], [5])
    assert reader.problems == []


def test_links_pipes_and_broken_files_are_one_line_each(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(loss(1))
    path = add_to_file(tmp_path, NAME, loss(1), "run")
    path.with_name("tfevents.link").symlink_to(outside)
    path.parent.with_name("folder").symlink_to(path.parent)
    os.mkfifo(path.with_name("tfevents.pipe"))
    add_to_file(tmp_path, "tfevents.damaged", loss(2) + b"this is no record of events", "other")
    add_to_file(tmp_path, "tfevents.other", raw_records([b"\xff\xff"]), "other")
    reader = new_reader(tmp_path)
    reader.read_new_data_and_count_bytes(10**9)
    reader.read_new_data_and_count_bytes(10**9)
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
    assert (reader.read_new_data_and_count_bytes(10**9), reader.has_files, reader.curves) == (0, False, {})


def test_more_tags_than_the_limit_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curve_reader, "MAX_TAGS", 2)
    add_to_file(tmp_path, NAME, records(plain(f"tag {i}", 1, 0.5) for i in range(5)))
    reader = new_reader(tmp_path)
    reader.read_new_data_and_count_bytes(10**9)
    assert (len(reader.curves[""]), reader.problems) == (2, [f"{LOG} has more than 2 tags"])


def test_a_cache_reads_long_logs_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vertex_emulator.event_files.curve_reader_cache.MAX_BYTES_PER_READ", 500)
    monkeypatch.setattr("vertex_emulator.event_files.tfrecord_reader.MAX_RECORD_BYTES", 100)
    for begin in range(0, 100, 10):
        add_to_file(tmp_path, f"tfevents.{begin:02d}", loss(*range(begin, begin + 10)))
    cache = CurveReaderCache(BucketTree(tmp_path))
    counts: list[int] = []
    has_more = True
    while has_more:
        with cache.lock_and_update_readers([LOG]) as (reader,):
            counts.append(reader.curves[""]["loss"].count)
            has_more = reader.has_unread_data
    assert counts[-1] == 100
    # 500 bytes are some 12 records.
    assert all(0 < now - before <= 15 for before, now in pairwise([0, *counts]))


def test_a_cache_holds_a_limited_number_of_curves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run has as many tags as it may have, in more runs than the emulator has memory for."""
    monkeypatch.setattr(curve_reader_cache, "MAX_CURVES", 12)
    for number in range(3):
        for run in range(3):
            content = records(plain(f"tag {i}", 1, 0.5) for i in range(3))
            add_to_file(tmp_path, NAME, content, f"{number}/{run}")
    cache = CurveReaderCache(BucketTree(tmp_path))
    with cache.lock_and_update_readers([f"{LOG}/{number}" for number in range(3)]) as readers:
        assert [reader.curve_count for reader in readers] == [9, 3, 0]
        assert "too many runs and tags: those that came last are left out" in readers[1].problems
        assert readers[0].problems == []
    add_to_file(tmp_path, NAME, loss(1), "4")
    with cache.lock_and_update_readers([f"{LOG}/4"]) as (reader,):
        assert (reader.curve_count, steps(reader)) == (1, [1])
    assert sum(each.curve_count for each in cache._readers.values()) <= 12


def test_files_that_come_and_go_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curve_reader, "MAX_POSITIONS", 20)
    reader = new_reader(tmp_path)
    for number in range(100):
        path = add_to_file(tmp_path, f"tfevents.{number}", loss(number), f"run {number}")
        reader.read_new_data_and_count_bytes(10**9)
        assert steps(reader, f"run {number}") == [number]
        path.unlink()
    assert len(reader._positions) <= 21
    assert len(reader.curves) <= 21


def test_a_log_folder_is_searched_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_file_search, "MAX_ENTRIES", 50)
    for run in range(20):
        for number in range(9):
            add_to_file(tmp_path, f"tfevents.{number}", b"", str(run))
    # 20 folders, and the files of the first ones.
    assert len(event_file_search.list_event_files(BucketTree(tmp_path), LOG)) == 30


@pytest.mark.parametrize("begin", [struct.pack("<Q", 1 << 62), b"damaged!"], ids=["long", "damaged"])
def test_lying_files_are_read_once_within_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begin: bytes
) -> None:
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
        reader.read_new_data_and_count_bytes(2_000_000)
    assert max(read_bytes) <= 2_000_000 + MAX_RECORD_BYTES + 16
    assert (steps(reader), read_bytes[-1]) == ([1], 0)


def test_changed_bytes_behind_right_checksums_are_survived(tmp_path: Path) -> None:
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
    reader.read_new_data_and_count_bytes(10**9)
    json.dumps([curve.serialize() for curves in reader.curves.values() for curve in curves.values()], allow_nan=False)
    assert steps(reader) == [1]
    assert {problem.partition(" has ")[2] for problem in reader.problems} <= {"records that are no events"}


def test_names_of_files_and_folders_are_only_names(tmp_path: Path) -> None:
    names = [f"{part} tfevents" for part in ("<img src=x>", "a\nb", "\u202e", "$(id)", "-rf", "\x1b[2J")]
    for name in names:
        add_to_file(tmp_path, name, loss(1), f"run {name}/.../~")
    deep = "/".join(["d" * 100] * 12)
    (tmp_path / "logs" / "run" / deep).mkdir(parents=True)
    (tmp_path / "logs" / "run" / "not utf-8 \udcff").mkdir()
    reader = new_reader(tmp_path)
    reader.read_new_data_and_count_bytes(10**9)
    assert reader.curves.keys() == {f"run {name}/.../~" for name in names}
    assert reader.problems == []
