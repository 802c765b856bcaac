"""RemovalConsequences: violations that may only follow from the removal of misshapen parts, and are not reported."""

from collections.abc import Iterable

from vertex_api.validation.rules import KeyPath

_CONSEQUENCES = {
    ("acceleratorCount", "acceleratorType"),
    ("gpuPartitionSize", "acceleratorCount"),
    ("modelToUpload", "modelId"),
    ("modelToUpload", "parentModel"),
    ("network", "reservedIpRanges"),
    ("parameterId", "learningRateParameterName"),
    ("parameters", "learningRateParameterName"),
    ("persistentResourceId", "machineType"),
    ("strategy", "maxWaitDuration"),
}
"""Fields, each with another that may break a rule only because the first one was removed."""
_VALUE_FIELD_ENDINGS = ("ValueSpec", "Values")
"""The endings of the fields by which rules check a parameter of a study together with its children."""


class RemovalConsequences:
    """The violations that may exist only because parts of a value, at `paths`, were removed from it."""

    def __init__(self, paths: Iterable[KeyPath]) -> None:
        paths = frozenset(paths)
        self._paths = {_widen_to_whole_parameter_if_in_values(path) for path in paths}
        self._parents = {path[:depth] for path in self._paths for depth in range(len(path))}
        self._fields = {_get_last_field_name(path) for path in paths}
        self._has_machine = any("machineSpec" in path for path in paths)

    def may_include(self, path: KeyPath) -> bool:
        """Return whether a violation at a path may exist only because a part of the value was removed."""
        # The same place, or one inside the other.
        if path in self._parents or any(path[:depth] in self._paths for depth in range(len(path) + 1)):
            return True
        field = _get_last_field_name(path)
        # With FLEX_START, a machine as a whole is compared with that of another pool.
        return (field == "machineSpec" and self._has_machine) or not self._fields.isdisjoint(
            removed for removed, dependent in _CONSEQUENCES if dependent == field
        )


def _widen_to_whole_parameter_if_in_values(path: KeyPath) -> KeyPath:
    """Return the path of the whole study parameter for a path in its values: its children and scale depend on them."""
    if any(str(part).endswith(_VALUE_FIELD_ENDINGS) for part in path) and "parameters" in path:
        return path[: path.index("parameters") + 2]
    return path


def _get_last_field_name(path: KeyPath) -> str:
    return next((part for part in reversed(path) if isinstance(part, str)), "")
