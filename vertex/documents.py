"""YAML and JSON that people write: read strictly with libyaml, and the line of each key when it is asked for."""

from collections.abc import Iterator
from typing import Any

import yaml

from vertex.rules import KeyPath


def loaded(content: bytes) -> Any:
    """What a document holds. Raises yaml.YAMLError or UnicodeDecodeError, also for what YAML's readers would lose."""
    loader = yaml.CSafeLoader(content)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _refuse_lost(node, ())
        return loader.construct_document(node)
    finally:
        loader.dispose()


def composed(content: bytes) -> yaml.Node | None:
    """A document as nodes with their positions, for `line_of`. Raises as `loaded` does."""
    return yaml.compose(content, yaml.CSafeLoader)


def line_of(node: yaml.Node | None, path: KeyPath) -> int | None:
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
            if key.value == part or key.value.replace("_", "").lower() == str(part).lower():
                yield key.start_mark.line + 1, value
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
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.tag != "tag:yaml.org,2002:str":
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
