"""A log folder that is read while a job writes it, whatever lies in it."""

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.vertex_emulator.event_files.events import LOG, add_to_file, plain, raw_records, records
from vertex_emulator.event_files import curve_reader
from vertex_emulator.event_files.curve_reader import CurveReader
from vertex_emulator.event_files.curve_reader_cache import CurveReaderCache
from vertex_emulator.gcs.symlink_safe_bucket_files import BucketFileTree

NAME = "events.out.tfevents.1.host"


def loss(*steps: int) -> bytes:
    return records(plain("loss", step, float(step)) for step in steps)


def new_reader(buckets: Path) -> CurveReader:
    return CurveReader(BucketFileTree(buckets), LOG)


def steps(reader: CurveReader, run: str = "", tag: str = "loss") -> Any:
    return reader.curves[run][tag].serialize()["steps"]


def test_each_reading_takes_only_what_is_new(tmp_path: Path) -> None:
    reader = new_reader(tmp_path)
    assert (reader.read_new_data_and_count_bytes(10**9), reader.has_files) == (0, False)
    path = add_to_file(tmp_path, NAME, loss(1, 2) + loss(3)[:-5])
    assert (reader.read_new_data_and_count_bytes(10**9), reader.has_files) == (len(loss(1, 2)), True)
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
    cache = CurveReaderCache(BucketFileTree(tmp_path))
    counts: list[int] = []
    has_more = True
    while has_more:
        with cache.lock_and_update_readers([LOG]) as (reader,):
            counts.append(reader.curves[""]["loss"].count)
            has_more = reader.has_unread_data
    assert counts[-1] == 100
    # 500 bytes are some 12 records.
    assert all(0 < now - before <= 15 for before, now in pairwise([0, *counts]))
