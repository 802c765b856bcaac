"""Build contexts: the digest changes with what the image is made of, and with nothing else."""

import os
import random
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from vertex_training.errors import ContextUnusable
from vertex_training.images.context import BuildContext, DockerfileContext

FILES = {"Dockerfile": "FROM scratch\nCOPY . .\n", "train.py": "print(1)\n", "data/a.csv": "1,2\n", "data/deep/b": ""}
Make = Callable[..., BuildContext]


def context(folder: Path, files: dict[str, str] = FILES) -> BuildContext:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return DockerfileContext(folder, "Dockerfile", build_args={}, target=None, platform="linux/amd64")


def copy_context(context: BuildContext) -> BuildContext:
    """The same context, looked at anew."""
    return replace(context)


def members(context: BuildContext) -> dict[str, tarfile.TarInfo]:
    with context.open() as archive, tarfile.open(fileobj=archive) as tar:
        return {member.name: member for member in tar.getmembers()}


def read_archive(context: BuildContext) -> bytes:
    with context.open() as archive:
        return archive.read()


def test_the_digest_does_not_depend_on_the_place(tmp_path: Path) -> None:
    one, other = context(tmp_path / "one"), context(tmp_path / "far" / "other")
    assert one.digest == other.digest
    assert read_archive(one) == read_archive(other)


def test_the_order_of_creation_does_not_matter(tmp_path: Path) -> None:
    names = list(FILES)
    random.Random(7).shuffle(names)
    one, other = context(tmp_path / "one"), context(tmp_path / "other", {name: FILES[name] for name in names})
    assert names != list(FILES)
    assert one.digest == other.digest
    assert read_archive(one) == read_archive(other)


def test_times_do_not_matter(tmp_path: Path) -> None:
    one = context(tmp_path)
    before = read_archive(one)
    for file in tmp_path.rglob("*"):
        os.utime(file, (1_000_000, 1_000_000))
    assert copy_context(one).digest == one.digest
    assert read_archive(copy_context(one)) == before


@pytest.mark.parametrize("umask", [0o077, 0o002, 0o000])
def test_the_umask_does_not_matter(tmp_path: Path, umask: int) -> None:
    one = context(tmp_path / "one")
    previous = os.umask(umask)
    try:
        other = context(tmp_path / "other")
    finally:
        os.umask(previous)
    assert (tmp_path / "one/train.py").stat().st_mode != (tmp_path / "other/train.py").stat().st_mode
    assert one.digest == other.digest
    assert read_archive(one) == read_archive(other)


def test_empty_folders_do_not_matter(tmp_path: Path) -> None:
    one = context(tmp_path)
    before = read_archive(one)
    (tmp_path / "cache" / "deep").mkdir(parents=True)
    assert copy_context(one).digest == one.digest
    assert read_archive(copy_context(one)) == before


def test_hard_links_are_archived_as_files(tmp_path: Path) -> None:
    files = FILES | {"copy.py": FILES["train.py"]}
    copied, linked = context(tmp_path / "copied", files), context(tmp_path / "linked", files)
    (linked.folder / "copy.py").unlink()
    (linked.folder / "copy.py").hardlink_to(linked.folder / "train.py")
    assert linked.digest == copied.digest
    assert read_archive(linked) == read_archive(copied)


def replace_link(link: Path, target: str) -> None:
    link.unlink()
    link.symlink_to(target)


EDITS: dict[str, Callable[[Path], object]] = {
    "bytes": lambda folder: (folder / "train.py").write_text("print(2)\n"),
    "bytes of the same length": lambda folder: (folder / "data/a.csv").write_text("1,3\n"),
    "a new file": lambda folder: (folder / "new.py").touch(),
    "a new empty hidden file": lambda folder: (folder / "data/.keep").touch(),
    "a file less": lambda folder: (folder / "data/deep/b").unlink(),
    "a file's name": lambda folder: (folder / "train.py").rename(folder / "trainer.py"),
    "a file's folder": lambda folder: (folder / "train.py").rename(folder / "data/train.py"),
    "an executable bit": lambda folder: (folder / "train.py").chmod(0o755),
    "line endings": lambda folder: (folder / "train.py").write_bytes(b"print(1)\r\n"),
    "a line's end": lambda folder: (folder / "train.py").write_text("print(1)"),
    "the case of a file's name": lambda folder: (folder / "train.py").rename(folder / "Train.py"),
    "a link's target": lambda folder: replace_link(folder / "link", "data/deep/b"),
    "a file that is no longer ignored": lambda folder: (folder / ".dockerignore").unlink(),
    "the Dockerfile": lambda folder: (folder / "Dockerfile").write_text("FROM scratch\n"),
    "a link in place of a file": lambda folder: replace_link(folder / "data/deep/b", "../a.csv"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_the_digest_changes_with(tmp_path: Path, edit: str) -> None:
    one = context(tmp_path, FILES | {".dockerignore": "notes.md\n.dockerignore\n", "notes.md": "x"})
    (tmp_path / "link").symlink_to("train.py")
    before = one.digest
    EDITS[edit](tmp_path)
    assert copy_context(one).digest != before


NO_EDITS: dict[str, Callable[[Path], object]] = {
    "an ignored file's bytes": lambda folder: (folder / "notes.md").write_text("other"),
    "an ignored file's name": lambda folder: (folder / "notes.md").rename(folder / "other.md"),
    "an ignored folder": lambda folder: [(folder / "build").mkdir(), (folder / "build" / "x").touch()],
    "a comment in an ignored ignore file": lambda folder: (folder / ".dockerignore").write_text(f"# x\n{IGNORING}"),
    "a time": lambda folder: os.utime(folder / "train.py", (1, 1)),
    "a file that is written anew": lambda folder: (folder / "train.py").write_text(FILES["train.py"]),
    "who may read": lambda folder: (folder / "train.py").chmod(0o600),
    "who may read a folder": lambda folder: (folder / "data").chmod(0o700),
    "who else may execute": lambda folder: (folder / "train.py").chmod(0o655),
    "the owner": lambda folder: os.chown(folder / "train.py", *(OTHER_OWNER if os.getuid() == 0 else (-1, -1))),
    "an empty folder": lambda folder: (folder / "empty").mkdir(),
    "what a link leads to, outside": lambda folder: (folder.parent / "outside").write_text("other"),
    "a socket": lambda folder: os.mkfifo(folder / "socket"),
}
IGNORING = "*.md\nbuild\n.dockerignore\n"
OTHER_OWNER = (1234, 1234)


@pytest.mark.parametrize("edit", NO_EDITS)
def test_the_digest_does_not_change_with(tmp_path: Path, edit: str) -> None:
    one = context(tmp_path / "context", FILES | {".dockerignore": IGNORING, "notes.md": "x"})
    (tmp_path / "outside").touch()
    (one.folder / "link").symlink_to("../outside")
    before, sent = one.digest, read_archive(one)
    NO_EDITS[edit](one.folder)
    assert copy_context(one).digest == before
    assert read_archive(copy_context(one)) == sent


def test_the_digest_changes_with_the_names_of_secrets(tmp_path: Path) -> None:
    plain = context(tmp_path)
    names: list[tuple[str, ...]] = [(), ("token",), ("other",), ("other", "token")]
    assert len({replace(plain, secret_ids=ids).digest for ids in names}) == len(names)


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    one = context(tmp_path)
    (tmp_path / "Dockerfile").unlink()
    with pytest.raises(ContextUnusable) as unusable:
        one.digest  # noqa: B018
    assert str(unusable.value).startswith(f"{tmp_path}/Dockerfile cannot be read (No such file or directory): ")


def test_the_digest_changes_with_how_it_is_built(tmp_path: Path) -> None:
    plain = context(tmp_path, FILES | {"Dockerfile.gpu": "FROM gpu\n"})
    others = [
        replace(plain, build_args={"A": "1"}),
        replace(plain, build_args={"A": "2"}),
        replace(plain, build_args={"A": "1", "B": "1"}),
        replace(plain, target="slim"),
        replace(plain, platform="linux/arm64"),
        replace(plain, dockerfile="Dockerfile.gpu"),
    ]
    digests = [context.digest for context in [plain, *others]]
    assert len(set(digests)) == len(digests)


def test_the_order_of_build_args_does_not_matter(tmp_path: Path) -> None:
    plain = context(tmp_path)
    one, other = ({"A": "1", "B": "2"}, {"B": "2", "A": "1"})
    assert replace(plain, build_args=one).digest == replace(plain, build_args=other).digest


def test_swapping_two_files_changes_the_digest(tmp_path: Path) -> None:
    one = context(tmp_path / "one", FILES | {"a": "1", "b": "2"})
    assert one.digest != context(tmp_path / "other", FILES | {"a": "2", "b": "1"}).digest


def test_a_link_is_hashed_by_its_target_path(tmp_path: Path) -> None:
    one = context(tmp_path / "one")
    for name, target in [("link", "train.py"), ("dangling", "nowhere"), ("folder", "data")]:
        (one.folder / name).symlink_to(target)
    assert list(one.digests) == [
        "Dockerfile",
        "dangling",
        "data/a.csv",
        "data/deep/b",
        "folder",
        "link",
        "train.py",
    ]
    digest = one.digests["link"]
    (one.folder / "train.py").write_text("print(2)\n")
    assert copy_context(one).digests["link"] == digest
    replace_link(one.folder / "link", "data/a.csv")
    assert copy_context(one).digests["link"] != digest


def test_a_link_differs_from_a_file(tmp_path: Path) -> None:
    one, other = context(tmp_path / "one"), context(tmp_path / "other", FILES | {"link": "train.py"})
    (one.folder / "link").symlink_to("train.py")
    assert one.digest != other.digest


IGNORE = "# comments and blank lines are skipped\n\n*.md\ndata\n!data/a.csv\n**/__pycache__\n"
IGNORED = {"notes.md": "x", "data/deep/c": "x", "src/__pycache__/a.pyc": "x"}


def test_ignored_files_are_neither_hashed_nor_sent(tmp_path: Path) -> None:
    one = context(tmp_path, FILES | {".dockerignore": IGNORE, "src/a.py": ""})
    expected = [".dockerignore", "Dockerfile", "data/a.csv", "src/a.py", "train.py"]
    assert list(one.digests) == list(members(one)) == expected
    for name in IGNORED:
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text("changed")
    assert copy_context(one).digest == one.digest
    (tmp_path / "data/a.csv").write_text("changed")
    assert copy_context(one).digest != one.digest


def test_links_stay_links_beside_a_dockerignore(tmp_path: Path) -> None:
    one = context(tmp_path, FILES | {".dockerignore": "notes.md\n"})
    (tmp_path / "link").symlink_to("train.py")
    (tmp_path / "folder").symlink_to("data")
    assert {"link", "folder"} <= one.digests.keys()
    assert "folder/a.csv" not in one.digests


def test_the_dockerfile_is_always_sent(tmp_path: Path) -> None:
    assert list(context(tmp_path, FILES | {".dockerignore": "*\n"}).digests) == ["Dockerfile"]


def test_a_dockerfile_s_own_ignore_file_is_used(tmp_path: Path) -> None:
    files = FILES | {"Dockerfile.gpu": "FROM gpu\n", "Dockerfile.gpu.dockerignore": "*.py\n", ".dockerignore": "data\n"}
    general = context(tmp_path, files)
    special = replace(general, dockerfile="Dockerfile.gpu")
    assert "train.py" in general.digests and "data/a.csv" not in general.digests
    assert "train.py" not in special.digests and "data/a.csv" in special.digests


def test_the_archive_has_no_metadata(tmp_path: Path) -> None:
    one = context(tmp_path)
    (tmp_path / "train.py").chmod(0o700)
    (tmp_path / "data/a.csv").chmod(0o604)
    (tmp_path / "link").symlink_to("train.py")
    found = members(one)
    assert list(found) == list(one.digests)
    assert {name: oct(member.mode) for name, member in found.items() if member.isfile()} == {
        "Dockerfile": "0o644",
        "data/a.csv": "0o644",
        "data/deep/b": "0o644",
        "train.py": "0o755",
    }
    for member in found.values():
        assert (member.mtime, member.uid, member.gid, member.uname, member.gname) == (0, 0, 0, "", "")
    assert found["link"].linkname == "train.py"
    with one.open() as archive, tarfile.open(fileobj=archive) as tar:
        held = {name: stream.read() for name in FILES if (stream := tar.extractfile(name))}
    assert held == {name: text.encode() for name, text in FILES.items()}


def test_names_in_any_language_are_hashed_and_sent(tmp_path: Path) -> None:
    one = context(tmp_path, FILES | {"größe und 数.txt": "x"})
    assert "größe und 数.txt" in members(one)


def test_the_tag_is_the_beginning_of_the_digest(tmp_path: Path) -> None:
    one = context(tmp_path)
    assert len(one.digest) == 64
    assert one.tag == one.digest[:16]


def test_the_digest_is_stable_across_versions(tmp_path: Path) -> None:
    # Another digest would rebuild every image of every user.
    (tmp_path / "context").mkdir()
    one = context(tmp_path / "context")
    (one.folder / "train.py").chmod(0o755)
    (one.folder / "link").symlink_to("train.py")
    assert replace(one, build_args={"A": "1"}).tag == "a8457c67c69413bd"
