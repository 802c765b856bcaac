"""gcsfs, unmodified: what pandas, PyArrow, Lightning and others read and write `gs://` with."""

import os
from typing import Any

import pytest
from fsspec.asyn import sync

from tests.vertex_emulator.running import RunningEmulator

pytestmark = pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning")  # of gcsfs itself
LARGE = 11 << 20  # gcsfs sends chunks of 5 MiB at least


@pytest.fixture
def files(in_environment: None) -> Any:
    """A file system that finds the emulator through STORAGE_EMULATOR_HOST."""
    from gcsfs import GCSFileSystem  # which reads the environment when it is imported

    return GCSFileSystem(token="anon", skip_instance_cache=True, use_listings_cache=False)


def test_large_files_are_written_and_read_in_parts(files: Any, emulator: RunningEmulator) -> None:
    content = os.urandom(LARGE)
    with files.open("fs-large/deep/x.bin", "wb", block_size=5 << 20) as file:
        for start in range(0, LARGE, 1 << 20):
            file.write(content[start : start + (1 << 20)])
    assert (emulator.data / "gcs/fs-large/deep/x.bin").read_bytes() == content
    assert files.cat_file("fs-large/deep/x.bin", start=5, end=10) == content[5:10]
    assert files.tail("fs-large/deep/x.bin", 8) == content[-8:]
    with files.open("fs-large/deep/x.bin") as file:
        file.seek(3 << 20)
        assert file.read(5) == content[3 << 20 : (3 << 20) + 5]


def test_folders_are_copied_moved_and_removed(files: Any, emulator: RunningEmulator) -> None:
    files.mkdir("fs-folders")
    files.pipe({f"fs-folders/a/{name}": name.encode() for name in ("1", "b/2", "b/ä ?")})
    files.cp("fs-folders/a", "fs-folders/copy", recursive=True)
    files.mv("fs-folders/copy", "fs-folders/moved", recursive=True)
    files.mv("fs-folders/a/1", "fs-folders/one")
    assert files.find("fs-folders") == [
        f"fs-folders/{name}" for name in ("a/b/2", "a/b/ä ?", "moved/1", "moved/b/2", "moved/b/ä ?", "one")
    ]
    assert files.cat("fs-folders/moved/b/ä ?") == "b/ä ?".encode()
    # For other servers than Google's, gcsfs deletes one by one; this is how it deletes there.
    removed = sync(files.loop, files._rm_files, ["fs-folders/one", "fs-folders/none", "fs-folders/moved/b/ä ?"])
    assert (removed[0], removed[2]) == ("fs-folders/one", "fs-folders/moved/b/ä ?")
    assert "No such object: fs-folders/none" in str(removed[1])
    files.rm("fs-folders", recursive=True)
    assert not (emulator.data / "gcs/fs-folders").exists()


def test_metadata_merges_and_exclusive_creation(files: Any) -> None:
    files.pipe({"fs-more/a.txt": b"a", "fs-more/b.txt": b"b"})
    assert files.setxattrs("fs-more/a.txt", content_type="text/own", epoch="3") == {"epoch": "3"}
    assert (files.getxattr("fs-more/a.txt", "epoch"), files.info("fs-more/a.txt")["contentType"]) == ("3", "text/own")
    files.merge("fs-more/c.txt", ["fs-more/b.txt", "fs-more/a.txt"])
    assert files.cat("fs-more/c.txt") == b"ba"
    with files.open("fs-more/lock", "xb") as file:
        file.write(b"first")
    with pytest.raises(FileExistsError), files.open("fs-more/lock", "xb") as file:
        file.write(b"second")
    assert files.cat("fs-more/lock") == b"first"


def test_an_abandoned_write_leaves_no_object(files: Any) -> None:
    with files.transaction, files.open("fs-transaction/kept", "wb") as file:
        file.write(b"kept")
    with pytest.raises(ZeroDivisionError), files.transaction, files.open("fs-transaction/dropped", "wb") as file:
        file.write(bytes(6 << 20))
        _ = 1 / 0
    assert files.find("fs-transaction") == ["fs-transaction/kept"]
