"""YAML and JSON that people write: read strictly with libyaml, and the line of each key when it is asked for."""

from collections.abc import Iterator
from typing import Any

import yaml

from vertex_api import scalars
from vertex_api.validation.rules import KeyPath

from .yaml_errors import explained

_MERGE, _TEXT = "tag:yaml.org,2002:merge", "tag:yaml.org,2002:str"


def load(content: bytes) -> Any:
    """What a document holds.

    Raises yaml.YAMLError or UnicodeDecodeError, also for what YAML's readers would lose. The `problem` of a
    yaml.MarkedYAMLError is a whole sentence.
    """
    loader = yaml.CSafeLoader(content)
    try:
        node = _node(loader, content)
        if node is None:
            return None
        _refuse_lost(node, ())
        return _constructed(loader, node)
    finally:
        loader.dispose()


def _node(loader: yaml.CSafeLoader, content: bytes) -> yaml.Node | None:
    try:
        return loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        error.problem = explained(error, content.decode(errors="replace"))
        raise


def _constructed(loader: yaml.CSafeLoader, node: yaml.Node) -> Any:
    try:
        return loader.construct_document(node)
    except ValueError:
        # Of no date, such as 2026-02-30, its readers say nothing more.
        wrong = next(scalar for scalar in _scalars(node) if not _is_readable(scalar))
        message = f'{wrong.value} looks like a date or a number and is none; write "{wrong.value}" in quotes'
        raise yaml.MarkedYAMLError(problem=message, problem_mark=wrong.start_mark) from None


def compose(content: bytes) -> yaml.Node | None:
    """A document as nodes with their positions, for `find_line`. Raises as `load` does."""
    return yaml.compose(content, yaml.CSafeLoader)


def quote_source_text(root: yaml.Node | None, path: KeyPath, message: str) -> str:
    """A problem's message; where it says what is not a text, then with what stands in the document.

    YAML has read that as something else: 3.10 as 3.1, no as false, 12:30 as 750. In quotes it is what was written.
    """
    node = root
    for part in path:
        _, node = next(_steps(node, part), (0, None))
    if not isinstance(node, yaml.ScalarNode) or node.tag == _TEXT:
        return message
    read, text = _read(node), node.value
    if message != scalars.not_a_string_message(read) or text == scalars.quote_value(read):
        return message
    if not text:
        return 'is empty, which is read as null; write "" for an empty text, or take it out'
    what = "the number " if isinstance(read, int | float) and not isinstance(read, bool) else ""
    return f'{text} is read as {what}{scalars.quote_value(read)}; write "{text}" in quotes'


def find_line(node: yaml.Node | None, path: KeyPath) -> int | None:
    """The line of the deepest part of `path` that a document holds; None where it holds none of it."""
    line = None
    for part in path:
        step = next(_steps(node, part), None)
        if step is None:
            break
        line, node = step
    return line


def _steps(node: yaml.Node | None, part: str | int) -> Iterator[tuple[int, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.tag == _MERGE:
                continue
            if key.value == part or key.value.replace("_", "").lower() == str(part).lower():
                yield key.start_mark.line + 1, value
        for key, value in node.value:
            if key.tag == _MERGE:
                for merged in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    yield from _steps(merged, part)
    elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        yield node.value[part].start_mark.line + 1, node.value[part]


def _refuse_lost(node: yaml.Node, above: tuple[yaml.Node, ...]) -> None:
    """Refuses what YAML's readers drop or change without a word, and what has no end.

    A key that stands twice in one mapping, a name that YAML takes for a number or truth, an alias to what it stands in.
    """
    if any(node is other for other in above):
        raise yaml.MarkedYAMLError(problem="an alias refers to what it stands in", problem_mark=node.start_mark)
    if isinstance(node, yaml.MappingNode):
        first: dict[str, yaml.Node] = {}
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
                if key.tag != _TEXT:
                    message = f'names are texts; write "{key.value}" in quotes'
                    raise yaml.MarkedYAMLError(problem=message, problem_mark=key.start_mark)
                if key.value in first:
                    lines = f"lines {first[key.value].start_mark.line + 1} and {key.start_mark.line + 1}"
                    message = f'"{key.value}" is there twice, {lines}'
                    raise yaml.MarkedYAMLError(problem=message, problem_mark=key.start_mark)
                first[key.value] = key
            _refuse_lost(value, (*above, node))
    elif isinstance(node, yaml.SequenceNode):
        for child in node.value:
            _refuse_lost(child, (*above, node))


def _scalars(node: yaml.Node) -> Iterator[yaml.ScalarNode]:
    if isinstance(node, yaml.ScalarNode):
        yield node
    elif isinstance(node, yaml.MappingNode):
        for _, value in node.value:
            yield from _scalars(value)
    elif isinstance(node, yaml.SequenceNode):
        for child in node.value:
            yield from _scalars(child)


def _is_readable(node: yaml.ScalarNode) -> bool:
    try:
        _read(node)
    except ValueError:
        return False
    return True


def _read(node: yaml.ScalarNode) -> Any:
    return yaml.constructor.SafeConstructor().construct_object(node)
