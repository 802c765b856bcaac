"""Archives of strangers against `vertex-emulator import`: what they cost, and what they leave."""

import gzip
import io
import json
import os
import re
import stat
import struct
import subprocess
import sys
import tarfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.vertex_emulator.jobs import tuning_job_spec
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.errors import EmulatorError, SnapshotInvalid
from vertex_emulator.snapshots.archive import Manifest
from vertex_emulator.snapshots.export import export
from vertex_emulator.snapshots.restore import restore

MIB = 1 << 20
MAX_PROCESSOR_SECONDS, MAX_RESIDENT_BYTES, MAX_ADDRESS_BYTES = 20.0, 256 * MIB, 768 * MIB
END = bytes(tarfile.RECORDSIZE)
TIME = {"mtime": "1.000000000"}


def padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % tarfile.BLOCKSIZE)


def block(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0, link: str = "", **fields: object) -> bytes:
    """The plain header of a member."""
    member = tarfile.TarInfo(name)
    member.type, member.size, member.linkname = kind, size, link
    for field, value in fields.items():
        setattr(member, field, value)
    return member.tobuf(tarfile.GNU_FORMAT)


def with_byte(header: bytes, place: int, value: bytes) -> bytes:
    """A header with other bytes at a place, and the checksum that it then has."""
    changed = header[:place] + value + header[place + len(value) :]
    changed = changed[:148] + b" " * 8 + changed[156:]
    return changed[:148] + b"%06o\0 " % sum(changed) + changed[156:]


def record(key: str, value: str) -> bytes:
    """A line of an extended header."""
    rest = f" {key}={value}\n".encode()
    size = len(rest) + 1
    while len(str(size)) + len(rest) != size:
        size += 1
    return str(size).encode() + rest


def extended(text: bytes, kind: bytes = tarfile.XHDTYPE) -> bytes:
    """An extended header."""
    return block("x", kind, len(text)) + padded(text)


def member(name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = "", **fields: object) -> bytes:
    """A member as an export writes it, whatever its fields are."""
    texts = b"".join(record(key, value) for key, value in {"path": name, "linkpath": link, **TIME}.items())
    return extended(texts) + block("shown", kind, len(content), **fields) + padded(content)


def manifest(files: int = 1, size: int = 0) -> bytes:
    content = Manifest(files, size).dump()
    return block("manifest.json", size=len(content)) + padded(content)


def old_sparse_headers() -> Iterable[bytes]:
    """A header of GNU tar's old sparse format, continued by a million more."""
    yield manifest()
    yield with_byte(with_byte(block("gcs/models/x", tarfile.GNUTYPE_SPARSE), 482, b"\1"), 386, b"0" * 24)
    following = (b"0" * 24 * 21 + b"\1").ljust(512, b"\0") * 2048
    yield from (following for _ in range(450))


def sparse_map() -> Iterable[bytes]:
    """A map of pax 1.0 with ten million entries."""
    entries = 10**7
    size = 4 * entries
    yield manifest(1, size)
    keys = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "x", "GNU.sparse.realsize": "1"}
    yield extended(b"".join(record(key, value) for key, value in keys.items()))
    yield block("gcs/models/x", size=size)
    yield b"%d\n" % entries
    part = b"0\n0\n" * (1 << 16)
    yield from (part for _ in range(size >> 18))


def lines(name: str, line: bytes, count: int) -> Iterable[bytes]:
    """A file of equal lines."""
    size = len(line) * count
    yield manifest(1, size)
    yield block(name, size=size)
    at_once = max(1, MIB // len(line))
    part = line * at_once
    yield from (part for _ in range(count // at_once))
    yield line * (count % at_once) + bytes(-size % tarfile.BLOCKSIZE)
    yield END


JOB = {
    "sequence": 1,
    "id": "1",
    "collection": "hyperparameterTuningJobs",
    "project": "p",
    "number": "1",
    "region": "us-central1",
    "spec": "{}",
    "state": "JOB_STATE_SUCCEEDED",
    "created": 1,
    "updated": 1,
    "started": 1,
    "ended": 2,
    "ending": None,
    "study": None,
    "trial": None,
    "slots": 1,
    "replica_outcomes": "[]",
    "restarts": "{}",
    "fault": None,
    "served": None,
}


def job_line(**columns: object) -> bytes:
    return json.dumps({**JOB, **columns}).encode() + b"\n"


def study_of_many_trials() -> Iterable[bytes]:
    """A study with 100,000 trials, the last of which has not ended."""
    trial = {"study": "1", "state": "SUCCEEDED", "parameters": '{"x": 1}', "job": "2", "started": 1, "ended": 2}
    trial |= {"measurements": "[]", "final": None, "infeasible_reason": "y" * 500}
    count = 100_000
    jobs = job_line(spec=json.dumps(tuning_job_spec()))
    trials = b"".join(
        json.dumps({**trial, "number": n, "state": "SUCCEEDED" if n < count - 1 else "ACTIVE"}).encode() + b"\n"
        for n in range(count)
    )
    yield manifest(2, len(jobs) + len(trials))
    for name, text in (("jobs", jobs), ("trials", trials)):
        yield block(f"database/{name}.jsonl", size=len(text)) + padded(text)
    yield END


def compressed(path: Path, parts: Iterable[bytes]) -> Path:
    """Write a gzip file; a part that is the one before once more is not compressed again."""
    checksum = size = 0
    last, block = None, b""
    with path.open("wb") as file:
        file.write(b"\x1f\x8b\x08" + bytes(6) + b"\xff")
        for part in parts:
            if part is not last:
                deflate = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)
                last, block = part, deflate.compress(part) + deflate.flush(zlib.Z_FULL_FLUSH)
            file.write(block)
            checksum, size = zlib.crc32(part, checksum), size + len(part)
        file.write(zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS).flush())
        file.write(struct.pack("<LL", checksum, size % (1 << 32)))
    return path


def empty_gzip_members(path: Path) -> Path:
    """A million gzip members without content, before one with some."""
    path.write_bytes(gzip.compress(b"", mtime=0) * 10**6 + gzip.compress(manifest() + END))
    return path


def endless_gzip_name(path: Path) -> Path:
    """A gzip header whose file name has 100 MiB."""
    path.write_bytes(b"\x1f\x8b\x08\x08" + bytes(6) + b"x" * (100 * MIB))
    return path


HUGE = b"\x80" + bytes(3) + b"\x7f" + bytes(7)
COSTLY: dict[str, tuple[Callable[[], Iterable[bytes]], str]] = {
    "sparse headers of old GNU tar": (old_sparse_headers, "no file, folder or symbolic link"),
    "a sparse map of pax 1.0": (sparse_map, "GNU.sparse.major"),
    "2,000 chained headers": (lambda: [manifest(), extended(record("path", "x")) * 2000], "no file, folder or"),
    "chained global headers": (lambda: [manifest(), extended(record("path", "x"), b"g") * 2000], "no file, folder or"),
    "a chain of long names": (lambda: [manifest(), extended(b"x" * 99, b"L") * 2000], "no file, folder or"),
    "a header of 512 MiB": (
        lambda: [manifest(), block("x", b"x", 512 * MIB), *[bytes(MIB)] * 512],
        "it has 536870912 bytes",
    ),
    "a header of 2^63 bytes": (
        lambda: [manifest(), with_byte(block("x", b"x"), 124, HUGE), *[bytes(MIB)] * 64],
        "a header is not valid: it has",
    ),
    "a header of a million fields": (
        lambda: [manifest(), extended(record("path", "x") * 10**6)],
        "a header is not valid: it has",
    ),
    "an object beyond its manifest": (
        lambda: [manifest(1, 1), block("gcs/models/x", size=1 << 30), *[bytes(MIB)] * 1024],
        "not the files that",
    ),
    "more members than the manifest says": (
        lambda: [manifest(1), member("gcs/models", kind=b"5") * 300_000, END],
        "not the files that",
    ),
    "a GiB of zeros behind the end": (lambda: [manifest(0), *[bytes(MIB)] * 1024], "something follows its last file"),
    "a manifest of 1 GiB": (lambda: [block("manifest.json", size=1 << 30), *[bytes(MIB)] * 1024], "does not begin"),
    "a line without end": (lambda: lines("database/jobs.jsonl", b" " * MIB, 1024), "more than 64 MiB"),
    "a line of twenty million lists": (lambda: lines("database/jobs.jsonl", b"[]," * MIB, 20), "more than 1000000"),
    "a column of ten million lists": (
        lambda: lines("database/jobs.jsonl", job_line(spec="[" + "[]," * 10**7 + "[]]"), 1),
        "more than 1000000 values",
    ),
    "metadata of ten million objects": (
        lambda: lines("objects.jsonl", b'{"fields": [' + b"{}," * 10**7 + b"{}]}\n", 1),
        "more than 1000000 values",
    ),
    "a line of a string without end": (
        lambda: lines("database/jobs.jsonl", b"[" * 10**6 + b'"' + b'\\"' * 10**7 + b"," * 10**6, 1),
        "is damaged: ",
    ),
    "a line that nests a million deep": (lambda: lines("objects.jsonl", b"[" * 999_999, 1), "RecursionError"),
    "a study of 100,000 trials": (study_of_many_trials, "a trial of the job 1 of the archive has not ended"),
}
FILES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "a million empty gzip members": (empty_gzip_members, "something follows its end"),
    "a gzip header without end": (endless_gzip_name, "it ends too early"),
}


IN_LIMITS = f"""
import re, resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, ({MAX_ADDRESS_BYTES}, {MAX_ADDRESS_BYTES}))
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
from vertex_emulator.cli.main import main
code = main()
# Not `ru_maxrss`, which begins with the memory of the process that has started this one.
peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]
print(peak)
sys.exit(code)
"""


def imported_in_limits(archive: Path, data: Path) -> tuple[int, str, float, int]:
    """Exit code, stderr, processor time (s) and resident memory (bytes) of an import by the command."""
    errors, output = data.with_suffix(".stderr"), data.with_suffix(".stdout")
    with errors.open("w") as error_file, output.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", IN_LIMITS, "import", str(archive), "--data", str(data)],
            stdout=file,
            stderr=error_file,
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    peak = int(output.read_text().split()[-1]) << 10
    return process.returncode, errors.read_text(), used.ru_utime + used.ru_stime, peak


@pytest.mark.parametrize("attack", [*COSTLY, *FILES])
def test_a_costly_archive_is_refused_cheaply(tmp_path: Path, attack: str) -> None:
    path = tmp_path / "hostile.tar.gz"
    if attack in FILES:
        write, reason = FILES[attack]
        write(path)
    else:
        parts, reason = COSTLY[attack]
        compressed(path, parts())
    code, errors, seconds, memory = imported_in_limits(path, tmp_path / "data")
    *progress, error = errors.splitlines()
    assert (code, reason in error) == (1, True), errors[-2000:]
    assert {each.rpartition(" ")[0] for each in progress} <= {"vertex-emulator: unpacking the archive:"}
    assert error.startswith("vertex-emulator: ") and len(error) < 2000
    assert seconds < MAX_PROCESSOR_SECONDS
    assert memory < MAX_RESIDENT_BYTES
    assert not (tmp_path / "data" / "import.partial").exists()


def imported(tmp_path: Path, *members: bytes, files: int | None = None, size: int = 0) -> DataFolder:
    """A data folder from an archive of members."""
    path = compressed(tmp_path / "x.tar.gz", [manifest(len(members) if files is None else files, size), *members, END])
    restore(tmp_path / "other", path, None)
    return DataFolder(tmp_path / "other")


FOLDER, LINK = tarfile.DIRTYPE, tarfile.SYMTYPE
BUCKET = member("gcs/models", kind=FOLDER)


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ([block("gcs/models/x", tarfile.LNKTYPE, link="../../token")], "no file, folder or symbolic link"),
        ([block("gcs/models/x", tarfile.CHRTYPE, devmajor=1, devminor=3)], "no file, folder or symbolic link"),
        ([block("gcs/models/x", tarfile.BLKTYPE, devmajor=8)], "no file, folder or symbolic link"),
        ([block("gcs/models/x", tarfile.FIFOTYPE)], "no file, folder or symbolic link"),
        ([block("gcs/models/x", tarfile.CONTTYPE)], "no file, folder or symbolic link"),
        ([block("gcs/models/x", tarfile.AREGTYPE)], "no file, folder or symbolic link"),
        ([block("gcs/models/x", b"\xff")], "no file, folder or symbolic link"),
        ([member("gcs/models/../../../escaped")], "not a valid folder name"),
        ([member("gcs/models//escaped")], "empty part"),
        ([member("gcs/models/./escaped")], "not a valid folder name"),
        ([member("gcs/models/esc\0aped")], "not a valid folder name"),
        ([member("gcs/../escaped")], "names no bucket"),
        ([member("gcs/Models/x")], "names no bucket"),
        ([member("/etc/escaped")], "no export writes"),
        ([member("C:\\escaped")], "no export writes"),
        ([member("./gcs/models/escaped")], "no export writes"),
        ([member("gcs/models/" + "x" * 256)], "more than a file name can have"),
        ([member("gcs/models/" + "x/" * 101 + "x")], "more than 100 parts"),
        ([member("gcs/models/x", kind=LINK, link="../../token")], "a link out of its bucket"),
        ([member("gcs/models/x", kind=LINK, link="\0")], "a link out of its bucket"),
        ([member("gcs/models/x", kind=LINK, link="x" * 4096)], "File name too long"),
        ([member("gcs/models/x", b"y", kind=LINK, link="z")], "the size is 1"),
        ([member("gcs/models", b"y", kind=FOLDER)], "the size is 1"),
        ([member("gcs/models/x", kind=LINK, link="run"), member("gcs/models/x/y")], "symbolic link"),
        ([member("gcs/models/x"), member("gcs/models/x/y")], "cannot be a folder"),
        ([member("gcs/models/x"), member("gcs/models/x")], "twice"),
        ([BUCKET, BUCKET], "twice"),
        ([BUCKET, member("gcs/models/", kind=FOLDER)], "twice"),
        ([member("gcs/models/x"), member("gcs/models/x", kind=LINK, link="y")], "twice"),
        ([member("gcs/models/x", kind=LINK, link="y"), member("gcs/models/x")], "symbolic link"),
        ([member("gcs/models/x", kind=FOLDER), member("gcs/models/x")], "twice"),
        ([block("database/operations.jsonl")] * 2, "twice"),
        ([block("objects.jsonl")] * 2, "twice"),
        ([block("logs/1/workerpool0-0.0.jsonl")] * 2, "twice"),
        ([with_byte(block("gcs/models/x"), 124, b"\xff" * 12)], "the size is -1"),
        ([with_byte(block("gcs/models/x"), 124, b"12 34 56\0\0\0\0")], "a header is not valid|invalid header"),
        ([with_byte(block("gcs/models/x"), 0, b"gcs/models/\xff")], "a header is not valid"),
        ([block("gcs/models/x")[:-1] + b"\1"], "bad checksum"),
        ([extended(record("path", "a") * 2) + block("x")], "no export writes"),
        ([extended(record("size", "1e3")) + block("x")], "the size is '1e3'"),
        ([extended(record("size", "9" * 30)) + block("x")], "the size is '9999"),
        ([extended(record("size", "9" * 19)) + block("gcs/models/x")], "not the files that"),
        ([extended(b"99999 path=x\n") + block("x")], "no export writes"),
        ([extended(b"1 path=x\n") + block("x")], "no export writes"),
        ([extended(b"9 path=\xff\n") + block("x")], "a header is not valid"),
        ([extended(record("hdrcharset", "BINARY")) + block("x")], "no export writes"),
        ([extended(record("path", "gcs/models/x"))], "no file, folder or symbolic link"),
        ([extended(record("mtime", "1.000000000")) + extended(record("path", "a")) + block("x")], "no file, folder or"),
        ([block("gcs/models/x")], "no time in nanoseconds"),
        ([extended(record("mtime", "9" * 99 + ".000000000")) + block("gcs/models/x")], "no time in nanoseconds"),
    ],
)
def test_a_malformed_member_changes_nothing(tmp_path: Path, members: list[bytes], reason: str) -> None:
    with pytest.raises(EmulatorError, match=reason) as caught:
        imported(tmp_path, *members)
    assert str(caught.value).isprintable()
    assert not list(tmp_path.rglob("*escaped*")) and not Path("/etc/escaped").exists()
    assert not any((tmp_path / "other" / "gcs").iterdir())
    assert not (tmp_path / "other" / "import.partial").exists()


@pytest.mark.parametrize(
    "text",
    [
        b"[]",
        b"null",
        b'{"format": 2}',
        b'{"format": true, "database_schema": 9, "files": 0, "size": 0, "emulator_version": "1"}',
        b'{"format": 1e999, "database_schema": 9, "files": 0, "size": 0, "emulator_version": "1"}',
        b'{"format": ' + b"[" * 30_000 + b"]" * 30_000 + b"}",
        b'{"format": ' + b"9" * 60_000 + b"}",
    ],
)
def test_malformed_manifests_are_refused(tmp_path: Path, text: bytes) -> None:
    path = compressed(tmp_path / "x.tar.gz", [block("manifest.json", size=len(text)), padded(text), END])
    with pytest.raises(SnapshotInvalid, match=r"its manifest\.json is not valid"):
        restore(tmp_path / "other", path, None)


@pytest.mark.parametrize(("field", "number"), [("files", -1), ("files", 10**30), ("size", -1), ("size", 1 << 63)])
def test_a_manifest_has_possible_numbers(tmp_path: Path, field: str, number: int) -> None:
    text = json.dumps({**json.loads(Manifest(0, 0).dump()), field: number}).encode()
    path = compressed(tmp_path / "x.tar.gz", [block("manifest.json", size=len(text)), padded(text), END])
    with pytest.raises(SnapshotInvalid, match=r"its manifest\.json is not valid"):
        restore(tmp_path / "other", path, None)


def test_modes_and_owners_of_members_are_ignored(tmp_path: Path) -> None:
    fields = {"mode": 0o6777, "uid": 65534, "gid": 65534, "uname": "nobody", "gname": "nogroup"}
    data = imported(
        tmp_path,
        member("gcs/models", kind=FOLDER, **fields),
        member("gcs/models/setuid", b"#!/bin/sh", **fields),
        size=9,
    )
    for path, mode in ((data.buckets / "models", 0o777), (data.buckets / "models" / "setuid", 0o666)):
        found = path.stat()
        assert (stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid) == (mode, os.geteuid(), os.getegid())


def test_similar_names_stay_apart(tmp_path: Path) -> None:
    """On Linux; where a file system takes them for one, the second is refused as a double."""
    texts = {"Caf\u00e9": b"1", "Cafe\u0301": b"2", "caf\u00e9": b"3", "\ufb01le": b"4", "file": b"5"}
    data = imported(tmp_path, BUCKET, *(member(f"gcs/models/{name}", text) for name, text in texts.items()), size=5)
    assert {path.name: path.read_bytes() for path in (data.buckets / "models").iterdir()} == texts


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An archive of a bucket with an object of random bytes, an empty one, a folder and a link."""
    bucket = DataFolder.open(tmp_path / "data").buckets / "models"
    (bucket / "folder").mkdir(parents=True)
    (bucket / "weights").write_bytes(os.urandom(20_000))
    (bucket / "empty").touch()
    (bucket / "folder" / "link").symlink_to("../weights")
    path = tmp_path / "x.tar.gz"
    list(export(tmp_path / "data", path, redacts_env=False))
    return path


def test_cut_archives_are_refused(archive: Path, tmp_path: Path) -> None:
    whole = archive.read_bytes()
    for size in [*range(0, len(whole), 997), *range(len(whole) - 12, len(whole))]:
        (tmp_path / "cut.tar.gz").write_bytes(whole[:size])
        with pytest.raises(SnapshotInvalid, match=r"cut\.tar\.gz"):
            restore(tmp_path / "other", tmp_path / "cut.tar.gz", None)
    content = gzip.decompress(whole)
    for size in range(0, len(content) - tarfile.RECORDSIZE, 512):
        compressed(tmp_path / "cut.tar.gz", [content[:size]])
        with pytest.raises(SnapshotInvalid, match=r"cut\.tar\.gz"):
            restore(tmp_path / "other", tmp_path / "cut.tar.gz", None)
    assert not any((tmp_path / "other" / "gcs").iterdir())


def test_a_changed_byte_is_found(archive: Path, tmp_path: Path) -> None:
    whole = archive.read_bytes()
    for place in range(10, len(whole), 499):
        changed = whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :]
        (tmp_path / "changed.tar.gz").write_bytes(changed)
        with pytest.raises(EmulatorError):
            restore(tmp_path / "other", tmp_path / "changed.tar.gz", None)


@pytest.mark.parametrize(
    "change",
    [
        lambda whole: whole + b"\0",
        lambda whole: whole + whole,
        lambda whole: whole + gzip.compress(b"more"),
        lambda whole: gzip.compress(gzip.decompress(whole) + b"more"),
        lambda whole: gzip.compress(gzip.decompress(whole) + bytes(1 << 20)),
        lambda whole: gzip.compress(gzip.decompress(whole).rstrip(b"\0")),
        lambda whole: gzip.compress(gzip.decompress(whole)[:30_000]) + gzip.compress(gzip.decompress(whole)[30_000:]),
        lambda whole: gzip.compress(whole),
        lambda whole: zlib.compress(gzip.decompress(whole)),
        gzip.decompress,
    ],
)
def test_a_repacked_archive_is_refused(archive: Path, tmp_path: Path, change: Callable[[bytes], bytes]) -> None:
    archive.write_bytes(change(archive.read_bytes()))
    with pytest.raises(SnapshotInvalid, match=r"x\.tar\.gz"):
        restore(tmp_path / "other", archive, None)
    assert not any((tmp_path / "other" / "gcs").iterdir())


def test_terminals_get_no_control_characters(tmp_path: Path) -> None:
    name = "gcs/models/\x1b]0;title\x07\u202e\n/../x"
    with pytest.raises(SnapshotInvalid, match=re.escape(r"\x1b]0;title\x07\u202e\n")) as caught:
        imported(tmp_path, member(name))
    assert str(caught.value).isprintable()


def test_long_names_and_links_come_back(tmp_path: Path) -> None:
    bucket = DataFolder.open(tmp_path / "data").buckets / ("b" * 222)
    folder = bucket.joinpath(*["\u00e9" * 100] * 5)
    folder.mkdir(parents=True)
    (folder / "file").write_text("42")
    (bucket / "link").symlink_to("./" * 2000 + "\u00e9")
    list(export(tmp_path / "data", tmp_path / "x.tar.gz", redacts_env=False))
    restore(tmp_path / "other", tmp_path / "x.tar.gz", None)
    other = tmp_path / "other" / "gcs" / bucket.name
    assert (other / folder.relative_to(bucket) / "file").read_text() == "42"
    assert (other / "link").readlink() == Path("./" * 2000 + "\u00e9")
    assert io.BytesIO((tmp_path / "x.tar.gz").read_bytes()).read(2) == b"\x1f\x8b"
