"""Values that may hold outputs of other resources, which Pulumi knows only after those resources are created."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import pulumi

Result = TypeVar("Result")


def call_now_or_when_known(function: Callable[..., Result], *inputs: Any) -> Result | pulumi.Output[Result]:
    """Call a function with `inputs`: at once, or if there are outputs in them, as soon as those are known."""
    if has_output(inputs):
        return pulumi.Output.all(*inputs).apply(lambda values: function(*values))
    return function(*inputs)


def get_item_now_or_when_known(fields: Any, key: str) -> Any:
    """Return the item of a mapping, which may be an output: then the item is one too."""
    return call_now_or_when_known(lambda known: known[key], fields)


def has_output(value: Any) -> bool:
    """Return whether a value is an output, or an object or list with an output in it at any depth."""
    if isinstance(value, Mapping):
        return any(map(has_output, value.values()))
    return any(map(has_output, value)) if isinstance(value, list | tuple) else isinstance(value, pulumi.Output)
