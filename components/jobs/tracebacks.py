"""What a Python program has raised last, by the lines of its log, and where in the user's code."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

_HEADER = re.compile(r"(?P<prefix>.*?)(?P<kind>\+ Exception Group |Original )?Traceback \(most recent call last\):$")
"""Each line of a traceback has the prefix of its first, such as `[rank0]: `, or none has it, as of a logger."""
_FRAME = re.compile(r'\s+File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?$')
_RAISED = re.compile(r"(?P<type>[A-Za-z_][\w.<>]*)(?:: (?P<message>.*)|:?)$")
_EXCEPTION = re.compile(r"\.|Error$|Exception$|Exit$|Interrupt$")
_NAMED = re.compile(r"\.|[A-Z].*[a-z]")
"""Other lines amid a traceback are of another stream: `INFO: saved`, `loss: 0.3`."""
_MARGIN = re.compile(r"\s*\| ?")
_BRANCH = re.compile(r"\s*\+-(?:\+-)?-+")
_SUBGROUP = re.compile(r"\(\d+ sub-exceptions?\)$")
_CAUSE = "The above exception was the direct cause of the following exception:"
_CONTEXT = "During handling of the above exception, another exception occurred:"
_NOT_OWN = re.compile(r"/(?:site|dist)-packages/|/lib(?:64)?/python3[\d.]*/|^<(?!string>|stdin>)|/s?bin/[^/.]+$")
"""Files of packages, of Python itself, and programs that a package installs."""
_PACKAGE = re.compile(r".*/(?:site|dist)-packages/[^/]+/")
_DETAILS = re.compile(r" \[reason: .*$")
"""What begins a list of details over several lines, after the message of an error of Google's APIs."""
_MAX_PARTS, _MAX_MESSAGE = 3, 300


def last_exception(lines: Iterable[str]) -> str | None:
    """Return the last exception whose traceback has code of the user's, or the last one, with its place; None without.

    What it was raised from follows, and what a group of exceptions has.
    """
    chains: list[list[_Raised]] = []
    for raised in _tracebacks(lines):
        if raised.link and chains:
            chains[-1].append(raised)
        else:
            chains.append([raised])
    if not chains:
        return None
    chain = next((chain for chain in reversed(chains) if any(each.has_own for each in chain)), chains[-1])
    last = chain[-1]
    if not last.has_own:
        last = replace(last, frames=next((each.frames for each in reversed(chain) if each.has_own), last.frames))
    causes = [chain[-2]] if last.link == _CAUSE and len(chain) > 1 and chain[-2].has_own else []
    return ", from ".join(map(str, [last, *causes]))


@dataclass(frozen=True)
class _Frame:
    file: str
    line: str
    function: str | None

    @property
    def is_own(self) -> bool:
        return not _NOT_OWN.search(self.file)

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}"
        return f"{place}, in {self.function}" if self.function not in {None, "<module>"} else place


@dataclass(frozen=True)
class _Raised:
    """One traceback: its exception, what links it to the one before it, and the exceptions of a group."""

    text: str
    frames: tuple[_Frame, ...]
    link: str = ""
    parts: tuple["_Raised", ...] = ()

    @property
    def has_own(self) -> bool:
        return any(frame.is_own for frame in self.frames) or any(part.has_own for part in self.parts)

    @property
    def _frame(self) -> _Frame | None:
        """The user's last frame. Where a job's package is installed like the others, it is that of the first module."""
        if own := [frame for frame in self.frames if frame.is_own]:
            return own[-1]
        modules = (_PACKAGE.match(frame.file) for frame in self.frames if frame.function == "<module>")
        package = next((match[0] for match in modules if match), "")
        inside = [frame for frame in self.frames if package and frame.file.startswith(package)]
        return next(reversed(inside or self.frames), None)

    def __str__(self) -> str:
        shown = f"{self.text} ({self._frame})" if self._frame else self.text
        more = [f"and {len(self.parts) - _MAX_PARTS} more"] if len(self.parts) > _MAX_PARTS else []
        return "; ".join([shown, *map(str, self.parts[:_MAX_PARTS]), *more])


def _tracebacks(lines: Iterable[str]) -> Iterator[_Raised]:
    """Yield what the tracebacks in a log say, a group once with its parts. The first may lack its beginning."""
    frames: list[_Frame] = []
    group: _Raised | None = None
    prefix = link = ""
    has_header = has_prefix = in_group = is_part = False
    for line in (line.rstrip() for entry in lines for line in entry.splitlines()):
        if header := _HEADER.match(line):
            if not (in_group and _MARGIN.match(line)):
                if group:
                    yield group
                group, has_prefix, is_part = None, False, False
                prefix, in_group = header["prefix"] if header["prefix"].strip() else "", "+" in (header["kind"] or "")
            frames, has_header = [], True
            continue
        if prefix and line.startswith(prefix):
            line, has_prefix = line.removeprefix(prefix), True
        elif has_prefix:
            continue  # of another rank
        if in_group and _BRANCH.match(line):
            frames, has_header, is_part = [], True, True
            continue
        if in_group and line:
            margin = _MARGIN.match(line)
            in_group, is_part = margin is not None, margin is not None and is_part
            line = line[margin.end() :] if margin else line
        if line in {_CAUSE, _CONTEXT}:
            link = line
        elif frame := _FRAME.match(line):
            frames.append(_Frame(frame["file"], frame["line"], frame["function"]))
        elif (frames or is_part) and (raised := _RAISED.match(line)):
            if not (_NAMED if has_header else _EXCEPTION).search(raised["type"]):
                continue
            found = _Raised(_DETAILS.sub("", line)[:_MAX_MESSAGE].removesuffix(":"), tuple(frames), link)
            frames, has_header, link = [], False, ""
            if is_part and group:
                is_part = False
                if not _SUBGROUP.search(found.text):
                    group = replace(group, parts=(*group.parts, found))
            elif in_group:
                group = found
            else:
                yield found
    if group:
        yield group
