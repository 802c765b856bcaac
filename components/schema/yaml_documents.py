"""YAML and JSON documents: read strictly with libyaml, with the line of each key."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import yaml

from vertex_api import scalar_types
from vertex_api.validation.rules import KeyPath

from .yaml_error_explanations import explain_parse_error
from .yaml_limits import LimitedLoader, raise_for_excessive_aliases

_MERGE, _TEXT = "tag:yaml.org,2002:merge", "tag:yaml.org,2002:str"


def parse_document_value(document_bytes: bytes) -> Any:
    """Return the value that a document holds.

    Raises yaml.YAMLError or UnicodeDecodeError, also for duplicate keys and the like, which YAML readers drop silently.
    The `problem` of a yaml.MarkedYAMLError is a whole sentence for the user.
    """
    loader = LimitedLoader(document_bytes)
    try:
        node = _compose_root_node_within_limits_or_none(loader, document_bytes)
        if node is None:
            return None
        _raise_for_duplicate_or_non_text_keys(node)
        return _construct_document(loader, node)
    finally:
        loader.dispose()


def _compose_root_node_within_limits_or_none(loader: LimitedLoader, document_bytes: bytes) -> yaml.Node | None:
    try:
        node: yaml.Node | None = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        error.problem = explain_parse_error(error, document_bytes.decode(errors="replace"))
        raise
    if node is not None and b"*" in document_bytes:  # as every alias begins
        raise_for_excessive_aliases(node, document_bytes)
    return node


def _construct_document(loader: LimitedLoader, root_node: yaml.Node) -> Any:
    try:
        return loader.construct_document(root_node)
    except ValueError:
        # For an impossible date, such as 2026-02-30, the error has no position.
        scalars = (node for node in _iterate_nodes_except_keys(root_node) if isinstance(node, yaml.ScalarNode))
        wrong = next(scalar for scalar in scalars if not _can_construct(scalar))
        message = f'{wrong.value} looks like a date or a number and is not one; write "{wrong.value}" in quotes'
        raise yaml.MarkedYAMLError(problem=message, problem_mark=wrong.start_mark) from None


def compose_root_node_or_none(document_bytes: bytes) -> yaml.Node | None:
    """Return a document's root node for `find_deepest_line_or_none`, None if it is empty or cannot be read."""
    loader = LimitedLoader(document_bytes)
    try:
        return _compose_root_node_within_limits_or_none(loader, document_bytes)
    except yaml.YAMLError:
        return None
    finally:
        loader.dispose()


def improve_message_if_misread(root_node: yaml.Node | None, path: KeyPath, message: str) -> str:
    """Return a problem's message; if it says that a value is not a text, it quotes what the user wrote.

    YAML reads some texts without quotes as other values: 3.10 as 3.1, no as false, 12:30 as 750.
    """
    node = root_node
    for part in path:
        _, node = next(_iterate_lines_and_values_at_key(node, part), (0, None))
    if not isinstance(node, yaml.ScalarNode) or node.tag == _TEXT:
        return message
    read, text = _construct_scalar(node), node.value
    if message != scalar_types.not_a_string_message(read) or text == scalar_types.quote_value(read):
        return message
    if not text:
        return 'is empty, which is read as null; write "" for an empty text, or take it out'
    what = "the number " if isinstance(read, int | float) and not isinstance(read, bool) else ""
    return f'{text} is read as {what}{scalar_types.quote_value(read)}; write "{text}" in quotes'


def find_deepest_line_or_none(node: yaml.Node | None, path: KeyPath) -> int | None:
    """Return the line of the deepest part of `path` that a document holds; None if it holds none of it."""
    line = None
    for part in path:
        line, node = next(_iterate_lines_and_values_at_key(node, part), (line, None))
    return line


def _iterate_lines_and_values_at_key(
    node: yaml.Node | None, key_or_index: str | int
) -> Iterator[tuple[int, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        positions, merged_nodes = _index_keys_and_list_merged_nodes(node)
        found = {positions[name] for name in (str(key_or_index), str(key_or_index).lower()) if name in positions}
        for position in sorted(found):
            key, value = node.value[position]
            yield key.start_mark.line + 1, value
        for merged in merged_nodes:
            yield from _iterate_lines_and_values_at_key(merged, key_or_index)
    elif isinstance(node, yaml.SequenceNode) and isinstance(key_or_index, int) and key_or_index < len(node.value):
        yield node.value[key_or_index].start_mark.line + 1, node.value[key_or_index]


@lru_cache(maxsize=64)
def _index_keys_and_list_merged_nodes(node: yaml.MappingNode) -> tuple[dict[str, int], list[yaml.Node]]:
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


def _raise_for_duplicate_or_non_text_keys(root_node: yaml.Node) -> None:
    """Raise for duplicate keys, and keys that YAML reads as numbers or booleans."""
    for node in _iterate_nodes_except_keys(root_node):
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


def _iterate_nodes_except_keys(root_node: yaml.Node) -> Iterator[yaml.Node]:
    """Yield the nodes of all values in the order of the document, each once, however many aliases stand for it."""
    seen, waiting = set[int](), [root_node]
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


def _can_construct(node: yaml.ScalarNode) -> bool:
    try:
        _construct_scalar(node)
    except ValueError:
        return False
    return True


def _construct_scalar(node: yaml.ScalarNode) -> Any:
    return yaml.constructor.SafeConstructor().construct_object(node)
