"""The files of a commit, in a folder beside the repository: what a rehearsal compares with.

It is no worktree of git's: that would write to the repository, where a killed rehearsal leaves it, and run its hooks.
With an index of its own, the files come out through all filters as `git checkout` writes them, and git keeps nothing.
"""

import os
import subprocess
from pathlib import Path

from .runner import RunRefused


def commit(root: Path, ref: str = "HEAD") -> str | None:
    """Return the commit that a ref of a folder's repository names; None if there is none, or no repository."""
    try:
        return _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}").strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def extract(root: Path, ref: str, folder: Path) -> Path:
    """Write the files of a commit to a folder, and return what is there the project's folder `root`.

    Raises RunRefused if `root` is in no repository, if it has no such commit, or if the commit has no project there.
    """
    try:
        prefix = _git(root, "rev-parse", "--show-prefix").strip()
        found = commit(root, ref)
        if found is None:
            raise RunRefused(f"--base: {ref} names no commit here; `git fetch origin {ref}` if the server has it")
        folder.mkdir()
        # A project may use the files of its checkout, and this is how one is told.
        (folder / ".git").mkdir()
        index = {"GIT_INDEX_FILE": str(folder / ".git" / "index")}
        _git(root, "read-tree", found, **index)
        top = Path(_git(root, "rev-parse", "--show-toplevel").removesuffix("\n"))
        _git(top, "checkout-index", "--all", "--force", f"--prefix={folder}/", **index)
        (folder / ".git" / "index").unlink()
    except OSError as error:
        raise RunRefused(f"--base: git cannot be run ({error.strerror}); install it, or use --against") from None
    except subprocess.CalledProcessError as error:
        reason = (error.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise RunRefused(f"--base: git does not give the files of {ref}: {reason}") from None
    if not (folder / prefix / "Pulumi.yaml").is_file():
        raise RunRefused(f"--base: {ref} has no {prefix}Pulumi.yaml; choose a commit that has this project")
    return folder / prefix


def _git(folder: Path, *arguments: str, **variables: str) -> str:
    """Return what git says in a folder. Raises OSError and CalledProcessError."""
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", **variables}
    return subprocess.run(
        ["git", *arguments], cwd=folder, env=environment, capture_output=True, text=True, errors="replace", check=True
    ).stdout
