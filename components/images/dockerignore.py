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
from pathlib import Path
from typing import NamedTuple

from ..errors import ContextUnusable

_CHARACTER = r"(?:\\.|[^\\\]-])"
_WELL_FORMED = re.compile(rf"(?:[^\\\[]|\\.|\[\^?(?:{_CHARACTER}(?:-{_CHARACTER})?)+\])*", re.DOTALL)
"""What Go's filepath.Match accepts as a pattern."""
_WILDCARDS = frozenset("*[]?^\\")
_TRANSLATIONS = {"*": "[^/]*", "?": "[^/]", "[": "[", "]": "]"}
"""Wildcards as parts of a regular expression."""


class _Pattern(NamedTuple):
    text: str
    is_exception: bool
    matches: Callable[[str], bool]


class IgnoreRules:
    """The patterns of one ignore file."""

    def __init__(self, patterns: Sequence[_Pattern]) -> None:
        self._patterns = patterns
        self._paths = frozenset(pattern.text for pattern in patterns if not _has_wildcard(pattern.text))
        wildcards = [pattern for pattern in patterns if pattern.text not in self._paths]
        self._matchers = [pattern.matches for pattern in wildcards]
        self._suffixes = tuple(_get_literal_suffix(pattern.text) for pattern in wildcards)
        exceptions = [each.text.removesuffix("/**").removesuffix("/*") for each in patterns if each.is_exception]
        # An excluded folder is not entered, unless an exception may match below it.
        self._can_prune = not any(map(_has_wildcard, exceptions))
        self._exception_folders = [f"{path}/" for path in exceptions]

    @classmethod
    def from_existing_file(cls, file: Path) -> "IgnoreRules":
        """Read the rules of a file. Raises ContextUnusable, naming the line, for a pattern that Docker rejects."""
        text = file.read_bytes().removeprefix(b"\xef\xbb\xbf").decode(errors="surrogateescape")
        patterns = []
        for number, line in enumerate(text.split("\n"), 1):
            if line.startswith("#") or not line.strip():
                continue
            try:
                patterns.append(_parse_pattern_or_raise(line))
            except (ValueError, re.error):
                raise ContextUnusable(
                    f'{file}, line {number}: "{line.strip()}" is not a pattern that Docker accepts; '
                    "close every [ with ], and write nothing after the last \\ or alone after !"
                ) from None
        return cls(patterns)

    def get_exclusion_and_matches(self, path: str, parent_matches: Sequence[bool]) -> tuple[bool, Sequence[bool]]:
        """Return whether a path is excluded, and which patterns match it.

        `parent_matches` are the patterns that match the path's folder; empty for a path at the top.
        """
        if not self._exception_folders:  # the order of patterns does not matter, and excluded folders are not entered
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
        return not self._can_prune or any(path.startswith(f"{folder}/") for path in self._exception_folders)


def list_included_files(folder: Path, dockerfile: str | None) -> list[str]:
    """Return the files of a folder that its ignore file includes, relative to it, in no order.

    `dockerfile` may have an ignore file of its own, which replaces the general one as with BuildKit; `None` if the
    image's Dockerfile is not in the folder. Links are included as links. Raises ContextUnusable.
    """
    names = [f"{dockerfile}.dockerignore"] if dockerfile else []
    ignore_files = [folder / name for name in [*names, ".dockerignore"] if (folder / name).is_file()]
    try:
        # A message may quote a line of it.
        if ignore_files and not ignore_files[0].resolve().is_relative_to(folder.resolve()):
            raise ContextUnusable(f"{ignore_files[0]} is a link that leads out of the folder; put the file there")
        rules = IgnoreRules.from_existing_file(ignore_files[0]) if ignore_files else None
        return list(_walk_included_files(folder, rules))
    except OSError as error:
        raise ContextUnusable.from_os_error(error) from error


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
                is_excluded, matches = rules.get_exclusion_and_matches(path, prefix_matches) if rules else (False, ())
                if entry.is_dir(follow_symlinks=False):
                    if not is_excluded or (rules and rules.can_include_below(path)):
                        pending.append((f"{path}/", matches, is_excluded))
                elif not is_excluded and (entry.is_file(follow_symlinks=False) or entry.is_symlink()):
                    yield path


def _parse_pattern_or_raise(pattern_line: str) -> _Pattern:
    """Parse a line of an ignore file. Raises ValueError or re.error for a pattern that Docker rejects."""
    mark = "!" * pattern_line.strip().startswith("!")
    if text := pattern_line.strip().removeprefix("!").strip():
        text = _clean_path(text)
        text = text.removeprefix("/") or text
    # Docker's client cleans the line and sends it, and BuildKit cleans it again.
    cleaned = _clean_path((mark + text).strip())
    text = cleaned.removeprefix("!")
    if not text or not _WELL_FORMED.fullmatch(text):
        raise ValueError(pattern_line)
    return _Pattern(text, cleaned.startswith("!"), _build_match_function(text))


def _has_wildcard(pattern: str) -> bool:
    return not _WILDCARDS.isdisjoint(pattern)


def _get_literal_suffix(pattern: str) -> str:
    """Return the end of every match; a backslash may be a regular expression's, as in `\\b`."""
    return "" if "\\" in pattern else re.split(r"[*?\[\]^/]", pattern)[-1]


def _clean_path(path: str) -> str:
    """Clean a path as Go's filepath.Clean does, which keeps no second slash at the start."""
    return posixpath.normpath(re.sub("^/+", "/", path))


def _build_match_function(pattern: str) -> Callable[[str], bool]:
    """Return a function that tells whether a path matches, by the rules of moby/patternmatcher."""
    expression, kind = "", "exact"
    for token in re.finditer(r"\*\*/?|\\.?|.", pattern, re.DOTALL):
        text, is_last = token[0], token.end() == len(pattern)
        if text.startswith("**"):
            if is_last and kind == "exact":
                kind = "prefix"
            else:
                expression, kind = expression + (".*" if is_last else "(.*/)?"), "regular"
            if token.start() == 0:
                kind = "suffix"
        elif text in _TRANSLATIONS or text.startswith("\\"):
            expression, kind = expression + _TRANSLATIONS.get(text, text), "regular"
        else:
            expression += f"\\{text}" if text in ".+()|{}$" else text
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
