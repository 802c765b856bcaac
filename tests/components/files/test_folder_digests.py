"""The digest of a context that is remembered as a whole: never another than what its files make."""

import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from vertex_training.files import cached_digests, reproducible_tar_archives, stat_signatures
from vertex_training.files.cached_digests import MAX_UNCACHED_FILES
from vertex_training.images.build_context import BuildContext, DockerfileContext
from vertex_training.images.package_context import PackageContext
from vertex_training.schema.shapes import Package

from tests.components.files.unnoticeable_edits import another_inode, same_size_and_time

Edit = Callable[[Path], object]
FEW_FILES = 20


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(stat_signatures, "STABLE_AFTER_NS", 0)
    monkeypatch.setattr(cached_digests, "MAX_UNCACHED_FILES", FEW_FILES)
    return tmp_path / "cache" / "vertex-training" / "contexts"


@pytest.fixture
def context(tmp_path: Path, cache: Path, request: pytest.FixtureRequest) -> BuildContext:
    """A context that is too large not to be remembered, with a minute on its files."""
    folder = tmp_path / "context"
    (folder / "part").mkdir(parents=True)
    for index in range(getattr(request, "param", FEW_FILES + 10)):
        (folder / "part" / f"{index:03}").write_text(f"held by {index}")
    (folder / "Dockerfile").write_text("FROM scratch\n")
    (folder / ".dockerignore").write_text("*.md\n")
    (folder / "notes.md").touch()
    (folder / "link").symlink_to("part/000")
    for file in folder.rglob("*"):
        os.utime(file, (1_600_000_000, 1_600_000_000), follow_symlinks=False)
    return DockerfileContext(folder, "Dockerfile", {}, None, "linux/amd64")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """One entry for each time that the digests of files were asked for."""
    calls: list[object] = []
    really = cached_digests.get_cached_or_compute_file_digests
    monkeypatch.setattr(
        reproducible_tar_archives,
        "get_cached_or_compute_file_digests",
        lambda *given: calls.append(given) or really(*given),
    )
    return calls


def true_digest(context: BuildContext, scratch: Path) -> str:
    """That of a copy of which nothing is remembered."""
    copy = scratch / f"copy-{len(list(scratch.iterdir()))}"
    pipes = lambda at, names: [name for name in names if stat.S_ISFIFO(Path(at, name).lstat().st_mode)]  # noqa: E731
    shutil.copytree(context.folder, copy, symlinks=True, ignore=pipes)
    return replace(context, folder=copy)._compute_digest()


def test_an_unchanged_context_is_not_read_again(context: BuildContext, asked: list[object]) -> None:
    first = replace(context).digest
    assert len(asked) == 1
    assert replace(context).digest == first == context._compute_digest()
    assert len(asked) == 2, "by the check itself"


@pytest.mark.parametrize("context", [MAX_UNCACHED_FILES + 10], indirect=True)
def test_the_digest_of_a_large_context_is_stable(context: BuildContext) -> None:
    # Another digest would rebuild every image of every user.
    for _ in range(2):
        assert replace(context, build_args={"A": "1"}).tag == "5e4ffa911394cff1"


def swap_files(one: Path, other: Path) -> None:
    between = one.with_name("between")
    one.rename(between)
    other.rename(one)
    between.rename(other)


def replace_file(file: Path, put: Callable[[Path], object]) -> None:
    file.unlink()
    put(file)


EDITS: dict[str, Edit] = {
    "other bytes": lambda folder: (folder / "part/000").write_text("other"),
    "other bytes, of the same size at the same time": lambda folder: same_size_and_time(folder / "part/000"),
    "another file of the same size and time": lambda folder: another_inode(folder / "part/000"),
    "two files that swap their names": lambda folder: swap_files(folder / "part/000", folder / "part/001"),
    "an executable bit": lambda folder: (folder / "part/000").chmod(0o755),
    "a link in place of a file": lambda folder: replace_file(
        folder / "part/000", lambda file: file.symlink_to("../part/001")
    ),
    "a link that leads elsewhere": lambda folder: replace_file(
        folder / "link", lambda file: file.symlink_to("part/001")
    ),
    "a folder in place of a file": lambda folder: replace_file(
        folder / "part/000", lambda file: [file.mkdir(), (file / "below").touch()]
    ),
    "an empty folder in place of a file": lambda folder: replace_file(folder / "part/000", Path.mkdir),
    "a pipe in place of a file": lambda folder: replace_file(folder / "part/000", os.mkfifo),
    "a new file": lambda folder: (folder / "part/new").touch(),
    "a file less": lambda folder: (folder / "part/000").unlink(),
    "another name": lambda folder: (folder / "part/000").rename(folder / "part/other"),
    "another folder": lambda folder: (folder / "part").rename(folder / "parts"),
    "a file that is ignored from now on": lambda folder: (folder / ".dockerignore").write_text("*.md\npart/000\n"),
    "a file that is no longer ignored": lambda folder: (folder / ".dockerignore").write_text(""),
    "an ignore file of the Dockerfile's own": lambda folder: (folder / "Dockerfile.dockerignore").touch(),
    "the Dockerfile": lambda folder: (folder / "Dockerfile").write_text("FROM other\n"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_change_is_detected(context: BuildContext, tmp_path: Path, edit: str) -> None:
    before = replace(context).digest
    assert replace(context).digest == before
    EDITS[edit](context.folder)
    for _ in range(2):
        assert replace(context).digest == true_digest(context, tmp_path) != before


NO_EDITS: dict[str, Edit] = {
    "a time": lambda folder: (folder / "part/000").touch(),
    "an ignored file": lambda folder: (folder / "notes.md").write_text("other"),
    "who may read": lambda folder: (folder / "part/000").chmod(0o600),
    "a file that is written anew": lambda folder: (folder / "part/000").write_text("held by 0"),
    "an empty folder": lambda folder: (folder / "empty").mkdir(),
}


@pytest.mark.parametrize("edit", NO_EDITS)
def test_the_digest_ignores_what_the_image_ignores(context: BuildContext, edit: str) -> None:
    before = replace(context).digest
    NO_EDITS[edit](context.folder)
    for _ in range(2):
        assert replace(context).digest == before


def test_build_options_are_part_of_the_digest(context: BuildContext) -> None:
    (context.folder / "other.Dockerfile").write_text("FROM other\n")
    ways = [
        context,
        replace(context, build_args={"A": "1"}),
        replace(context, build_args={"A": "2"}),
        replace(context, target="slim"),
        replace(context, platform="linux/arm64"),
        replace(context, dockerfile="other.Dockerfile"),
        replace(context, secret_ids=("token",)),
    ]
    first = [replace(way).digest for way in ways]
    assert [replace(way).digest for way in ways] == first == [way._compute_digest() for way in ways]
    assert len({*first}) == len(ways)


def test_the_generated_dockerfile_is_part_of_the_digest(context: BuildContext) -> None:
    package: Package = {"path": ".", "script": "part/000", "baseImage": "one"}
    one = PackageContext(context.folder, "Dockerfile", {}, None, "linux/amd64", package=package)
    other = replace(one, package={**package, "baseImage": "other"})
    for way in (one, other, replace(one, package={**package, "script": "Dockerfile"}), one):
        assert replace(way).digest == replace(way)._compute_digest()
    assert one.digest != other.digest


def test_a_recent_change_prevents_caching(context: BuildContext, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Its next change may bear the same times.
    monkeypatch.setattr(stat_signatures, "STABLE_AFTER_NS", 3600 * 10**9)
    (context.folder / "part/000").write_text("other")
    assert replace(context).digest
    assert not cache.exists()


def test_a_change_during_hashing_prevents_caching(
    context: BuildContext, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = BuildContext._compute_digest

    def digest(self: BuildContext) -> str:
        found = really(self)
        (context.folder / "part/000").write_text("other")
        return found

    # As if the file's own machine had a clock that is behind.
    monkeypatch.setattr(stat_signatures, "STABLE_AFTER_NS", -(10**12))
    monkeypatch.setattr(BuildContext, "_compute_digest", digest)
    before = replace(context).digest
    monkeypatch.setattr(BuildContext, "_compute_digest", really)
    assert not cache.exists()
    assert replace(context).digest == true_digest(context, tmp_path) != before


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "nothing in it": lambda held: b"",
    "its end missing": lambda held: held[:-1],
    "another digit": lambda held: held[:-1] + (b"0" if held[-1:] != b"0" else b"1"),
    "no text": lambda held: bytes(range(256)),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_cache_file_is_ignored(context: BuildContext, cache: Path, damage: str) -> None:
    before = replace(context).digest
    [file] = cache.iterdir()
    whole = file.read_bytes()
    file.write_bytes(DAMAGE[damage](whole))
    assert replace(context).digest == before
    assert file.read_bytes() == whole


def test_without_a_cache_the_digest_is_the_same(
    context: BuildContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    for _ in range(2):
        assert replace(context).digest == true_digest(context, tmp_path)
