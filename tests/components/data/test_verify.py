"""Before a job is submitted: one list for each item of data in a run, and what a difference means."""

from pathlib import Path

import pytest
from vertex_training.data import verify as checking
from vertex_training.data.listing import take
from vertex_training.data.lock import Lock
from vertex_training.data.verify import verify
from vertex_training.errors import SubmitFailed

LOCAL = "//local/projects/p/locations/r"


@pytest.fixture
def summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """What a job has of locked files in the current folder, one of which has changed since."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(checking, "_taken", {})
    monkeypatch.setattr(checking, "_warned", set())
    Path("data").mkdir()
    for name in "ab":
        Path("data", f"{name}.csv").write_text(name)
    lock = Lock(tmp_path)
    lock.snapshots["dev", "train"] = take("data/", tmp_path, LOCAL)
    lock.write()
    Path("data/b.csv").write_text("B")
    return dict(lock.snapshots["dev", "train"].summary)


def refusal(summary: dict[str, object], **modes: str) -> str:
    with pytest.raises(SubmitFailed) as failure:
        verify({"train": summary}, modes, LOCAL, "digits: not submitted")
    return str(failure.value)


def test_what_changed_is_named_in_one_line(summary: dict[str, object]) -> None:
    command = "vertex-training data lock train"
    assert refusal(summary) == (
        "digits: not submitted: data.train: data/ is not what data.lock says (b.csv changed); "
        f"run `{command}` to take it as it is; or set data.train.verify to warn"
    )


def test_one_list_serves_all_jobs(summary: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    Path("data/b.csv").write_text("b")
    verify({"train": summary}, {}, LOCAL, "digits: not submitted")
    monkeypatch.setattr(checking, "take", lambda *_: pytest.fail("listed twice"))
    verify({"train": summary, "again": summary}, {}, LOCAL, "other: not submitted")


def test_warn_prints_a_line_once(summary: dict[str, object], capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        verify({"train": summary}, {"train": "warn"}, LOCAL, "digits: not submitted")
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("warning: data.train: data/ is not what data.lock says (b.csv changed)")


def test_off_lists_nothing(summary: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "take", lambda *_: pytest.fail("listed"))
    verify({"train": summary}, {"train": "off"}, LOCAL, "digits: not submitted")


def test_data_that_is_gone_is_refused(summary: dict[str, object]) -> None:
    for name in "ab":
        Path("data", f"{name}.csv").unlink()
    assert "data.train: cannot be compared with data.lock: data/: there is nothing under this URI" in refusal(summary)


def test_a_lock_of_meanwhile_names_nothing(summary: dict[str, object]) -> None:
    Path("data.lock").unlink()
    assert "is not what data.lock says; run" in refusal(summary)
