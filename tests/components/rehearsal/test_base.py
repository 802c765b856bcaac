"""`vertex-training rehearse --base`: the same jobs of another commit, and what this leaves of it: nothing."""

import json
import shutil
from pathlib import Path

import pytest
from vertex_training.rehearsal import checkout
from vertex_training.rehearsal.rehearse import Options, rehearse
from vertex_training.rehearsal.runner import RunRefused
from vertex_training.schema import source

from .declared import WRITE, Write, commit, everything, git, job, left, sized

CHECKED = f"{WRITE}; assert sys.argv[3:] == ['%s'], sys.argv"
REPORT = CHECKED + "; open(p + '/metrics.json', 'w').write('{\"%%s\": %%s}' %% tuple(sys.argv[1:3]))"


def test_jobs_of_a_commit_run_beside(project: Write, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    # Neither the size nor the var is in the base, which has arguments of its own.
    project("  train: " + sized(job(REPORT % "old", "loss", "${vars.code}"), args=["old"]))
    commit()
    (tmp_path / "token").write_text("x")
    Path("jobs.yaml").write_text(
        "vars: {code: 0, lr: 1}\ncustomJobs:\n"
        "  train: "
        + sized(
            job(REPORT % "new", "accuracy", "${vars.code}", env="${secrets.token}"),
            vars={"code": 3, "lr": 2},
            args=["new"],
        )
        + "  made: "
        + job("pass", "${vars.lr}")
    )
    before = everything(Path.cwd())
    options = Options(stack="dev", base="HEAD", secret=["token=@../token"], save=tmp_path / "saved.json")
    assert rehearse(options) == 0
    shown, said = capfd.readouterr()
    saved = json.loads((tmp_path / "saved.json").read_text())
    made, train = saved["jobs"]
    assert saved["base"] == "HEAD" and "base" not in made
    assert train["metrics"] == {"accuracy": 3} and train["base"]["metrics"] == {"loss": 3}
    assert (train["missingMetrics"], train["newEnv"]) == (["loss"], ["T"])
    assert "accuracy 3, loss is missing" in shown and "HEAD: train: succeeded" in said
    assert everything(Path.cwd()) == before
    assert left(tmp_path) == []


def test_a_broken_base_fails_nothing(project: Write, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    project("  train: {}\n")
    commit()
    project("  train: " + job("pass"))
    assert rehearse(Options(base="HEAD")) == 0
    shown, said = capfd.readouterr()
    assert "HEAD: there is nothing to compare with: " in said and "train  succeeded" in shown
    assert left(tmp_path) == []


def test_a_commit_is_written_as_git_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "repository" / "a"
    project.mkdir(parents=True)
    monkeypatch.chdir(project.parent)
    (project / "Pulumi.yaml").write_text("name: a\n")
    (project / "run.sh").touch(0o755)
    (project / "hidden").write_text("x")
    (project / "link").symlink_to("run.sh")
    (project / "lines").write_text("x\n")
    (project.parent / ".gitattributes").write_text("hidden export-ignore\nlines eol=crlf\n")
    git("init", "-q")
    (hook := project.parent / ".git" / "hooks" / "post-checkout").parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch ran; exit 1\n")
    hook.chmod(0o755)
    (project / "submodule").mkdir()
    git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},a/submodule")
    commit()
    (project / "Pulumi.yaml").write_text("name: b\n")
    git("add", "-A")
    before = everything(Path.cwd())
    root = checkout.extract(project, "HEAD", tmp_path / "base")
    assert root == tmp_path / "base" / "a"
    assert source.checkout(root) == root.parent and (root / "lines").read_bytes() == b"x\r\n"
    assert [*(root / "submodule").iterdir()] == []
    assert (root / "Pulumi.yaml").read_text() == "name: a\n" and (root / "hidden").read_text() == "x"
    assert (root / "run.sh").stat().st_mode & 0o111 and (root / "link").is_symlink()
    assert everything(Path.cwd()) == before


@pytest.mark.parametrize(
    ("ref", "message"),
    [
        ("nowhere", "--base: nowhere names no commit here; `git fetch origin nowhere` if the server has it"),
        ("--all", "--base: --all names no commit here"),
        ("first", "--base: first has no a/Pulumi.yaml; choose a commit that has this project"),
    ],
)
def test_a_ref_that_cannot_be_used(ref: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "repository" / "a").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "repository")
    Path("x").touch()
    commit()
    git("tag", "first")
    with pytest.raises(RunRefused) as refusal:
        checkout.extract(Path.cwd() / "a", ref, tmp_path / "base")
    assert str(refusal.value).startswith(message)


def test_a_base_needs_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(RunRefused, match=r"^--base: git does not give the files of main: fatal: not a git repository"):
        checkout.extract(tmp_path, "main", tmp_path / "base")


def embedded(project: Path, ran: Path, config: str) -> None:
    """Commit files without code to a project's folder that git takes for a repository, with a command."""
    smudged = project / "smudged"
    smudged.mkdir()
    git("init", "-q", "--initial-branch=main", str(smudged))
    (smudged / ".gitattributes").write_text("* filter=x\n")
    (smudged / "Pulumi.yaml").write_text("name: theirs\n")
    git("-C", str(smudged), "add", "-A")
    git("-C", str(smudged), "commit", "-qm", "theirs")
    for each in ("HEAD", "objects", "refs"):
        (smudged / ".git" / each).rename(project / each)
    shutil.rmtree(smudged)
    command = f"touch {ran}; cat"
    (project / "config").write_text(config.replace("COMMAND", command))
    git("add", "-A", "-f")
    git("commit", "-qm", "a pull request")


@pytest.mark.parametrize(
    "config",
    [
        '[core]\nrepositoryformatversion = 0\nbare = false\nworktree = .\n[filter "x"]\nsmudge = "COMMAND"\n',
        '[core]\nrepositoryformatversion = 0\nbare = false\nworktree = .\nfsmonitor = "COMMAND"\n',
    ],
)
@pytest.mark.parametrize("is_linked", [False, True])
def test_files_that_look_like_a_repository_run_nothing(
    config: str, is_linked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project := tmp_path / "repository" / "a").mkdir(parents=True)
    monkeypatch.chdir(project.parent)
    (project / "Pulumi.yaml").write_text("name: ours\n")
    commit()
    embedded(project, ran := tmp_path / "ran", config)
    if is_linked:  # where `.git` is a file
        git("worktree", "add", "-q", str(tmp_path / "worktree"))
        project = tmp_path / "worktree" / "a"
    monkeypatch.setenv("GIT_DIR", str(project))  # as a hook of another repository has it
    theirs = git("-C", str(project), "rev-parse", "HEAD").strip()
    monkeypatch.delenv("GIT_DIR")
    monkeypatch.setenv("GIT_INDEX_FILE", str(project / "index"))
    ours = git("rev-parse", "HEAD").strip()
    root = checkout.extract(project, "HEAD", tmp_path / "base")
    assert not ran.exists()
    assert (root / "Pulumi.yaml").read_text() == "name: ours\n"
    assert ours != theirs and (checkout.commit(project), checkout.commit(root)) == (ours, None)


def test_git_judges_whose_repository_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Pulumi.yaml").touch()
    monkeypatch.chdir(tmp_path)
    commit()
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    assert checkout.commit(tmp_path) is None
    with pytest.raises(RunRefused, match=r"dubious|safe\.directory"):
        checkout.extract(tmp_path, "HEAD", tmp_path / "base")
