"""Build contexts: the files that an image is built from, their digest, and the archive that a builder takes.

What is hashed is what is sent: relative path, executable bit and bytes of every file. Times, owners, umask, the order
of files and empty folders (git keeps none) do not matter.
"""

import hashlib
import json
import os
import posixpath
import re
import tempfile
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any, NamedTuple

from ..errors import ContextUnusable, FileNameUnusable
from ..files import TAG_LENGTH, Archive, folder_digest, unusual_name
from ..own import NAMES, Own


@dataclass(frozen=True)
class BuildContext(ABC):
    """A folder to build an image from, and the options of the build.

    `dockerfile` is the Dockerfile's path in the archive, `platform` is such as "linux/amd64". `secret_ids` are the
    secrets that the build may read as `RUN --mount=type=secret,id=…`; their values are no part of the content.
    """

    folder: Path
    dockerfile: str
    build_args: Mapping[str, str]
    target: str | None
    platform: str
    secret_ids: tuple[str, ...] = ()

    @property
    @abstractmethod
    def files(self) -> Mapping[str, str]:
        """Paths in the folder by path in the archive, in no order. Raises ContextUnusable."""

    @property
    def texts(self) -> Mapping[str, str]:
        """Texts that are generated for the archive, by path there."""
        return {}

    @property
    def dockerfile_text(self) -> str:
        """The content of the Dockerfile, in which bytes that are no UTF-8 are replaced."""
        return self.texts.get(self.dockerfile) or (self.folder / self.dockerfile).read_bytes().decode(errors="replace")

    @property
    def warning(self) -> str:
        """What the image lacks of what its files ask for; "" if nothing."""
        return ""

    @property
    def hides_dockerfile(self) -> bool:
        """Whether an ignore file excludes the Dockerfile: Docker then reads it and lets no `COPY` see it."""
        return False

    @abstractmethod
    def place(self, image_name: str, line: int) -> str:
        """Return where a declared image says what is at a line of its Dockerfile, for a message."""

    @property
    def entry_count(self) -> int:
        """How many entries the archive has; reads no file."""
        return len(self.files) + len(self.texts)

    @property
    def digests(self) -> dict[str, str]:
        """The digest of every entry by path in the archive; an executable's or a link's differs from a plain file's."""
        return self._archive.digests

    @cached_property
    def digest(self) -> str:
        """64 hex digits for everything that decides what the image holds."""
        options = json.dumps([self._digested_options, self.texts], sort_keys=True)
        try:
            return folder_digest(self.folder, [*self._archive.files.values()], options, self._compute_digest)
        except OSError as error:
            raise ContextUnusable.from_os_error(error) from error

    @property
    def tag(self) -> str:
        """The image's tag: the first digits of the digest."""
        return self.digest[:TAG_LENGTH]

    def open(self) -> IO[bytes]:
        """Return the context as a tar file, which the caller closes.

        It is equal for equal files, so that layers are cached across machines.
        """
        file = tempfile.TemporaryFile()  # noqa: SIM115
        self._archive.write(file)
        file.seek(0)
        return file

    @cached_property
    def _archive(self) -> Archive:
        return Archive(self.folder, self.files, self.texts)

    @property
    def _digested_options(self) -> dict[str, Any]:
        options = {"dockerfile": self.dockerfile, "buildArgs": dict(self.build_args)}
        secrets = {"secrets": list(self.secret_ids)} if self.secret_ids else {}
        return options | {"target": self.target, "platform": self.platform} | secrets

    def _compute_digest(self) -> str:
        options = {**self._digested_options, "dockerfile": self.digests[self.dockerfile]}
        text = json.dumps([options, self.digests], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class DockerfileContext(BuildContext):
    """A folder with a Dockerfile of its own: every file that `.dockerignore` includes, and the Dockerfile."""

    @cached_property
    def files(self) -> Mapping[str, str]:
        return {path: path for path in [*self._included, self.dockerfile]}

    @property
    def hides_dockerfile(self) -> bool:
        return self.dockerfile not in self._included

    def place(self, image_name: str, line: int) -> str:  # noqa: ARG002
        return f"{os.path.relpath(self.folder / self.dockerfile)}:{line}"

    @cached_property
    def _included(self) -> list[str]:
        return included(self.folder, self.dockerfile)


def included(folder: Path, dockerfile: str | None) -> list[str]:
    """Return the files of a folder that its ignore file includes, relative to it, in no order.

    `dockerfile` may have an ignore file of its own, which replaces the general one as with BuildKit; `None` if the
    image's Dockerfile is not in the folder. Links are included as links; what is own (`own.py`) is not. Raises
    ContextUnusable.
    """
    names = [f"{dockerfile}.dockerignore"] if dockerfile else []
    ignore_files = [folder / name for name in [*names, ".dockerignore"] if (folder / name).is_file()]
    try:
        # A message may quote a line of it.
        if ignore_files and not ignore_files[0].resolve().is_relative_to(folder.resolve()):
            raise ContextUnusable(f"{ignore_files[0]} is a link that leads out of the folder; put the file there")
        rules = IgnoreRules.read(ignore_files[0]) if ignore_files else None
        files = list(
            _walk(folder, rules, Own(folder, *([folder / dockerfile] if dockerfile else []), *ignore_files[:1]))
        )
    except OSError as error:
        raise ContextUnusable.from_os_error(error) from error
    if message := next(filter(None, map(unusual_name, files)), None):
        raise FileNameUnusable(f"{os.path.relpath(folder)}/{message}; rename the file, or exclude it in .dockerignore")
    return files


def _walk(folder: Path, rules: "IgnoreRules | None", own: Own) -> Iterator[str]:
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
                is_folder = entry.is_dir(follow_symlinks=False)
                if (is_folder or entry.name in NAMES) and own.has(prefix, entry.name):
                    continue
                path = prefix + entry.name
                is_excluded, matches = rules.judge(path, prefix_matches) if rules else (False, ())
                if is_folder:
                    if not is_excluded or (rules and rules.may_include_below(path)):
                        pending.append((f"{path}/", matches, is_excluded))
                elif not is_excluded and (entry.is_file(follow_symlinks=False) or entry.is_symlink()):
                    yield path


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
    """The patterns of one ignore file, as BuildKit reads it.

    A translation of what `docker buildx` runs (github.com/moby/patternmatcher v0.6.0 with its `ignorefile`, and the
    filter of github.com/tonistiigi/fsutil), quirks included. The Docker SDK's own matcher differs: it ignores case, has
    no escapes, and always includes `.dockerignore`.
    """

    def __init__(self, patterns: Sequence[_Pattern]) -> None:
        self._patterns = patterns
        self._paths = frozenset(pattern.text for pattern in patterns if not _has_wildcard(pattern.text))
        wildcards = [pattern for pattern in patterns if pattern.text not in self._paths]
        self._matchers = [pattern.matches for pattern in wildcards]
        self._suffixes = tuple(_literal_suffix(pattern.text) for pattern in wildcards)
        exceptions = [each.text.removesuffix("/**").removesuffix("/*") for each in patterns if each.is_exception]
        # An excluded folder is not entered, unless an exception may match below it.
        self._can_prune = not any(map(_has_wildcard, exceptions))
        self._exception_folders = [f"{path}/" for path in exceptions]

    @classmethod
    def read(cls, file: Path) -> "IgnoreRules":
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

    def judge(self, path: str, parent_matches: Sequence[bool]) -> tuple[bool, Sequence[bool]]:
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

    def may_include_below(self, folder: str) -> bool:
        """Whether an exception may include a file below an excluded folder."""
        return not self._can_prune or any(path.startswith(f"{folder}/") for path in self._exception_folders)


def _parse_pattern(line: str) -> _Pattern:
    """Parse a line of an ignore file. Raises ValueError or re.error for a pattern that Docker rejects."""
    mark = "!" * line.strip().startswith("!")
    if text := line.strip().removeprefix("!").strip():
        text = _clean(text)
        text = text.removeprefix("/") or text
    # Docker's client cleans the line and sends it, and BuildKit cleans it again.
    cleaned = _clean((mark + text).strip())
    text = cleaned.removeprefix("!")
    if not text or not _WELL_FORMED.fullmatch(text):
        raise ValueError(line)
    return _Pattern(text, cleaned.startswith("!"), _compile(text))


def _clean(path: str) -> str:
    """Clean a path as Go's filepath.Clean does, which keeps no second slash at the start."""
    return posixpath.normpath(re.sub("^/+", "/", path))


def _has_wildcard(pattern: str) -> bool:
    return not _WILDCARDS.isdisjoint(pattern)


def _literal_suffix(pattern: str) -> str:
    """Return the end of every match; a backslash may be a regular expression's, as in `\\b`."""
    return "" if "\\" in pattern else re.split(r"[*?\[\]^/]", pattern)[-1]


def _compile(pattern: str) -> Callable[[str], bool]:
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
