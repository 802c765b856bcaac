"""Records of event files: complete ones only, from any offset, checked, and long ones left out."""

import os
import struct
from io import FileIO
from pathlib import Path

import pytest

from tests.vertex_emulator.event_files.events import raw_records
from vertex_emulator.event_files import tfrecord_reader
from vertex_emulator.event_files.tfrecord_reader import RecordBatch, read_complete_records


def read(path: Path, offset: int = 0, max_bytes: int = 10**9) -> RecordBatch:
    with FileIO(path) as file:
        return read_complete_records(file, offset, max_bytes)


def test_reading_at_any_cut_loses_and_repeats_nothing(tmp_path: Path) -> None:
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
def test_a_changed_byte_stops_reading_at_its_record(tmp_path: Path, at: int) -> None:
    good, bad = raw_records([b"good"]), bytearray(raw_records([b"bad"]))
    bad[at] ^= 1
    (tmp_path / "file").write_bytes(good + bad)
    batch = read(tmp_path / "file")
    assert (batch.records, batch.problem) == ([b"good"], f"is damaged at byte {len(good)}")
    assert (batch.end_offset, batch.next_size) == (len(good), 1 << 64)


def test_long_records_are_skipped_once_they_are_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tfrecord_reader, "MAX_RECORD_BYTES", 10)
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


def test_one_call_reads_a_limited_number_of_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tfrecord_reader, "MAX_RECORD_BYTES", 10)
    one = raw_records([b"0123456789"])
    (tmp_path / "file").write_bytes(one * 1000)
    batch = read(tmp_path / "file", max_bytes=5 * len(one))
    assert (len(batch.records), batch.end_offset) == (5, 5 * len(one))
    assert len(read(tmp_path / "file", max_bytes=1).records) == 1


@pytest.mark.parametrize("length", [13, 1 << 20, 1 << 62, (1 << 63) - 16, (1 << 64) - 16, (1 << 64) - 1])
def test_a_length_beyond_the_file_s_end_waits(tmp_path: Path, length: int) -> None:
    good, head = raw_records([b"good"]), struct.pack("<Q", length)
    lie = head + struct.pack("<I", tfrecord_reader._compute_masked_checksum(head)) + b"twelve bytes"
    (tmp_path / "file").write_bytes(good + lie)
    batch = read(tmp_path / "file")
    assert (batch.records, batch.end_offset, batch.problem) == ([b"good"], len(good), "")
    assert batch.next_size == len(good) + length + 16
    assert batch.read_bytes == len(good + lie)


def test_a_huge_record_of_holes_is_not_read(tmp_path: Path) -> None:
    length = 1 << 35
    head = struct.pack("<Q", length)
    (tmp_path / "file").write_bytes(head + struct.pack("<I", tfrecord_reader._compute_masked_checksum(head)))
    os.truncate(tmp_path / "file", length + 100)
    batch = read(tmp_path / "file", max_bytes=100)
    assert (batch.records, batch.end_offset, batch.problem) == ([], length + 16, "")
    assert batch.read_bytes == tfrecord_reader.MAX_RECORD_BYTES + 16
