"""Dockerfiles: their instructions by line, what no builder accepts of them, and what only BuildKit builds.

Read by the rules of BuildKit's frontend (moby/buildkit v0.18, `frontend/dockerfile/parser` and `instructions`). A
Dockerfile with a `# syntax=` line is of another frontend, whose rules are its own: nothing in it is judged. PyPI's
dockerfile-parse (2.0.1) is no help here: it has no heredocs, flags or `ONBUILD`, and takes any word for an instruction.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path, PurePosixPath
from posixpath import normpath

from vertex_api.names import closest_name, did_you_mean
from vertex_api.validation.formats import IMAGE

from .. import trees
from ..own import Own

Found = tuple[int, str]
"""A line of a Dockerfile, and what is to be said of it."""

_INSTRUCTIONS = frozenset(
    {
        *("ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL", "MAINTAINER"),
        *("ONBUILD", "RUN", "SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR"),
    }
)
_NO_ARGUMENT = frozenset({"CMD", "ENTRYPOINT", "RUN"})
"""Instructions that both builders take without an argument."""
_HEREDOC_INSTRUCTIONS = frozenset({"ADD", "COPY", "RUN"})
_DIRECTIVE = re.compile(r"#\s*([a-zA-Z][a-zA-Z0-9]*)\s*=\s*(.+?)\s*")
_OTHER_SYNTAX = re.compile(r'//\s*syntax\s*=|\{\s*"syntax"')
"""Other forms of the directive `syntax` (BuildKit, `DetectSyntax`)."""
_WORD = re.compile(r"""(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*'|\\|["'])+""", re.DOTALL)
_HEREDOC = re.compile(r"""\d*<<(-?)(["']?)([^<"'\s]+)\2""")
_STAGE_NAME = re.compile(r"[a-z][a-z0-9-_.]*")
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::-([^}]*))?\}|(\w+))")
_BUILDKIT_FLAGS = {
    "RUN": ("--mount", "--network", "--security", "--device"),
    "COPY": ("--link", "--chmod", "--parents", "--exclude"),
    "ADD": ("--link", "--chmod", "--checksum", "--keep-git-dir", "--exclude", "--unpack"),
}
_WITHOUT_FLAG = {
    **dict.fromkeys(("--mount", "--mount=type=bind"), "COPY the files before it"),
    "--mount=type=cache": "leave the cache out, as it only saves time",
    "--mount=type=tmpfs": "leave the tmpfs out, and remove in the same RUN what it writes",
    "--link": "leave --link out, as it only saves time",
    "--chmod": "write RUN chmod below it",
    "--checksum": "write RUN with curl and `sha256sum --check`",
}
"""How a Dockerfile does without a flag of BuildKit's, where it can."""
_FLAGS: Mapping[str, Set[str]] = {
    **{name: frozenset(flags) for name, flags in _BUILDKIT_FLAGS.items()},
    "COPY": frozenset({"--from", "--chown", *_BUILDKIT_FLAGS["COPY"]}),
    "ADD": frozenset({"--chown", *_BUILDKIT_FLAGS["ADD"]}),
    "FROM": frozenset({"--platform"}),
    "HEALTHCHECK": frozenset({"--interval", "--timeout", "--start-period", "--start-interval", "--retries"}),
}
_VALUE_FLAGS = frozenset({"--from", "--chown", "--chmod", "--platform", "--checksum", "--mount"})
_PORT = re.compile(r"(?:\S+:)?\d+(?:-\d+)?(?:/(?:tcp|udp|sctp))?", re.IGNORECASE)
_QUOTED = re.compile(r"""\"[^"]*"|'[^']*'""")
PLATFORM_PARTS = ("PLATFORM", "OS", "ARCH", "VARIANT")
PLATFORM_ARGUMENTS = tuple(f"{side}{part}" for side in ("BUILD", "TARGET") for part in PLATFORM_PARTS)
"""Arguments that BuildKit gives each build (Dockerfile reference, "Automatic platform ARGs in the global scope")."""
_PLATFORM_VARIABLE = re.compile(rf"\$\{{?({'|'.join(PLATFORM_ARGUMENTS)})\b")


@dataclass(frozen=True)
class Instruction:
    """One instruction: its name as `written`, its `flags`, and the `rest` of its line and of those that continue it."""

    line: int
    written: str
    flags: tuple[str, ...]
    rest: str
    has_heredoc: bool

    @property
    def name(self) -> str:
        return self.written.upper()

    @property
    def words(self) -> list[str]:
        """The arguments of a list: of the JSON form, or as blanks part them."""
        try:
            words = json.loads(self.rest) if self.rest.startswith("[") else None
        except ValueError:
            words = None
        return [*map(str, words)] if isinstance(words, list) else self.rest.split()

    def flag(self, name: str) -> str | None:
        """Return the value of a flag such as `--from`; None if it is not given."""
        return next((each.partition("=")[2] for each in self.flags if each.partition("=")[0] == name), None)


@dataclass(frozen=True)
class Stage:
    """A stage: its FROM, the name by which others copy from it, and what follows."""

    start: Instruction
    name: str
    instructions: list[Instruction]

    @property
    def base(self) -> str:
        words = self.start.words
        return words[0] if words else ""


@dataclass(frozen=True)
class Dockerfile:
    """A Dockerfile's instructions, in their order; `has_syntax` if it says by which frontend it is read."""

    instructions: tuple[Instruction, ...]
    has_syntax: bool

    @classmethod
    def parse(cls, text: str) -> "Dockerfile":
        """Read a Dockerfile; nothing is refused."""
        lines = [line.rstrip("\r") for line in text.removeprefix("\ufeff").split("\n")]
        directives, escape = {}, "\\"
        for line in lines[1:] if lines[0].startswith("#!") else lines:
            if not (match := _DIRECTIVE.fullmatch(line.strip())):
                break
            directives[match[1].lower()] = match[2]
        escape = "`" if directives.get("escape") == "`" else "\\"
        has_syntax = "syntax" in directives or bool(_OTHER_SYNTAX.match(text.lstrip()))
        return cls(tuple(_instructions(lines, escape)), has_syntax)

    @cached_property
    def stages(self) -> list[Stage]:
        found: list[Stage] = []
        for each in self.instructions:
            if each.name == "FROM":
                words = each.words
                name = words[2].lower() if len(words) == 3 else str(len(found))
                found.append(Stage(each, name, []))
            elif found:
                found[-1].instructions.append(each)
        return found

    def problems(self, target: str | None = None, build_args: Mapping[str, str] | None = None) -> Iterator[Found]:
        """Yield what neither builder accepts, whatever files there are."""
        if not self.instructions:
            yield 1, "is empty; let it begin with FROM and the image that it builds upon"
            return
        for each in self.instructions:
            yield from ((each.line, message) for message in _problems(each))
        first = next((each for each in self.instructions if each.name != "ARG"), None)
        if first is None:
            yield self.instructions[-1].line, "has no FROM; add one with the image that it builds upon"
        elif first.name in _INSTRUCTIONS - {"FROM"}:
            yield first.line, f"{first.written} stands before the first FROM, where only ARG may; move it below one"
        yield from self._base_problems(build_args or {})
        names = {each.name for each in self.stages}
        is_index = target is not None and target.isdigit() and int(target) < len(self.stages)
        if target and self.stages and target.lower() not in names and not is_index:
            yield self.stages[-1].start.line, f'no stage is called "{target}", the target{_did_you_mean(target, names)}'

    def _base_problems(self, build_args: Mapping[str, str]) -> Iterator[Found]:
        for stage, image in self._bases(build_args):
            if _PLATFORM_VARIABLE.search(stage.base) or "$" in image:
                continue
            if not image and (variable := _VARIABLE.search(stage.base)):
                name = variable[1] or variable[3]
                message = f"is empty; write ARG {name}=IMAGE above the first FROM, or give {name} in buildArgs"
                yield stage.start.line, f"{stage.base} {message}"
            elif not IMAGE.matches(image):
                yield stage.start.line, f"{stage.start.written} {IMAGE.mismatch(image)}"

    def copied(self, target: str | None = None) -> Iterator[tuple[int, str, str]]:
        """Yield line, instruction and path of each file or folder of the context that a build needs.

        Left out are stages that the target does not need, patterns, and paths with variables.
        """
        for stage in self._needed(target):
            for each in stage.instructions:
                if each.name not in ("COPY", "ADD") or each.flag("--from") is not None or each.has_heredoc:
                    continue
                for word in each.words[:-1]:
                    if not re.search(r"[$*?\[\\\"']|://|^git@", word):
                        yield each.line, each.written, normpath(f"/{word}").lstrip("/")

    def buildkit_only(self) -> Iterator[Found]:
        """Yield what the daemon's classic builder does not know: that it needs BuildKit, and how to do without it."""
        for line, what, instead in self._buildkit_only():
            yield line, f"{what} needs BuildKit{instead and '; without it, '}{instead}"

    def _buildkit_only(self) -> Iterator[tuple[int, str, str]]:
        given = {word.partition("=")[0] for each in self._global_arguments for word in each.rest.split()}
        for each in self.instructions:
            known = _BUILDKIT_FLAGS.get(each.name, ())
            for flag in dict.fromkeys(flag.partition("=")[0] for flag in each.flags):
                if flag in known:
                    yield each.line, f"{each.name} {flag}", _without(flag, each.flags)
            if each.has_heredoc and each.name == "RUN":
                yield each.line, "RUN <<", "join the commands by && and end lines with \\"
            elif each.has_heredoc:
                yield each.line, f"{each.name} <<", "write the text to a file, and COPY that"
            elif each.name in ("ADD", "COPY"):
                *sources, destination = each.words or [""]
                if len(sources) > 1 and "$" not in destination and not destination.endswith("/"):
                    yield each.line, f"{each.name} of several files to {destination}", "end the destination with /"
                if each.name == "ADD" and any(word.startswith("git@") for word in sources):
                    yield each.line, "ADD of a git address", "write RUN git clone"
            match = _PLATFORM_VARIABLE.search(" ".join([*each.flags, each.rest])) if each.name == "FROM" else None
            if match and match[1] not in given:
                instead = f"write ARG {match[1]}=linux/amd64 above the first FROM"
                yield each.line, f"FROM with ${match[1]}", instead

    def undefined_arguments(self) -> set[str]:
        """Return the platform arguments that are declared, and nowhere with a default."""
        texts = {word for each in self.instructions if each.name == "ARG" for word in each.rest.split()}
        return (texts & {*PLATFORM_ARGUMENTS}) - {text.partition("=")[0] for text in texts if "=" in text}

    def bases(self, build_args: Mapping[str, str]) -> Iterator[Found]:
        """Yield the line and the name of each image that a stage builds upon, but not earlier stages.

        `ARG`s before a `FROM` count, with `build_args` in place of their defaults (Dockerfile reference, "FROM").
        """
        return ((stage.start.line, image) for stage, image in self._bases(build_args) if image)

    def _bases(self, build_args: Mapping[str, str]) -> Iterator[tuple[Stage, str]]:
        """Yield stages that build upon no earlier one, each with its image; "" if variables leave nothing of it."""
        variables = {}
        for each in self._global_arguments:
            for word in _WORD.findall(each.rest):
                name, _, default = word.partition("=")
                variables[name] = build_args.get(name, default.strip("\"'"))
        earlier: set[str] = set()
        for stage in self.stages:
            image = _VARIABLE.sub(lambda found: variables.get(found[1] or found[3]) or found[2] or "", stage.base)
            if stage.base and image.lower() not in earlier:
                yield stage, image
            earlier.add(stage.name)

    @property
    def _global_arguments(self) -> Iterator[Instruction]:
        for each in self.instructions:
            if each.name == "FROM":
                return
            if each.name == "ARG":
                yield each

    def _needed(self, target: str | None) -> list[Stage]:
        """Return the stages that BuildKit builds for a target, or else for the last one."""
        by_name = {name: index for index, stage in enumerate(self.stages) for name in (stage.name, str(index))}
        pending = [by_name.get((target or "").lower(), len(self.stages) - 1)] if self.stages else []
        needed: set[int] = set()
        while pending:
            index = pending.pop()
            if index in needed:
                continue
            needed.add(index)
            stage = self.stages[index]
            named = [stage.base]
            for each in stage.instructions:
                named += re.findall(r"(?:--from=|\bfrom=)([^\s,]+)", " ".join(each.flags))
            # A variable may name any stage.
            everything = range(len(self.stages)) if any("$" in name for name in named) else ()
            pending += [*everything, *(by_name[name.lower()] for name in named if name.lower() in by_name)]
        return [self.stages[index] for index in sorted(needed)]


def _without(flag: str, flags: Sequence[str]) -> str:
    """Return how to do without a flag, which may be there several times, in another way each; "" if one has none."""
    kinds = [flag]
    if flag == "--mount":
        types = [re.search(r"\btype=\w+", each) for each in flags if each.startswith("--mount")]
        kinds = [f"--mount={found[0]}" if found else "--mount" for found in types]
    ways = [_WITHOUT_FLAG.get(kind, "") for kind in kinds]
    return ", and ".join(dict.fromkeys(ways)) if all(ways) else ""


def _instructions(lines: list[str], escape: str) -> Iterator[Instruction]:
    continued = re.compile(rf"(^|[^{re.escape(escape)}]){re.escape(escape)}[ \t]*$")
    index = 0
    while index < len(lines):
        start, text = index + 1, lines[index].lstrip()
        index += 1
        if not text or text.startswith("#"):
            continue
        while continued.search(text):
            text = continued.sub(r"\1", text)
            while index < len(lines) and (not lines[index].strip() or lines[index].lstrip().startswith("#")):
                index += 1
            if index == len(lines):
                break
            text, index = text + lines[index], index + 1
        if not text.strip():
            continue
        written, *rests = text.strip().split(None, 1)
        rest = rests[0] if rests else ""
        flags = []
        while rest.startswith("--") and (word := _WORD.match(rest)):
            flags.append(word[0])
            rest = rest[word.end() :].lstrip()
        has_heredoc = False
        if written.upper() in _HEREDOC_INSTRUCTIONS:
            for word in _WORD.findall(rest):
                if match := _HEREDOC.fullmatch(word):
                    ends = [line.lstrip("\t") if match[1] else line for line in lines[index:]]
                    if match[3] in ends:  # else BuildKit refuses it, and the classic builder may not
                        has_heredoc, index = True, index + ends.index(match[3]) + 1
        yield Instruction(start, written, tuple(flags), rest, has_heredoc)


def _problems(each: Instruction) -> Iterator[str]:
    if each.name not in _INSTRUCTIONS:
        closest = closest_name(each.written, _INSTRUCTIONS)
        hint = f"did you mean {closest}?" if closest else "if it continues the line before, end that line with \\"
        yield f"{each.written} is no instruction; {hint}"
        return
    yield from _flag_problems(each)
    if not each.rest and each.name not in _NO_ARGUMENT:
        yield f"{each.written} has no argument; write what it is to set, or take the line out"
    elif each.name in _ARGUMENT_PROBLEMS:
        yield from _ARGUMENT_PROBLEMS[each.name](each)


def _flag_problems(each: Instruction) -> Iterator[str]:
    known = _FLAGS.get(each.name, frozenset[str]())
    for flag, is_given, _ in (flag.partition("=") for flag in each.flags):
        if flag in known:
            if flag in _VALUE_FLAGS and not is_given:
                yield f"{each.written} {flag} has no value; write {flag}=…"
        elif closest := get_close_matches(flag, known, 1, 0.8):  # another flag may be of a newer BuildKit
            yield f"{each.written} has no {flag}; did you mean {closest[0]}?"
        elif not known:
            yield f'{each.written} takes no flags; write a list in JSON, such as {each.written} ["{flag}"]'


def _from_problems(each: Instruction) -> Iterator[str]:
    words = each.words
    if len(words) not in (1, 3) or (len(words) == 3 and words[1].upper() != "AS"):
        yield f"{each.written} must be FROM IMAGE or FROM IMAGE AS NAME ({each.rest})"
    elif len(words) == 3 and not _STAGE_NAME.fullmatch(words[2].lower()):
        yield f'"{words[2]}" is no name of a stage; use letters, digits, "-", "_" and "."'


def _copy_problems(each: Instruction) -> Iterator[str]:
    if len(each.words) < 2:
        yield f"{each.written} has no destination; write what it copies, and where to ({each.rest})"


def _shell_problems(each: Instruction) -> Iterator[str]:
    if not each.rest.startswith("[") or each.words == [] or each.words == each.rest.split():
        yield f'{each.written} must be a list in JSON, such as ["/bin/bash", "-c"] ({each.rest})'


def _pair_problems(each: Instruction) -> Iterator[str]:
    words = _WORD.findall(each.rest)
    bare = [word for word in words if "=" not in word]
    if "=" not in words[0] and len(words) > 1:
        return  # the old form, NAME and a text
    if bare:
        yield f"{each.written} must be NAME=value ({bare[0]}); put a value with blanks into quotes"
    elif "\\" not in each.rest and {'"', "'"} & {*_QUOTED.sub("", each.rest)}:
        yield f"{each.written} has a quote without its other one ({each.rest}); add that"


def _healthcheck_problems(each: Instruction) -> Iterator[str]:
    kind, *command = each.rest.split()
    if kind.upper() not in ("CMD", "NONE") or (kind.upper() == "CMD" and not command):
        yield f"{each.written} must be HEALTHCHECK CMD COMMAND or HEALTHCHECK NONE ({each.rest})"


def _expose_problems(each: Instruction) -> Iterator[str]:
    for word in each.rest.split():
        if "$" not in word and not _PORT.fullmatch(word):
            yield f"{each.written} must be ports, such as 8080 or 8080/udp ({word})"


def _onbuild_problems(each: Instruction) -> Iterator[str]:
    name = each.rest.split()[0].upper()
    if name in ("FROM", "MAINTAINER", "ONBUILD"):
        yield f"{each.written} takes no {name}; write another instruction there"


_ARGUMENT_PROBLEMS: Mapping[str, Callable[[Instruction], Iterator[str]]] = {
    "FROM": _from_problems,
    **dict.fromkeys(("ADD", "COPY"), _copy_problems),
    "SHELL": _shell_problems,
    **dict.fromkeys(("ENV", "LABEL"), _pair_problems),
    "HEALTHCHECK": _healthcheck_problems,
    "EXPOSE": _expose_problems,
    "ONBUILD": _onbuild_problems,
}


def _did_you_mean(name: str, known: Set[str]) -> str:
    return did_you_mean(name, known - {str(number) for number in range(len(known))}) or "; give one that name by AS"


def explain_unusual(file: Path, shown: str) -> str | None:
    """Return why a path is no Dockerfile; `None` if it is a file."""
    if file.is_file():
        return None
    if file.is_dir():
        return f"{shown} is a folder; rename it, or name a file in it with dockerfile"
    if file.is_symlink():
        return f"{shown} is a link to {file.readlink()}, which is not there; correct it, or write a file"
    if file.exists():
        return f"{shown} is no file that can be read, but a socket, a pipe or a device; write a file in its place"
    return f"there is no {shown}; write one, or name another with dockerfile"


def mistakes(
    folder: Path, name: str, files: Collection[str], target: str | None, build_args: Mapping[str, str]
) -> Iterator[str]:
    """Yield what no builder accepts in the Dockerfile of a context with these files: words that follow its path."""
    try:
        content = trees.read(folder / name, folder)
    except OSError as error:
        yield f" cannot be read ({error.strerror}); make it a file that you may read"
        return
    if b"\0" in content:
        yield " is UTF-16 or no text; save it as UTF-8"
        return
    parsed = Dockerfile.parse(content.decode(errors="replace"))
    if not parsed.has_syntax:
        found = [*parsed.problems(target, build_args)] or _absent(parsed, folder, {*files, name, ""}, target)
        yield from (f":{line}: {text}" for line, text in found)


def _absent(parsed: Dockerfile, folder: Path, files: Collection[str], target: str | None) -> Iterator[Found]:
    for line, instruction, path in parsed.copied(target):
        if path in files or any(file.startswith(f"{path}/") for file in files):
            continue
        # What a link leads to is the builder's to find.
        if not any((folder / each).is_symlink() for each in PurePosixPath(path).parents):
            yield line, f"{instruction} of {path}, which {explain_absent(folder, path)}"


def explain_absent(folder: Path, path: str) -> str:
    """Return why a path of a folder is not in its build context, and what to do: words that follow the path."""
    if not (folder / path).exists():
        return f"is not in {folder.name}/; correct the path, which begins there"
    if (folder / path).is_dir() and not any(each.is_file() for each in (folder / path).rglob("*")):
        return f"is an empty folder, which no context has; put a file there, such as {path}/.gitkeep"
    if Own(folder).covers(path):
        return "is written by Pulumi or this package and in no context; copy what you need of it to another folder"
    return f'is excluded by .dockerignore; include it by a line "!{path}"'
