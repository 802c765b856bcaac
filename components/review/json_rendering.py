"""A review as JSON for other programs, cut with counts to the length of its Markdown."""

import json
from dataclasses import asdict
from typing import Any

from .markdown_rendering import MAX_LENGTH
from .preview_review import Review

_MAX_ITEMS = (1000, 200, 50, 20, 5)
"""How many items a list has at most, tried in this order until the JSON is short enough."""
_MAX_TEXT_LENGTH = 500


def render_json(review: Review) -> str:
    """Return a review as JSON of at most `MAX_LENGTH` characters: `omitted` says of which lists how much is missing."""
    fields = asdict(review)
    for side in ("before", "after"):
        if totals := fields[side]:
            fields[side] = {**totals.pop("sums"), **totals}
    for max_items in _MAX_ITEMS:
        omitted: dict[str, int] = {}
        cut = _cut_lists_and_texts_and_count_omitted(fields, max_items, "", omitted)
        text = json.dumps({**cut, "omitted": omitted}, indent=1) + "\n"
        if len(text) <= MAX_LENGTH:
            break
    return text


def _cut_lists_and_texts_and_count_omitted(
    value: Any, max_items: int, path: str, omitted_counts_by_path: dict[str, int]
) -> Any:
    if isinstance(value, dict):
        return {
            key: _cut_lists_and_texts_and_count_omitted(
                each, max_items, f"{path}.{key}".removeprefix("."), omitted_counts_by_path
            )
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        if len(value) > max_items:
            omitted_counts_by_path[path] = omitted_counts_by_path.get(path, 0) + len(value) - max_items
        return [
            _cut_lists_and_texts_and_count_omitted(each, max_items, path, omitted_counts_by_path)
            for each in value[:max_items]
        ]
    return value[:_MAX_TEXT_LENGTH] if isinstance(value, str) else value
