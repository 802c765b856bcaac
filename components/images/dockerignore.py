"""`.dockerignore` as BuildKit reads it: which files of a folder a build sees.

A translation of what `docker buildx` runs (github.com/moby/patternmatcher v0.6.0 with its `ignorefile`, and the filter
of github.com/tonistiigi/fsutil), quirks included. The Docker SDK's own matcher differs: it takes no account of case,
knows no escapes, and always lets `.dockerignore` through.
"""

import os
import posixpath
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import ContextUnusable

_ONE = r"(?:\\.|[^\\\]-])"
_WELL_FORMED = re.compile(rf"(?:[^\\\[]|\\.|\[\^?(?:{_ONE}(?:-{_ONE})?)+\])*", re.DOTALL)
"""What Go's filepath.Match takes for a pattern."""
_WILD = frozenset("*[]?^\\")


@dataclass(frozen=True)
class _Pattern:
    text: str
    exception: bool
    matches: Callable[[str], bool]

    @property
    def start(self) -> str:
        """The pattern without a wildcard at its end."""
        return self.text.removesuffix("/**").removesuffix("/*")

    @property
    def is_path(self) -> bool:
        """Whether it matches nothing but itself."""
        return not _WILD & {*self.text}

    @property
    def end(self) -> str:
        """How all that it matches ends, as far as it says; a backslash may be a regular expression's, as in `\\b`."""
        return "" if "\\" in self.text else re.split(r"[*?\[\]^/]", self.text)[-1]


class IgnoreRules:
    """The patterns of one ignore file."""

    def __init__(self, patterns: Sequence[_Pattern]) -> None:
        self._patterns = patterns
        self._paths = frozenset(pattern.text for pattern in patterns if pattern.is_path)
        self._wild = [pattern.matches for pattern in patterns if not pattern.is_path]
        self._ends = tuple(pattern.end for pattern in patterns if not pattern.is_path)
        exceptions = [pattern.start for pattern in patterns if pattern.exception]
        # Below a folder that is left out nothing is looked at, unless an exception may lead there.
        self._prune = not any(_WILD & {*start} for start in exceptions)
        self._exceptions = [f"{start}/" for start in exceptions]
        self._no_exceptions = not exceptions

    @classmethod
    def read(cls, file: Path) -> "IgnoreRules":
        """The rules of a file. Raises ContextUnusable, naming the line, for a pattern that Docker refuses."""
        text = file.read_bytes().removeprefix(b"\xef\xbb\xbf").decode(errors="surrogateescape")
        patterns = []
        for number, line in enumerate(text.split("\n"), 1):
            if line.startswith("#") or not line.strip():
                continue
            try:
                patterns.append(_pattern(line))
            except (ValueError, re.error):
                raise ContextUnusable(
                    f'{file}, line {number}: Docker takes no pattern "{line.strip()}"; '
                    "close every [ with ], and write nothing after the last \\ or alone after !"
                ) from None
        return cls(patterns)

    def leave_out(self, path: str, above: Sequence[bool]) -> tuple[bool, Sequence[bool]]:
        """Whether a path is left out, and which patterns match it; `above` is the latter of its folder, or empty."""
        if self._no_exceptions:  # their order plays no part then, and nothing is looked at below what is left out
            return path in self._paths or (path.endswith(self._ends) and any(one(path) for one in self._wild)), ()
        out, matched = False, []
        for index, pattern in enumerate(self._patterns):
            match = bool(above) and above[index]
            if not match and pattern.exception == out:
                match = pattern.matches(path)
            if match:
                out = not pattern.exception
            matched.append(match)
        return out, matched

    def leads_below(self, folder: str) -> bool:
        """Whether a file below a folder that is left out may be let through."""
        return not self._prune or any(start.startswith(f"{folder}/") for start in self._exceptions)


def files(folder: Path, rules: IgnoreRules | None) -> Iterator[str]:
    """Files and links below a folder that are let through, relative to it, in no order. Links are not followed."""
    pending: list[tuple[str, Sequence[bool], bool]] = [("", (), False)]
    while pending:
        at, above, folder_is_out = pending.pop()
        try:
            entries = os.scandir(posixpath.join(folder, at))
        except PermissionError:
            if folder_is_out:
                continue
            raise
        with entries:
            for entry in entries:
                path = at + entry.name
                out, matched = rules.leave_out(path, above) if rules else (False, ())
                if entry.is_dir(follow_symlinks=False):
                    if not out or (rules and rules.leads_below(path)):
                        pending.append((f"{path}/", matched, out))
                elif not out and (entry.is_file(follow_symlinks=False) or entry.is_symlink()):
                    yield path


def _pattern(line: str) -> _Pattern:
    """The pattern of a line. Raises ValueError or re.error for one that Docker refuses."""
    text = line.strip()
    mark = "!" * text.startswith("!")
    text = text.removeprefix("!").strip()
    if text:
        text = _clean(text)
        text = text.removeprefix("/") or text
    # Docker's client has the line cleaned and sends it; what it is sent to cleans it again.
    text = _clean((mark + text).strip())
    exception = text.startswith("!")
    text = text.removeprefix("!")
    if not text or not _WELL_FORMED.fullmatch(text):
        raise ValueError(line)
    return _Pattern(text, exception, _matcher(text))


def _clean(path: str) -> str:
    """As Go's filepath.Clean, which keeps no second slash at the beginning."""
    return posixpath.normpath(re.sub("^/+", "/", path))


def _matcher(pattern: str) -> Callable[[str], bool]:
    expression, kind, at = "", "exact", 0
    while at < len(pattern):
        start, character = at, pattern[at]
        at += 1
        if pattern.startswith("**", start):
            at += 2 if pattern.startswith("/", at + 1) else 1
            if at < len(pattern):
                expression, kind = f"{expression}(.*/)?", "regular"
            elif kind == "exact":
                kind = "prefix"
            else:
                expression, kind = f"{expression}.*", "regular"
            if start == 0:
                kind = "suffix"
        elif character in "*?":
            expression, kind = expression + ("[^/]*" if character == "*" else "[^/]"), "regular"
        elif character == "\\":
            expression, kind, at = expression + pattern[start : start + 2], "regular", at + 1
        elif character in "[]":
            expression, kind = expression + character, "regular"
        else:
            expression += f"\\{character}" if character in ".+()|{}$" else character
    if kind == "exact":
        return pattern.__eq__
    if kind == "prefix":
        return lambda path: path.startswith(pattern[:-2])
    if kind == "suffix":
        end = pattern[2:]
        return lambda path: path.endswith(end) or f"/{path}" == end
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of what may mean more in a [set] one day
        regular = re.compile(expression, re.ASCII)
    return lambda path: regular.fullmatch(path) is not None
