"""The files of a commit, in a folder beside the repository: what a rehearsal compares with.

It is no worktree of git's: that would write to the repository, where a killed rehearsal leaves it, and run its hooks.
With an index of its own, the files come out through all filters as `git checkout` writes them, and git keeps nothing.

Whoever writes files of the checkout must not choose what git runs. Git takes a folder that has `HEAD`, `objects` and
`refs` for a repository, in whatever checkout it is, and obeys its `config`. So git is told which repository to use: the
`.git` in the folder of a project or above it, which git lets into no commit.
"""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from ..schema.source import checkout
from .runner import RunRefused

_ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_NAMESPACE", "GIT_PREFIX")
"""Variables that name another repository than that of the project; a hook has them."""
_OPTIONS = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "safe.bareRepository=explicit")
"""Git runs what the first two name. By the last, it takes no folder of files for a repository (2.38 and later)."""


class Repository:
    """The git repository that a project's folder `root` is in.

    Raises OSError if git cannot be run, and CalledProcessError if there is no repository, or git does not trust it.
    """

    def __init__(self, root: Path) -> None:
        self.top = checkout(root)
        self.prefix = root.resolve().relative_to(self.top).as_posix()
        # Git looks for one here as ever, and tells whose it must not use; this runs nothing that a repository names.
        found = self._run("rev-parse", "--absolute-git-dir")
        self._options = [f"--git-dir={self.top / '.git'}", f"--work-tree={self.top}"]
        if self.git("rev-parse", "--absolute-git-dir") != found:
            raise subprocess.CalledProcessError(128, "git", stderr=f"{self.top} is no checkout of {found.strip()}")

    def commit(self, ref: str) -> str | None:
        """Return the commit that a ref names, None if there is none."""
        try:
            return self.git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}").strip()
        except subprocess.CalledProcessError:
            return None

    def git(self, *arguments: str, **variables: str) -> str:
        """Return what git says in the top folder, with more variables."""
        return self._run(*self._options, *arguments, variables=variables)

    def _run(self, *arguments: str, variables: Mapping[str, str] | None = None) -> str:
        kept = {name: value for name, value in os.environ.items() if name not in _ELSEWHERE}
        return subprocess.run(
            ["git", *_OPTIONS, *arguments],
            cwd=self.top,
            env={**kept, "GIT_TERMINAL_PROMPT": "0", **(variables or {})},
            capture_output=True,
            text=True,
            errors="replace",
            check=True,
        ).stdout


def commit(root: Path) -> str | None:
    """Return the commit that a project's folder is at; None if there is none, or no repository."""
    try:
        return Repository(root).commit("HEAD")
    except (OSError, subprocess.CalledProcessError):
        return None


def extract(root: Path, ref: str, folder: Path) -> Path:
    """Write the files of a commit to a folder, and return what is there the project's folder `root`.

    Raises RunRefused if `root` is in no repository, if it has no such commit, or if the commit has no project there.
    """
    try:
        repository = Repository(root)
        found = repository.commit(ref)
        if found is None:
            raise RunRefused(f"--base: {ref} names no commit here; `git fetch origin {ref}` if the server has it")
        folder.mkdir()
        # A project may use the files of its checkout, and this is how one is told.
        (folder / ".git").mkdir()
        index = {"GIT_INDEX_FILE": str(folder / ".git" / "index")}
        repository.git("read-tree", found, **index)
        repository.git("checkout-index", "--all", "--force", f"--prefix={folder}/", **index)
        (folder / ".git" / "index").unlink()
    except OSError as error:
        raise RunRefused(f"--base: git cannot be run ({error.strerror}); install it, or use --against") from None
    except subprocess.CalledProcessError as error:
        reason = (error.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise RunRefused(f"--base: git does not give the files of {ref}: {reason}") from None
    project = Path(repository.prefix, "Pulumi.yaml")
    if not (folder / project).is_file():
        raise RunRefused(f"--base: {ref} has no {project}; choose a commit that has this project")
    return folder / repository.prefix
