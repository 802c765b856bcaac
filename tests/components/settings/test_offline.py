"""Files of a checkout that are links out of it, or of no end, for every reader that needs no engine."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from vertex_training import trees
from vertex_training.data.lock import Lock
from vertex_training.errors import DataLockUnusable
from vertex_training.rehearsal.runner import Source
from vertex_training.schema.source import SourceFile
from vertex_training.settings.offline import NoStack, read_stack
from vertex_training.settings.settings import Settings

LINKS = ("/dev/zero", "/proc/self/environ", "../key.yaml")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project in a checkout, beside a file of the machine."""
    (tmp_path / "key.yaml").write_text("customJobs: {canary: {}}\n")
    (root := tmp_path / "checkout" / ".git").mkdir(parents=True)
    (root.parent / "Pulumi.yaml").write_text("name: a\n")
    (root.parent / "Pulumi.local.yaml").write_text("config: {vertex-training:target: local}\n")
    return root.parent


def replaced(root: Path, name: str, target: str) -> Path:
    """A file of a project as a link."""
    (root / name).unlink(missing_ok=True)
    (root / name).symlink_to(target)
    return root


@pytest.mark.parametrize("target", LINKS)
@pytest.mark.parametrize(
    ("name", "read", "refusal"),
    [
        ("Pulumi.yaml", lambda root: read_stack(root, None, "local"), NoStack),
        ("Pulumi.local.yaml", lambda root: read_stack(root, None, "local"), NoStack),
        ("data.lock", Lock, DataLockUnusable),
    ],
)
def test_no_reader_follows_links_out(
    name: str, read: Callable[[Path], object], refusal: type[Exception], target: str, root: Path
) -> None:
    with pytest.raises(refusal, match=r"is a link that leads out of |there is no Pulumi.yaml"):
        read(replaced(root, name, target))


@pytest.mark.parametrize("target", LINKS)
def test_lines_of_no_other_file_are_told(target: str, root: Path) -> None:
    source, content, problems = SourceFile.read(replaced(root, "jobs.yaml", target) / "jobs.yaml", "jobs.yaml", root)
    assert (source.content, content) == (b"", {}) and "is a link that leads out of" in problems[0].message
    (root / "stacks").mkdir()
    replaced(root, "stacks/Pulumi.local.yaml", target)
    Settings.load_from_config("a", "local", root, {"vertex-training:target": "local"})
    found = Source(read_stack(root, "local", "local"), {})
    assert [*found._declaring("canary", ())] == []


def test_folders_of_stacks_are_in_the_checkout(root: Path) -> None:
    (root.parent / "outside").mkdir()
    (root.parent / "outside" / "Pulumi.local.yaml").write_text("config: {vertex-training:target: local}\n")
    (root / "Pulumi.yaml").write_text("name: a\nstackConfigDir: ../outside\n")
    with pytest.raises(NoStack, match=f'^{re.escape(str(root))}/Pulumi.yaml: stackConfigDir: "../outside" leads out'):
        read_stack(root, None, "local")


def test_a_text_without_an_end_is_refused(root: Path) -> None:
    with (root / "Pulumi.local.yaml").open("wb") as file:
        file.truncate(trees.MAX_TEXT_BYTES + 1)
    with pytest.raises(NoStack, match=r"Pulumi.local.yaml cannot be read \(has more than 64 MiB\)"):
        read_stack(root, None, "local")


def test_a_key_that_is_there_twice_is_refused(root: Path) -> None:
    (root / "Pulumi.local.yaml").write_text("config:\n  vertex-training:target: local\n  vertex-training:target: gcp\n")
    with pytest.raises(NoStack, match=r'\("vertex-training:target" is there twice, lines 2 and 3\); correct it$'):
        read_stack(root, "local", "local")
