"""Data in buckets of Google's below `/gcs`: what is fetched, kept, gone on with, and refused."""

import base64
import hashlib
import json
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from vertex_training.data.lock import Data
from vertex_training.errors import Problem
from vertex_training.rehearsal import fetch
from vertex_training.rehearsal.fetch import Cache, FetchFailed, Reply

from vertex_emulator.pruning import _remove_fetched


@dataclass
class Bucket:
    """A bucket of Google's, and what it was asked for. It breaks off after some pieces."""

    objects: dict[str, bytes]
    generation: int = 1
    pieces: list[tuple[str, str]] = field(default_factory=list)
    lists: int = 0
    most: int = 1 << 30
    more: dict[str, Any] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, url: str, params: Mapping[str, str], headers: Mapping[str, str]) -> Reply:
        assert url.startswith("https://storage.googleapis.com/storage/v1/b/acme/o")
        with self.lock:
            if params.get("alt") != "media":
                return self._list(params)
            name = unquote(url.rpartition("/o/")[2])
            if len(self.pieces) >= self.most:
                raise KeyboardInterrupt
            assert params["generation"] == str(self.generation)
            begin, end = map(int, headers["Range"].removeprefix("bytes=").split("-"))
            self.pieces.append((name, headers["Range"]))
            return Reply(206, self.objects[name][begin : end + 1])

    def _list(self, params: Mapping[str, str]) -> Reply:
        self.lists += 1
        names = sorted(name for name in self.objects if name.startswith(params["prefix"]))
        begin = int(params.get("pageToken", 0))
        page = names[begin : begin + int(params["maxResults"])]
        items = [self._item(name) for name in page]
        following = {"nextPageToken": str(begin + len(page))} if begin + len(page) < len(names) else {}
        return Reply(200, json.dumps({"items": items, **following}).encode())

    def _item(self, name: str) -> dict[str, Any]:
        content = self.objects[name]
        md5 = base64.b64encode(hashlib.md5(content).digest()).decode()
        found = {"name": name, "size": str(len(content)), "generation": str(self.generation), "md5Hash": md5}
        return {**found, **self.more.get(name, {})}


@dataclass
class Target:
    """A cache, the present target's buckets, and what was said."""

    cache: Cache
    buckets: Path
    said: list[str]

    def fetch(self, bucket: Bucket, uri: str = "gs://acme/train/") -> None:
        self.said.clear()
        self.cache.fetch(Data("train", uri, "error", lambda _, message: Problem("", "", message)), bucket)

    def files(self) -> dict[str, bytes]:
        return {
            str(each.relative_to(self.buckets)): each.read_bytes()
            for each in self.buckets.rglob("*/*")
            if each.is_file()
        }

    def refusal(self, bucket: Bucket, uri: str = "gs://acme/train/") -> str:
        with pytest.raises(FetchFailed) as refused:
            self.fetch(bucket, uri)
        assert "\n" not in str(refused.value)
        return str(refused.value)


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Target:
    monkeypatch.setenv("VERTEX_EMULATOR_DATA", str(tmp_path / "run"))
    monkeypatch.setattr(fetch, "_PIECE", 100)
    said: list[str] = []
    return Target(Cache(tmp_path / "emulator" / "fetched", 10**9, said.append), tmp_path / "run" / "gcs", said)


def test_objects_are_files_and_fetched_once(target: Target) -> None:
    bucket = Bucket({"train/a.csv": b"a" * 250, "train/b/c.csv": b"c", "train/none": b"", "other": b"x"})
    target.fetch(bucket)
    expected = {"acme/train/a.csv": b"a" * 250, "acme/train/b/c.csv": b"c", "acme/train/none": b""}
    assert target.files() == expected
    assert target.said == ["data.train: fetching 3 of 3 objects, 251 B"]
    pieces = sorted(bucket.pieces)
    assert pieces == [
        *(("train/a.csv", f"bytes={r}") for r in ("0-99", "100-199", "200-249")),
        ("train/b/c.csv", "bytes=0-0"),
    ]
    (target.buckets / "acme/train/a.csv").write_text("changed by the job")
    target.fetch(bucket)
    assert (target.files(), sorted(bucket.pieces)) == (expected, pieces)
    assert target.said == ["data.train: 3 objects, 251 B, are here already"]


def test_another_generation_is_fetched_anew(target: Target) -> None:
    target.fetch(Bucket({"train/a": b"old", "train/gone": b""}))
    bucket = Bucket({"train/a": b"new"}, generation=2)
    target.fetch(bucket)
    assert len(bucket.pieces) == 1 and target.files()["acme/train/a"] == b"new"


def test_a_killed_fetch_goes_on_where_it_was(target: Target) -> None:
    objects = {f"train/{number}": bytes([number]) * 1_000 for number in range(8)}
    first = Bucket(objects, most=37)
    with pytest.raises(KeyboardInterrupt):
        target.fetch(first)
    assert target.files() == {}
    second = Bucket(objects)
    target.fetch(second)
    assert target.files() == {f"acme/{name}": content for name, content in objects.items()}
    assert len(first.pieces) == 37
    assert sorted(first.pieces + second.pieces) == sorted({*first.pieces, *second.pieces})
    assert len(first.pieces) + len(second.pieces) == 80


def test_a_list_of_many_pages_is_read_to_its_end(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "_PAGE", 10)
    bucket = Bucket({f"train/{number:05}": b"1" for number in range(200)})
    target.fetch(bucket)
    assert (bucket.lists, len(bucket.pieces), len(target.files())) == (20, 200, 200)


def test_wildcards_select(target: Target) -> None:
    bucket = Bucket({"train/a.csv": b"1", "train/a.txt": b"2", "train/sub/b.csv": b"3"})
    target.fetch(bucket, "gs://acme/train/*.csv")
    assert [*target.files()] == ["acme/train/a.csv"]


def test_names_that_are_no_paths_lead_nowhere(target: Target, tmp_path: Path) -> None:
    names = [
        "train/../../../escaped",
        "train//x",
        "train/./x",
        "train/a",
        "train/a/b",
        "train/" + "x" * 300,
        "train/\0",
    ]
    bucket = Bucket(dict.fromkeys(names, b"1"), more={"train/z": {"contentEncoding": "gzip"}})
    bucket.objects["train/z"] = b"1"
    target.fetch(bucket)
    assert [*target.files()] == ["acme/train/a"] and not [*tmp_path.rglob("escaped")]
    assert target.said[0] == "data.train: 7 objects are no files below /gcs, by their names or their gzip encoding"


def test_what_cannot_be_fetched_is_one_line(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    def answering(status: int, content: bytes = b"", reason: str = "") -> Any:
        return lambda *_: Reply(status, content, reason)

    place = "data.train: gs://acme/train/: "
    refused = target.refusal(answering(403, reason="trainer@acme does not have storage.objects.list access"))
    assert refused == f"{place}Google answers 403 (trainer@acme does not have storage.objects.list access)"
    for content in (b"[]", b"<html>", b'{"items": [1]}', b'{"items": [{"name": "train/a", "size": "x"}]}'):
        assert target.refusal(answering(200, content)) == f"{place}what answers is not Cloud Storage"
    endless = target.refusal(answering(200, b'{"nextPageToken": "1"}'))
    assert endless == f"{place}the list does not end after 0 objects"
    assert target.refusal(Bucket({})).startswith("data.train: there is nothing under gs://acme/train/")
    bucket = Bucket({"train/a": b"1" * 10})
    bucket.more["train/a"] = {"md5Hash": "AAAA"}
    assert "what came is not what its checksum says" in target.refusal(bucket)
    bucket.more["train/a"] = {"size": "20"}
    assert "Google answers 10 bytes of 20" in target.refusal(bucket)
    bucket.more["train/a"] = {"size": str(3 * 10**9)}
    refused = target.refusal(bucket)
    assert refused.startswith("data.train: gs://acme/train/ has 3.0 GB, and --fetch allows 1.0 GB; give --fetch 3, or")
    assert target.files() == {}


def test_a_cache_of_a_branch_counts_for_nothing(target: Target, tmp_path: Path) -> None:
    bucket = Bucket({"train/a": b"1"})
    target.fetch(bucket)
    (tmp_path / "emulator" / "fetched").rename(tmp_path / "kept")
    (brought := tmp_path / "emulator" / "fetched").mkdir(mode=0o755)
    assert target.refusal(bucket).startswith(f"{brought}: is a link, or others can open it")
    brought.rmdir()
    brought.symlink_to(tmp_path / "kept")
    assert target.refusal(bucket).startswith(f"{brought}: is a link, or others can open it")
    brought.unlink()
    brought.mkdir(mode=0o700)
    for each in (tmp_path / "kept").iterdir():
        if each.is_dir():
            each.rename(brought / each.name)
    target.fetch(bucket)
    assert len(bucket.pieces) == 2


def test_prune_removes_what_no_run_has_used(target: Target) -> None:
    bucket = Bucket({"train/a": b"1" * 10, "train/b": b"2"})
    target.fetch(bucket)
    used, unused = (target.cache.folder / "acme").iterdir()
    os.utime(unused, ns=(5, 5))
    size = unused.stat().st_size
    assert _remove_fetched(target.cache.folder, 10, is_dry_run=True) == [size]
    assert unused.exists()
    assert _remove_fetched(target.cache.folder, 10, is_dry_run=False) == [size]
    assert used.exists() and not unused.exists()
    target.fetch(bucket)
    assert target.said == [f"data.train: fetching 1 of 2 objects, {size} B"]
