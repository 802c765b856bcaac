"""Limits on a YAML document: how deep it nests, and how much its aliases repeat. Few bytes could fill the memory."""

from typing import Any

import yaml

MAX_DEPTH = 100
MAX_REPEATED_VALUES = 100_000


class LimitedLoader(yaml.CSafeLoader):
    """A loader that stops where a document nests too deep, which libyaml's own composer does not survive."""

    _depth = 0

    def descend_resolver(self, current_node: yaml.Node | None, _current_index: Any) -> None:
        """Count a level; the composer calls it before each node. Raises yaml.MarkedYAMLError."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _build_depth_error(current_node)

    def ascend_resolver(self) -> None:
        """Leave a level."""
        self._depth -= 1


def raise_for_excessive_aliases(root_node: yaml.Node, document_bytes: bytes) -> None:
    """Raise yaml.MarkedYAMLError for aliases that repeat too many values, nest too deep, or contain themselves.

    Each node is visited once. All that reads the value afterwards visits what an alias stands for once per alias.
    """
    sizes_and_heights: dict[int, tuple[int, int]] = {}
    open_nodes = set[int]()
    repeated = 0

    def measure_size_and_height_within_limits(node: yaml.Node, depth: int) -> tuple[int, int]:
        nonlocal repeated
        if id(node) in open_nodes:
            raise yaml.MarkedYAMLError(problem="an alias refers to what it stands in", problem_mark=node.start_mark)
        if known := sizes_and_heights.get(id(node)):
            repeated += known[0]
            if repeated > MAX_REPEATED_VALUES:
                raise _build_repetition_error(node, document_bytes)
            if depth + known[1] > MAX_DEPTH:
                raise _build_depth_error(node)
            return known
        size, height = 1, 1
        if isinstance(node, yaml.CollectionNode):
            open_nodes.add(id(node))
            is_mapping = isinstance(node, yaml.MappingNode)
            for child in (part for pair in node.value for part in pair) if is_mapping else node.value:
                child_size, child_height = measure_size_and_height_within_limits(child, depth + 1)
                size, height = size + child_size, max(height, child_height + 1)
            open_nodes.remove(id(node))
        sizes_and_heights[id(node)] = size, height
        return size, height

    measure_size_and_height_within_limits(root_node, 1)


def _build_depth_error(node: yaml.Node | None) -> yaml.MarkedYAMLError:
    message = f"nests more than {MAX_DEPTH} deep; write it with fewer levels"
    return yaml.MarkedYAMLError(problem=message, problem_mark=node.start_mark if node else None)


def _build_repetition_error(node: yaml.Node, document_bytes: bytes) -> yaml.MarkedYAMLError:
    # Nodes do not know their anchors.
    anchors = (
        event.anchor
        for event in yaml.parse(document_bytes, yaml.CSafeLoader)
        if isinstance(event, yaml.NodeEvent) and not isinstance(event, yaml.AliasEvent)
        if event.anchor and str(event.start_mark) == str(node.start_mark)
    )
    anchor = next(anchors)
    message = (
        f'the aliases *{anchor} repeat what the anchor "&{anchor}" marks so often that the document has more than '
        f"{MAX_REPEATED_VALUES} values; write out what differs, or use fewer aliases"
    )
    return yaml.MarkedYAMLError(problem=message, problem_mark=node.start_mark)
