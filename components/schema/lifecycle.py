"""The `lifecycle` of a job with its defaults."""

from collections.abc import Mapping
from typing import Any

from . import shapes


def get_deletion_policy(lifecycle: Mapping[str, Any], is_adopted: bool) -> str:
    """Return what happens to a job that leaves its stack: `delete`, `cancel` or `keep`.

    An adopted job defaults to `keep`, because the stack did not create it.
    """
    return str(lifecycle.get("onDelete", "keep" if is_adopted else shapes.LIFECYCLE["onDelete"]))
