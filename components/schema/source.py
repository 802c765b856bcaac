"""SourceFile: a YAML or JSON file that a user wrote, read strictly with libyaml, which knows the line of each key."""

import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import yaml

from vertex_api import scalars
from vertex_api.messages import KeyPath, show_path
from vertex_api.validation.shape import MUST_BE_OBJECT

from .. import trees
from ..errors import Problem

MAX_DEPTH = 100
TOO_DEEP = f"nests more than {MAX_DEPTH} deep; write it with fewer levels"
MAX_REPEATED_VALUES = 100_000
"""Of aliases. With these two limits, few bytes cannot fill the memory."""
MAX_BYTES = 4 << 20
"""Of a file, as of a request to the emulator. A MiB of short values takes some seconds."""
_MAX_NUMBER = 500
"""Characters. In base 60 (`1:30`), as YAML reads it, the time for more grows with their square."""
_MERGE, _TEXT = "tag:yaml.org,2002:merge", "tag:yaml.org,2002:str"
_INTEGER, _FLOAT = "tag:yaml.org,2002:int", "tag:yaml.org,2002:float"
_SHOWN = 60
"""Characters of a value in a message."""


@dataclass(frozen=True)
class SourceFile:
    """The `content` of a file, and its `name` as messages show it.

    In a stack file the keys stand under `config` and begin with a `namespace` (`vertex-training:`).
    """

    name: str
    content: bytes = b""
    namespace: str = ""

    @classmethod
    def read(
        cls, file: Path, name: str, root: Path | None = None
    ) -> "tuple[SourceFile, dict[str, Any], list[Problem]]":
        """Read a file. Returns the object that it holds too, and the problem that prevents it from being read.

        With the project's folder `root`, it must be an ordinary file of that's checkout.
        """
        try:
            if root:
                source = cls(name, trees.read(file, checkout(root), MAX_BYTES))
            else:
                with file.open("rb") as stream:
                    source = cls(name, stream.read(MAX_BYTES + 1))
        except OSError as error:
            return cls(name), {}, [Problem(name, "", f"cannot be read: {error.strerror}")]
        return source, *source.parse()

    def parse(self) -> tuple[dict[str, Any], list[Problem]]:
        """Return the object that the file holds, or an empty one and the problem that prevents it from being read."""
        if len(self.content) > MAX_BYTES:
            return {}, [Problem(self.name, "", f"has more than {MAX_BYTES >> 20} MiB; split it into several files")]
        try:
            value = parse(_readable(self.content, self.name))
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            return {}, [Problem(f"{self.name}:{line}", "", error.problem or "is not valid YAML")]
        except UnicodeDecodeError as error:
            line = self.content[: error.start].count(b"\n") + 1
            message = f"a character is not UTF-8 (the byte 0x{self.content[error.start]:02x}); save the file as UTF-8"
            return {}, [Problem(f"{self.name}:{line}", "", message)]
        except yaml.YAMLError as error:
            return {}, [Problem(self.name, "", f"is not valid YAML: {str(error).splitlines()[0]}")]
        if value is not None and not isinstance(value, dict):
            return {}, [Problem(self.name, "", MUST_BE_OBJECT)]
        return value or {}, []

    def problem(self, path: KeyPath, message: str) -> Problem:
        """Return a problem at a key, with the key's line. Values are quoted as the user wrote them."""
        full_path = self._path_in_file(path)
        message = _quote_as_written(self._root, full_path, message)
        return Problem(self.line(path), show_path(full_path[1 if self.namespace else 0 :]), message)

    def line(self, path: KeyPath) -> str:
        """Return `file:line` of the deepest part of `path` that the file holds, or the file alone."""
        line, node = None, self._root
        for part in self._path_in_file(path):
            line, node = next(_at(node, part), (line, None))
        return self.name if line is None else f"{self.name}:{line}"

    def _path_in_file(self, path: KeyPath) -> KeyPath:
        if not self.namespace:
            return path
        return ("config", f"{self.namespace}{path[0]}", *path[1:]) if path else ("config",)

    @cached_property
    def _root(self) -> yaml.Node | None:
        """The root node, None of a file that is empty or cannot be read."""
        content = _readable(self.content, self.name)
        loader = _Loader(content)
        try:
            return _compose(loader, content)
        except yaml.YAMLError:
            return None
        finally:
            loader.dispose()


@dataclass(frozen=True)
class GivenFile(SourceFile):
    """A stack file in place of some of whose `keys` a program gives others, as arguments of a `resource`."""

    resource: str = ""
    keys: Collection[str] = ()

    def problem(self, path: KeyPath, message: str) -> Problem:
        if path and path[0] in self.keys:
            return Problem(self.resource, show_path(path), message)
        return super().problem(path, message)


def checkout(root: Path) -> Path:
    """Return the folder in which all files of a project must be: its git checkout, or `root` if it is in none.

    What a pull request changes are files of a checkout. If declarations could name others, an edit of a line would
    bring any file of the machine into an image, a package or a message.
    """
    root = root.resolve()
    return next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), root)


def explain_outside(root: Path, path: str) -> str | None:
    """Return why a path, relative to the project's folder `root`, is not one of its checkout; None if it is.

    Links count as what they lead to.
    """
    folder = checkout(root)
    try:
        target = (root / path).resolve()
        target.exists()
    except (OSError, RuntimeError, ValueError):  # too long, a link to itself, NUL
        return f'"{path[:100]}" is not the path of a file; correct it'
    if target.is_relative_to(folder):
        return None
    return (
        f'"{path}" leads out of {folder.name}/; move it there, or run `git init` in a folder that has both: files '
        "outside of a project's git checkout are not read"
    )


def explain_written(root: Path, file: Path) -> str | None:
    """Return why a file that a user names is not written to: it is in the checkout of `root`, and a link leads out.

    A branch may bring such a link. Where a user names a place outside, it is what the user wants.
    """
    top = checkout(root)
    folder = Path(os.path.realpath(file))
    if not Path(os.path.abspath(file)).is_relative_to(top) or folder.is_relative_to(top):  # noqa: PTH100
        return None
    return f"{file} leads out of {top.name}/ by a link ({folder}); remove the link, or name that place"


def parse(content: bytes) -> Any:
    """Return the value that a document holds.

    Raises yaml.YAMLError or UnicodeDecodeError, also for duplicate keys and the like, which YAML readers drop silently.
    The `problem` of a yaml.MarkedYAMLError is a whole sentence for the user.
    """
    loader = _Loader(content)
    try:
        node = _compose(loader, content)
        if node is None:
            return None
        _check_keys(node)
        _check_characters(node)
        try:
            return loader.construct_document(node)
        except ValueError:
            # For an impossible date, such as 2026-02-30, the error has no position.
            wrong = next(each for each in _values(node) if isinstance(each, yaml.ScalarNode) and not _is_valid(each))
            shown = wrong.value if len(wrong.value) <= _SHOWN else f"{wrong.value[:_SHOWN]}..."
            message = f'{shown} looks like a date or a number and is not one; write "{shown}" in quotes'
            raise yaml.MarkedYAMLError(problem=message, problem_mark=wrong.start_mark) from None
    finally:
        loader.dispose()


_SURROGATES = re.compile(rb"(?<!\\)((?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")


def _readable(content: bytes, name: str) -> bytes:
    """Return a document with what JSON writes and YAML does not read as one character. Raises UnicodeDecodeError.

    In JSON a character beyond the first 65,536 is two escapes, "\\ud83d\\ude80", as `json.dumps` writes it. The lines
    stay where they are.
    """
    if not content.startswith((b"\xff\xfe", b"\xfe\xff")):  # YAML may be UTF-16, with a mark
        content.decode()
    if not name.endswith(".json"):
        return content

    def whole(match: re.Match[bytes]) -> bytes:
        pair = bytes.fromhex((match[2] + match[3]).decode())
        return match[1] + pair.decode("utf-16-be").encode()

    return _SURROGATES.sub(whole, content)


def _is_valid(node: yaml.ScalarNode) -> bool:
    try:
        _construct(node)
    except ValueError:
        return False
    return True


def _construct(node: yaml.ScalarNode) -> Any:
    return _Constructor().construct_object(node)


class _Constructor(yaml.constructor.SafeConstructor):
    """A constructor that raises ValueError for numbers that are too long."""


def _number(constructor: Any, node: yaml.ScalarNode) -> Any:
    """Return the value of an integer or a float. Raises ValueError."""
    if len(node.value) > _MAX_NUMBER:
        raise ValueError("too long for a number")
    return constructor.construct_yaml_int(node) if node.tag == _INTEGER else constructor.construct_yaml_float(node)


def _check_keys(root: yaml.Node) -> None:
    """Raise for duplicate keys, and keys that YAML reads as numbers or booleans."""
    for node in _values(root):
        if not isinstance(node, yaml.MappingNode):
            continue
        first: dict[str, yaml.Node] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
                message = None if key.tag == _TEXT else f'names are texts; write "{key.value}" in quotes'
                if not message and (other := first.setdefault(key.value, key)) is not key:
                    lines = f"lines {other.start_mark.line + 1} and {key.start_mark.line + 1}"
                    message = f'"{key.value}" is there twice, {lines}'
                if message:
                    raise yaml.MarkedYAMLError(problem=message, problem_mark=key.start_mark)


def _check_characters(root: yaml.Node) -> None:
    """Raise where a word processor's character was meant as YAML's: in a key, around a text, or as the whole document.

    In straight quotes each is a character as all others.
    """
    plain: list[yaml.ScalarNode] = []
    for node in _values(root):
        if isinstance(node, yaml.MappingNode):
            plain += [key for key, _ in node.value if isinstance(key, yaml.ScalarNode) and not key.style]
            below = [value for key, value in node.value if value.start_mark.line > key.end_mark.line]
            plain += [each for each in below if isinstance(each, yaml.ScalarNode) and _JOINED.match(each.value)]
        elif isinstance(node, yaml.ScalarNode) and not node.style:
            is_quoted = node.value[:1] in _CURLY and node.value[-1:] in _CURLY
            plain += [node] if is_quoted or node is root else []
    for node in plain:
        if message := _typographic(node.value):
            raise yaml.MarkedYAMLError(problem=message, problem_mark=node.start_mark)


def _typographic(text: str, place: str = "here") -> str | None:
    """Return what to type in place of the first character of a text that word processors write for another one."""
    character = next((each for each in text if each in _TYPOGRAPHIC), None)
    if character is None:
        return None
    name, plain = _TYPOGRAPHIC[character]
    return f"{name} (U+{ord(character):04X}) stands {place}, as word processors write it; type {plain}"


def _values(root: yaml.Node) -> Iterator[yaml.Node]:
    """Yield the nodes of all values in the order of the document, each once, however many aliases stand for it."""
    seen, waiting = set[int](), [root]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if isinstance(node, yaml.MappingNode):
            waiting += [value for _, value in reversed(node.value)]
        elif isinstance(node, yaml.SequenceNode):
            waiting += reversed(node.value)


def _quote_as_written(root: yaml.Node | None, path: KeyPath, message: str) -> str:
    """Return a problem's message; if it says that a value is not a text, it quotes what the user wrote.

    YAML reads some texts without quotes as other values: 3.10 as 3.1, no as false, 12:30 as 750.
    """
    node = root
    for part in path:
        _, node = next(_at(node, part), (0, None))
    if not isinstance(node, yaml.ScalarNode) or node.tag == _TEXT:
        return message
    read, text = _construct(node), node.value
    if message != scalars.not_a_string(read) or text == scalars.quote(read):
        return message
    if not text:
        return 'is empty, which is read as null; write "" for an empty text, or take it out'
    what = "the number " if isinstance(read, int | float) and not isinstance(read, bool) else ""
    return f'{text} is read as {what}{scalars.quote(read)}; write "{text}" in quotes'


def _at(node: yaml.Node | None, key: str | int) -> Iterator[tuple[int, yaml.Node]]:
    """Yield the lines and values at a key or an index, also of merged mappings."""
    if isinstance(node, yaml.MappingNode):
        positions, merged = _index(node)
        for position in sorted({positions[name] for name in (str(key), str(key).lower()) if name in positions}):
            found, value = node.value[position]
            yield found.start_mark.line + 1, value
        for each in merged:
            yield from _at(each, key)
    elif isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
        yield node.value[key].start_mark.line + 1, node.value[key]


@lru_cache(maxsize=64)
def _index(node: yaml.MappingNode) -> tuple[dict[str, int], list[yaml.Node]]:
    """Return the positions of keys by name, as written and in lower case without underscores; and the merged nodes.

    A mapping of thousands of keys may have a hundred problems.
    """
    positions, merged = dict[str, int](), list[yaml.Node]()
    for position, (key, value) in enumerate(node.value):
        if key.tag == _MERGE:
            merged += value.value if isinstance(value, yaml.SequenceNode) else [value]
        elif isinstance(key, yaml.ScalarNode):
            positions.setdefault(key.value, position)
            positions.setdefault(key.value.replace("_", "").lower(), position)
    return positions, merged


class _Loader(yaml.CSafeLoader):
    """A loader that stops where a document nests too deep, which libyaml's own composer does not survive."""

    _depth = 0

    def descend_resolver(self, current_node: yaml.Node | None, _current_index: Any) -> None:
        """Count a level; the composer calls it before each node. Raises yaml.MarkedYAMLError."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _too_deep(current_node)

    def ascend_resolver(self) -> None:
        self._depth -= 1


for _tag in (_INTEGER, _FLOAT):
    _Constructor.add_constructor(_tag, _number)
    _Loader.add_constructor(_tag, _number)


def _compose(loader: _Loader, content: bytes) -> yaml.Node | None:
    """Return the root node of a document within the limits."""
    try:
        node: yaml.Node | None = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        error.problem = explain(error, content.decode(errors="replace"))
        raise
    if node is not None and b"*" in content:  # as every alias begins
        _check_aliases(node, content)
    return node


def _check_aliases(root: yaml.Node, content: bytes) -> None:
    """Raise yaml.MarkedYAMLError for aliases that repeat too many values, nest too deep, or contain themselves.

    Each node is visited once. All that reads the value afterwards visits what an alias stands for once per alias.
    """
    measured: dict[int, tuple[int, int]] = {}
    open_nodes = set[int]()
    repeated = 0

    def measure(node: yaml.Node, depth: int) -> tuple[int, int]:
        """Return how many values a node has, and how many levels."""
        nonlocal repeated
        if id(node) in open_nodes:
            raise yaml.MarkedYAMLError(problem="an alias refers to what it stands in", problem_mark=node.start_mark)
        if known := measured.get(id(node)):
            repeated += known[0]
            if repeated > MAX_REPEATED_VALUES:
                raise _too_many(node, content)
            if depth + known[1] > MAX_DEPTH:
                raise _too_deep(node)
            return known
        size, height = 1, 1
        if isinstance(node, yaml.CollectionNode):
            open_nodes.add(id(node))
            is_mapping = isinstance(node, yaml.MappingNode)
            for child in (part for pair in node.value for part in pair) if is_mapping else node.value:
                child_size, child_height = measure(child, depth + 1)
                size, height = size + child_size, max(height, child_height + 1)
            open_nodes.remove(id(node))
        measured[id(node)] = size, height
        return size, height

    measure(root, 1)


def _too_deep(node: yaml.Node | None) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=TOO_DEEP, problem_mark=node.start_mark if node else None)


def _too_many(node: yaml.Node, content: bytes) -> yaml.MarkedYAMLError:
    # Nodes do not know their anchors.
    anchor = next(
        event.anchor
        for event in yaml.parse(content, yaml.CSafeLoader)
        if isinstance(event, yaml.NodeEvent) and not isinstance(event, yaml.AliasEvent)
        if event.anchor and str(event.start_mark) == str(node.start_mark)
    )
    message = (
        f'the aliases *{anchor} repeat what the anchor "&{anchor}" marks so often that the document has more than '
        f"{MAX_REPEATED_VALUES} values; write out what differs, or use fewer aliases"
    )
    return yaml.MarkedYAMLError(problem=message, problem_mark=node.start_mark)


_QUOTED = "write it in quotes"
_EXPLANATIONS = {
    "but found another document": "a second document begins here; write one document a file",
    "mapping values are not allowed": 'a ":" stands where no key ends; write a text with ": " in quotes, and indent '
    "keys alike",
    "block sequence entries are not allowed": f'a "-" cannot stand here: if it belongs to a text, {_QUOTED}; '
    "if it begins an entry, put it on a line of its own",
    "found unknown escape character": 'a "\\" in double quotes begins an escape; write the text in single quotes',
    "found undefined alias": f'a "*" begins the name of an anchor, and there is none of this name; if it is a text, '
    f"{_QUOTED}",
    "did not find expected alphabetic or numeric": f'a "*" or "&" begins the name of an anchor; if it is a text, '
    f"{_QUOTED}",
    "found unexpected end of stream": "the text in quotes that begins in line {line} has no end",
    "did not find expected ',' or": "the bracket that opens in line {line} is not closed, or a comma is missing here",
    "did not find expected node content": "a value is missing here, or a bracket is not closed",
    "did not find expected key": "is not indented as the keys from line {line} on are",
    "did not find expected '-' indicator": "is indented as the list from line {line} on is, and is no entry of it",
    "could not find expected ':'": 'the key that begins in line {line} has no ":" behind it',
}
_TYPOGRAPHIC = {
    "\u00a0": ("a no-break space", "a plain space"),
    "\u202f": ("a narrow no-break space", "a plain space"),
    "\u3000": ("a wide space", "a plain space"),
    "\u201c": ("a curly quote", 'a straight one, "'),
    "\u201d": ("a curly quote", 'a straight one, "'),
    "\u2018": ("a curly quote", "a straight one, '"),
    "\u2019": ("a curly quote", "a straight one, '"),
    "\uff1a": ("a wide colon", "a plain one, :"),
    "\u2028": ("a line separator", "a new line"),
}
_CURLY = frozenset("\u2018\u2019\u201c\u201d")
_JOINED = re.compile("[^\\s:]+:[\u00a0\u202f\u3000]")
"""A key that such a space makes one text with what follows it, also in the next line."""
_UNOPENED = ("did not find expected key", "did not find expected node content")
_REFERENCE = re.compile(r"\$\{[^}]*\}[^\s,\]}]*")
_BEGINNING = re.compile(r"[^\s,\[{]*$")


def explain(error: yaml.MarkedYAMLError, text: str) -> str:
    """Return a whole sentence that says why a text is not valid YAML and how to fix it, for a parser's error."""
    problem, mark = error.problem or "is not valid YAML", error.problem_mark
    line = (text.split("\n")[mark.line : mark.line + 1] if mark else []) or [""]
    before, after = (line[0][: mark.column], line[0][mark.column :]) if mark else ("", "")
    if after.startswith("\t") or "tab character" in problem:
        return "a tab stands here; indent with spaces"
    if problem == "exceeded maximum nesting depth":  # since PyYAML 6.0.4
        return TOO_DEEP
    if message := _typographic(line[0]):
        return message
    above = [each for each in enumerate(text.split("\n")[: mark.line], 1) if each[1].strip()][-1:] if mark else []
    for number, joined in above:
        if _JOINED.match(joined.strip(" ")) and (message := _typographic(joined, f"in line {number}")):
            return message
    if problem.startswith("found character that cannot start"):
        return f'"{after[:1]}" cannot begin a value; write the text in quotes'
    if after.startswith("{") and before.endswith("$"):
        reference = _REFERENCE.match("$" + after)
        whole = _BEGINNING.findall(before[:-1])[0] + (reference.group() if reference else "${…}")
        return f'in brackets a reference needs quotes; write "{whole}"'
    if after[:1] in ("}", "]") and problem in _UNOPENED:
        return f'the "{after[0]}" closes no bracket'
    start = error.context_mark.line + 1 if error.context_mark else 1
    for prefix, explanation in _EXPLANATIONS.items():
        if problem.startswith(prefix):
            return explanation.format(line=start)
    return f"{error.context}, {problem}" if error.context else problem
