"""`.dockerignore` as BuildKit reads it: which files of a folder are part of a build context.

A translation of what `docker buildx` runs (github.com/moby/patternmatcher v0.6.0 with its `ignorefile`, and the filter
of github.com/tonistiigi/fsutil), quirks included. The Docker SDK's own matcher differs: it ignores case, has no
escapes, and always includes `.dockerignore`.
"""

import os
import posixpath
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import ContextUnusable

_CHARACTER = r"(?:\\.|[^\\\]-])"
_WELL_FORMED = re.compile(rf"(?:[^\\\[]|\\.|\[\^?(?:{_CHARACTER}(?:-{_CHARACTER})?)+\])*", re.DOTALL)
"""What Go's filepath.Match accepts as a pattern."""
_WILDCARDS = frozenset("*[]?^\\")


@dataclass(frozen=True)
class _Pattern:
    text: str
    is_exception: bool
    matches: Callable[[str], bool]

    @property
    def prefix(self) -> str:
        """The pattern without a wildcard at its end."""
        return self.text.removesuffix("/**").removesuffix("/*")

    @property
    def is_path(self) -> bool:
        """Whether it matches nothing but itself."""
        return not _WILDCARDS & {*self.text}

    @property
    def suffix(self) -> str:
        """The literal end of every match, if any; a backslash may be a regular expression's, as in `\\b`."""
        return "" if "\\" in self.text else re.split(r"[*?\[\]^/]", self.text)[-1]


class IgnoreRules:
    """The patterns of one ignore file."""

    def __init__(self, patterns: Sequence[_Pattern]) -> None:
        self._patterns = patterns
        self._paths = frozenset(pattern.text for pattern in patterns if pattern.is_path)
        wildcards = [pattern for pattern in patterns if not pattern.is_path]
        self._matchers = [pattern.matches for pattern in wildcards]
        self._suffixes = tuple(pattern.suffix for pattern in wildcards)
        exceptions = [pattern.prefix for pattern in patterns if pattern.is_exception]
        # An excluded folder is not entered, unless an exception may match below it.
        self._can_prune = not any(_WILDCARDS & {*prefix} for prefix in exceptions)
        self._exception_folders = [f"{prefix}/" for prefix in exceptions]
        self._has_exceptions = bool(exceptions)

    @classmethod
    def from_file(cls, file: Path) -> "IgnoreRules":
        """Read the rules of a file. Raises ContextUnusable, naming the line, for a pattern that Docker rejects."""
        text = file.read_bytes().removeprefix(b"\xef\xbb\xbf").decode(errors="surrogateescape")
        patterns = []
        for number, line in enumerate(text.split("\n"), 1):
            if line.startswith("#") or not line.strip():
                continue
            try:
                patterns.append(_parse_pattern(line))
            except (ValueError, re.error):
                raise ContextUnusable(
                    f'{file}, line {number}: "{line.strip()}" is not a pattern that Docker accepts; '
                    "close every [ with ], and write nothing after the last \\ or alone after !"
                ) from None
        return cls(patterns)

    def match_path(self, path: str, parent_matches: Sequence[bool]) -> tuple[bool, Sequence[bool]]:
        """Return whether a path is excluded, and which patterns match it.

        `parent_matches` are the patterns that match the path's folder; empty for a path at the top.
        """
        if not self._has_exceptions:  # the order of patterns does not matter, and excluded folders are not entered
            is_excluded = path in self._paths or (
                path.endswith(self._suffixes) and any(matches(path) for matches in self._matchers)
            )
            return is_excluded, ()
        is_excluded, path_matches = False, []
        for index, pattern in enumerate(self._patterns):
            is_match = bool(parent_matches) and parent_matches[index]
            if not is_match and pattern.is_exception == is_excluded:
                is_match = pattern.matches(path)
            if is_match:
                is_excluded = not pattern.is_exception
            path_matches.append(is_match)
        return is_excluded, path_matches

    def can_include_below(self, folder: str) -> bool:
        """Whether an exception may include a file below an excluded folder."""
        return not self._can_prune or any(start.startswith(f"{folder}/") for start in self._exception_folders)


def list_included_files(folder: Path, dockerfile: str | None) -> list[str]:
    """Return the files of a folder that its ignore file includes, relative to it, in no order.

    `dockerfile` may have an ignore file of its own, which replaces the general one as with BuildKit; `None` if the
    image's Dockerfile is not in the folder. Links are included as links. Raises ContextUnusable.
    """
    names = [f"{dockerfile}.dockerignore"] if dockerfile else []
    ignore_files = [folder / name for name in [*names, ".dockerignore"] if (folder / name).is_file()]
    try:
        rules = IgnoreRules.from_file(ignore_files[0]) if ignore_files else None
        return list(_walk_included_files(folder, rules))
    except OSError as error:
        raise ContextUnusable.of(error) from error


def _walk_included_files(folder: Path, rules: IgnoreRules | None) -> Iterator[str]:
    pending: list[tuple[str, Sequence[bool], bool]] = [("", (), False)]
    while pending:
        prefix, prefix_matches, is_folder_excluded = pending.pop()
        try:
            entries = os.scandir(posixpath.join(folder, prefix))
        except PermissionError:
            if is_folder_excluded:
                continue
            raise
        with entries:
            for entry in entries:
                path = prefix + entry.name
                is_excluded, path_matches = rules.match_path(path, prefix_matches) if rules else (False, ())
                if entry.is_dir(follow_symlinks=False):
                    if not is_excluded or (rules and rules.can_include_below(path)):
                        pending.append((f"{path}/", path_matches, is_excluded))
                elif not is_excluded and (entry.is_file(follow_symlinks=False) or entry.is_symlink()):
                    yield path


def _parse_pattern(line: str) -> _Pattern:
    """Parse a line of an ignore file. Raises ValueError or re.error for a pattern that Docker rejects."""
    text = line.strip()
    mark = "!" * text.startswith("!")
    text = text.removeprefix("!").strip()
    if text:
        text = _clean_path(text)
        text = text.removeprefix("/") or text
    # Docker's client cleans the line and sends it, and BuildKit cleans it again.
    text = _clean_path((mark + text).strip())
    is_exception = text.startswith("!")
    text = text.removeprefix("!")
    if not text or not _WELL_FORMED.fullmatch(text):
        raise ValueError(line)
    return _Pattern(text, is_exception, _compile_matcher(text))


def _clean_path(path: str) -> str:
    """Clean a path as Go's filepath.Clean does, which keeps no second slash at the start."""
    return posixpath.normpath(re.sub("^/+", "/", path))


def _compile_matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that tells whether a path matches, by the rules of moby/patternmatcher."""
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
        warnings.simplefilter("ignore", FutureWarning)  # about syntax in a [set] that Python may give a meaning
        regular = re.compile(expression, re.ASCII)
    return lambda path: regular.fullmatch(path) is not None
