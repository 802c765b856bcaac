"""The lock's file and its digests: equal data has an equal digest, and a diff of the file names what differs."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from vertex_training.data import lock
from vertex_training.data.lock import Data, Lock, Part, Snapshot, describe, differences
from vertex_training.errors import DataLockUnusable, Problem

from tests.blocks import taken

URI = "gs://acme/train/"


def parts(names: Iterable[str], **contents: str) -> list[Part]:
    return [Part(name, 3, {"crc32c": contents.get(name, "AAAA"), "generation": "1"}) for name in names]


def snapshot(*names: str, **contents: str) -> Snapshot:
    return Snapshot.of(URI, "objects", parts(names, **contents))


def written(root: Path, *snapshots: Snapshot, stack: str = "dev") -> list[str]:
    found = Lock(root)
    found.snapshots |= {(stack, f"data-{number}"): each for number, each in enumerate(snapshots)}
    found.write()
    return (root / "data.lock").read_text().splitlines()


def declared(uri: str = URI) -> Data:
    return Data("data-0", uri, "error", lambda _, message: Problem("", "", message))


def test_a_digest_is_of_names_and_contents() -> None:
    one = snapshot("a", "b")
    other = Snapshot.of(
        URI, "objects", [Part(each.name, 3, {**each.fields, "generation": "2"}) for each in parts("ba")]
    )
    assert one.digest == other.digest
    different = [snapshot("a", "c"), snapshot("a"), snapshot("a", "b", b="BBBB"), snapshot("a", "b", "c")]
    assert len({one.digest, *(each.digest for each in different)}) == 5


def test_an_md5_counts_before_a_crc32c() -> None:
    md5 = {"crc32c": "AAAA", "md5": "x"}
    values = [Part("a", 3, fields).value for fields in (md5, {**md5, "md5": "y"}, {"crc32c": "AAAA"})]
    assert len(set(values)) == 3 and Part("a", 3, {**md5, "crc32c": "B"}).value == values[0]


def test_the_file_reads_back_as_written(tmp_path: Path) -> None:
    one = snapshot("b/ä.csv", "a.csv")
    lines = written(tmp_path, one, snapshot("c"))
    names = [json.loads(line).get("name") or json.loads(line).get("data") for line in lines]
    assert names == [None, "data-0", "a.csv", "b/ä.csv", "data-1", "c"]
    found = Lock(tmp_path).find("dev", declared())
    assert found == one and found.parts == one.parts
    assert written(tmp_path) == lines
    written(tmp_path, snapshot("z"), stack="prod")
    assert Lock(tmp_path).find("dev", declared()) == one


def test_another_uri_is_not_locked(tmp_path: Path) -> None:
    written(tmp_path, snapshot("a"))
    assert Lock(tmp_path).find("dev", declared("gs://acme/other/")) is None
    assert Lock(tmp_path).find("prod", declared()) is None


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (lambda lines: ["<<<<<<< HEAD", *lines], "data.lock:1: is no line of a lock"),
        (lambda lines: [lines[0], "<<<<<<< HEAD", *lines[1:]], "data.lock:2: is no heading of a lock"),
        (lambda lines: [*lines[:3], "=======", *lines[3:]], "data.lock:4: is no line of a lock"),
        (lambda lines: lines[:-1], "data.lock:2: the digest is not that of the 1 lines below it"),
        (lambda lines: [*lines[:3], lines[3].replace('"size": 3', '"size": 4')], "data.lock:2: the digest is not"),
        (lambda lines: [lines[0], lines[1].replace('"digest"', '"digests"')], "data.lock:2: is no line of a lock"),
        (lambda lines: [lines[0], lines[1].replace(": 2,", ": Infinity,")], "data.lock:2: is no line of a lock"),
        (lambda lines: ["[]"], "data.lock:1: is no line of a lock"),
        (lambda lines: ['{"dataLock": 2}'], "data.lock: is of a newer vertex-training (2)"),
    ],
)
def test_a_broken_file_is_told_by_its_line(tmp_path: Path, edit: object, problem: str) -> None:
    lines = written(tmp_path, snapshot("a", "b"))
    (tmp_path / "data.lock").write_text("\n".join(edit(lines)) + "\n")  # type: ignore[operator]
    with pytest.raises(DataLockUnusable) as failure:
        lock.resolve(tmp_path, "dev", {"data-0": declared()})
    assert str(failure.value).startswith(problem) and "\n" not in str(failure.value)


def test_many_objects_are_counted_by_folder(tmp_path: Path) -> None:
    names = [f"shard-{number % 3}/{number % 5}/{number}.csv" for number in range(lock.MAX_OBJECTS + 1)]
    many = snapshot(*names, "top.csv")
    lines = written(tmp_path, many)
    assert len(lines) == 2 + 15 + 1
    first = json.loads(lines[2])
    assert (first["folder"], first["objects"], first["bytes"]) == ("./", 1, 3)
    assert many.summary.keys() == {"uri", "objects", "bytes", "digest"}
    assert Lock(tmp_path).snapshots["dev", "data-0"].parts == many.parts
    assert differences(many, snapshot(*names, "top.csv", "shard-1/2/new.csv")) == "shard-1/2/ changed"
    assert differences(many, snapshot("a")).startswith("changed: 2,002 → 1 object, 3 bytes")


def test_too_many_folders_are_counted_above(tmp_path: Path) -> None:
    deep = [f"{number % 7}/x/{number}/y/z.csv" for number in range(3 * lock.MAX_OBJECTS)]
    lines = written(tmp_path, snapshot(*deep))
    assert [json.loads(line)["folder"] for line in lines[2:]] == [f"{number}/x/" for number in range(7)]
    wide = [f"{number}/a.csv" for number in range(lock.MAX_OBJECTS + 1)]
    assert [json.loads(line)["folder"] for line in written(tmp_path, snapshot(*wide))[2:]] == ["./"]


def test_up_to_200_objects_are_inputs_one_by_one() -> None:
    names = [f"{number}" for number in range(200)]
    assert len(snapshot(*names).summary["contents"]) == 200
    assert "contents" not in snapshot(*names, "one more").summary


def test_differences_have_the_first_names() -> None:
    one, other = snapshot("a", "b", "c"), snapshot("b", "d", "e", "f", b="BBBB")
    assert differences(one, other) == "a removed, b changed, c removed and 3 more"


def test_a_change_is_described_in_one_line() -> None:
    one, other = snapshot("a", "b", "c").summary, snapshot("b", "c", "d", "e", b="BBBB").summary
    assert describe(one, other) == "2 objects added, 1 removed, 1 changed, 12 bytes"
    assert describe(None, other) == "locked now: 4 objects, 12 bytes"
    assert describe(one, None) == "not locked any more"
    assert describe({**one, "uri": "gs://b/"}, other) == f"gs://b/ → {URI}, 4 objects, 12 bytes"
    large = {"uri": URI, "objects": 100_000.0, "bytes": 3.1e9, "digest": "0"}
    assert describe(large, {**large, "objects": 100_012.0}) == "changed: 100,000 → 100,012 objects, 3.1 GB"


def test_the_page_shows_a_file_as_it_is_written(tmp_path: Path) -> None:
    (shown,) = taken("docs/data.md", "output", '{"dataLock"')
    _, heading, *lines = map(json.loads, shown.splitlines())
    found = Lock(tmp_path)
    found.snapshots["dev", heading["data"]] = Snapshot.of(heading["uri"], "objects", map(Part.from_json, lines))
    found.write()
    assert (tmp_path / "data.lock").read_text() == shown
