"""The blocks of code on all pages: what each is, which tests take it, and the commands that are in it.

The fence says what a block is: `python`, `yaml` and so on; `sh` for commands; `console` for commands after `$ ` and
what they print; none, or `text`, for what a program prints. Without a language, a block is `sh` too if its first word
is a program.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    str(page.relative_to(ROOT))
    for page in (
        *(ROOT / "README.md", ROOT / "template" / "README.md"),
        *(each for folder in ("docs", "examples", "skills") for each in (ROOT / folder).rglob("*.md")),
    )
    if page.name not in ("commands.md", "reference.md")
)
"""Those that are written by hand; tests/tools/test_reference.py compares the others with the code."""
PROGRAMS = (
    *("docker", "gcloud", "make", "pip", "pulumi", "python", "python3", "vertex-emulator", "vertex-training"),
    *("awk", "bq", "curl", "git", "id", "jq", "rm", "sleep", "stat", "tensorboard"),
)
"""What commands of pages may start."""
_REAL = ("cat", "mkdir", "sh", "timeout")
_BUILT_IN = ("cd", "echo", "eval", "export", "unset")
_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
# It keeps how it was called, and prints what `eval` takes and what may stand for a name.
_STANDIN = '#!/bin/sh\nprintf \'%s\\0\' "${0##*/}" "$@" > "$CALLS/$$"\necho :\n'


@dataclass(frozen=True)
class Block:
    """What is between two fences, without the indentation of the list that they may be in."""

    page: str
    line: int
    language: str
    text: str

    @property
    def commands(self) -> str:
        """The shell code that a reader copies."""
        if self.language == "console":
            return "".join(f"{line[2:]}\n" for line in self.text.splitlines() if line.startswith("$ "))
        return self.text if self.language == "sh" else ""

    @property
    def printed(self) -> str:
        """What a program prints."""
        if self.language == "console":
            return "".join(f"{line}\n" for line in self.text.splitlines() if not line.startswith("$ "))
        return self.text if self.language == "output" else ""

    def __str__(self) -> str:
        return f"{self.page}:{self.line} ({self.language}, {self.text.splitlines()[0][:60]!r})"


@cache
def blocks(page: str) -> tuple[Block, ...]:
    """The blocks of a page."""
    text = (ROOT / page).read_text()
    found = []
    for match in _FENCE.finditer(text):
        indentation, language, inside = match.groups()
        inside = re.sub(f"^{indentation}", "", inside, flags=re.MULTILINE)
        if language in ("", "text"):
            language = "sh" if inside.split(maxsplit=1)[0] in (*PROGRAMS, *_REAL, *_BUILT_IN) else "output"
        found.append(Block(page, text.count("\n", 0, match.start()) + 1, language, inside))
    return tuple(found)


def is_taken(block: Block, page: str, language: str, begins: str = "") -> bool:
    """Whether `taken` with these arguments returns the block."""
    return (block.page, block.language) == (page, language) and block.text.startswith(begins)


def taken(page: str, language: str, begins: str = "") -> list[str]:
    """Return the blocks of a page that a test runs, or compares with what it makes.

    The arguments are literals, as tests/test_blocks.py reads them in the code: that is how it knows what is tested.
    """
    found = [each.text for each in blocks(page) if is_taken(each, page, language, begins)]
    assert found, f"{page} has no block of {language} that begins with {begins!r}"
    return found


def calls(these: Iterable[Block], folder: Path) -> Iterator[tuple[Block, list[list[str]], str]]:
    """Yield what the commands of each block start, as bash reads them, and the errors of bash; no program runs."""
    programs = folder / "programs"
    programs.mkdir()
    standin = programs / "standin"
    standin.write_text(_STANDIN)
    standin.chmod(0o755)
    for name in PROGRAMS:
        (programs / name).symlink_to(standin)
    for name in _REAL:
        (programs / name).symlink_to(str(shutil.which(name)))
    (programs / "activate").touch()
    bash = str(shutil.which("bash"))
    for number, block in enumerate(these):
        home, record = folder / f"home-{number}", folder / f"calls-{number}"
        for inside in ("training", ".venv"):
            (home / inside).mkdir(parents=True)
        (home / ".venv" / "bin").symlink_to(programs)
        record.mkdir()
        environment = {"PATH": str(programs), "CALLS": str(record), "HOME": str(home), "LC_ALL": "C.UTF-8"}
        done = subprocess.run(
            [bash, "-c", f"cd() {{ :; }}\n{block.commands}"],
            cwd=home,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        started = [os.fsdecode(file.read_bytes()).split("\0")[:-1] for file in sorted(record.iterdir())]
        yield block, started, done.stderr
